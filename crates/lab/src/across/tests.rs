//! Folders that may be held against each other or merged, and those that may not.

use pgclinic_diagnose::document::DecisionWord;

use super::*;
use crate::analysis::tests::{Made, about, plan, plan as plan_of, results};
use crate::cell::RunResult;

fn recorded<'a>(name: &'a str, plan: &'a Plan, results: &'a [RunResult]) -> Recorded<'a> {
    Recorded {
        name,
        plan,
        results,
    }
}

fn with_fact(mut results: Vec<RunResult>, name: &str, value: &str) -> Vec<RunResult> {
    for result in &mut results {
        result.environment.insert(name.to_owned(), value.to_owned());
    }
    results
}

#[test]
fn one_difference_is_the_question() {
    let plan = plan(1);
    let slow = results(&plan, 1.0);
    let fast = with_fact(results(&plan, 0.5), "cpu", "eight cores");
    let (one, other) = (recorded("old", &plan, &slow), recorded("new", &plan, &fast));
    let document = compare(&one, &other, &[], &about()).expect("comparable");
    assert_eq!(document.cards.len(), 2, "one card an arm");
    let card = &document.cards[0];
    assert_eq!(card.word, DecisionWord::Better, "{}", card.headline);
    assert!(
        card.headline.starts_with("prefer B: new to A: old"),
        "{}",
        card.headline
    );
    let named = document
        .remarks
        .iter()
        .any(|remark| remark == "machine: cpu (two cores, eight cores)");
    assert!(named, "{:?}", document.remarks);
}

#[test]
fn two_differences_are_refused_by_name_unless_allowed() {
    let plan = plan(1);
    let results_one = with_fact(results(&plan, 1.0), "setting.jit", "off");
    let changed = with_fact(
        with_fact(results(&plan, 1.0), "cpu", "eight cores"),
        "setting.jit",
        "on",
    );
    let (one, other) = (
        recorded("a", &plan, &results_one),
        recorded("b", &plan, &changed),
    );
    let refusal = compare(&one, &other, &[], &about())
        .expect_err("two causes")
        .to_string();
    assert!(
        refusal.contains("settings: setting.jit (off, on); machine: cpu (two cores, eight cores)"),
        "{refusal}"
    );
    assert!(compare(&one, &other, &[Group::Machine], &about()).is_ok());
}

#[test]
fn another_scale_or_question_is_refused() {
    let plan = plan(1);
    let mut published = plan.clone();
    published.scale = crate::experiment::Scale::Published;
    let results = results(&plan, 1.0);
    let (one, other) = (
        recorded("a", &plan, &results),
        recorded("b", &published, &results),
    );
    let refusal = compare(&one, &other, &[], &about())
        .expect_err("another scale")
        .to_string();
    assert!(
        refusal.contains("the scale differs (quick, published)"),
        "{refusal}"
    );
}

#[test]
fn machines_of_one_plan_are_merged_block_by_block() {
    let plan = plan(1);
    let (slow, fast) = (
        results(&plan, 1.0),
        with_fact(results(&plan, 0.2), "cpu", "eight cores"),
    );
    let folders = [
        recorded("/srv/lab", &plan, &slow),
        recorded("/mnt/lab/", &plan, &fast),
    ];
    let document = merge(&Made, &folders, &about()).expect("one plan");
    assert_eq!(document.plan.blocks, 8);
    assert_eq!(document.machines.len(), 2);
    assert_eq!(
        document.cards[0].word,
        DecisionWord::Better,
        "{}",
        document.cards[0].headline
    );
    assert!(
        document
            .runs
            .last()
            .is_some_and(|run| run.files[0].starts_with("machines/lab-2/runs/"))
    );
    let another = plan_of(2);
    let refused = merge(
        &Made,
        &[folders[0], recorded("c", &another, &fast)],
        &about(),
    );
    assert!(
        refused
            .expect_err("another plan")
            .to_string()
            .contains("only runs of one plan can be merged")
    );
}
