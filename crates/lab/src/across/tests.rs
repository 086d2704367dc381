//! Folders that may be held against each other or merged, and those that may not.

use pgclinic_diagnose::document::DecisionWord;

use super::*;
use crate::analysis::tests::{Made, about, plan, plan as plan_of, results};
use crate::cell::RunResult;

fn recorded<'a>(name: &'a str, plan: &'a Plan, results: &'a [RunResult]) -> Recorded<'a> {
    Recorded {
        name,
        place: name,
        plan,
        results,
    }
}

/// The same runs, made a day later.
fn later(mut results: Vec<RunResult>) -> Vec<RunResult> {
    for result in &mut results {
        result.started += 86_400;
    }
    results
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
    let changed = later(with_fact(
        with_fact(results(&plan, 1.0), "cpu", "eight cores"),
        "setting.jit",
        "on",
    ));
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

/// What `compare` refuses when the second folder has these facts and the first has those.
fn refusal(before: &[(&str, &str)], after: &[(&str, &str)]) -> Option<String> {
    let plan = plan(1);
    let with = |facts: &[(&str, &str)]| {
        let begin = results(&plan, 1.0);
        facts.iter().fold(begin, |results, (name, value)| {
            with_fact(results, name, value)
        })
    };
    let (one, other) = (with(before), later(with(after)));
    let sides = [recorded("a", &plan, &one), recorded("b", &plan, &other)];
    let compared = compare(&sides[0], &sides[1], &[], &about());
    compared.err().map(|error| error.to_string())
}

#[test]
fn two_differences_of_one_group_are_two_causes() {
    let settings = refusal(
        &[("setting.jit", "off"), ("setting.work_mem", "4096 kB")],
        &[("setting.jit", "on"), ("setting.work_mem", "65536 kB")],
    );
    let words = "settings: setting.jit (off, on), setting.work_mem (4096 kB, 65536 kB)";
    assert!(settings.is_some_and(|refusal| refusal.contains(words)));
    let machine = refusal(
        &[("file_system.options", "rw")],
        &[
            ("cpu", "eight cores"),
            ("file_system.options", "rw,noatime"),
        ],
    );
    let words = "machine: cpu (two cores, eight cores), file_system.options (rw, rw,noatime)";
    assert!(machine.is_some_and(|refusal| refusal.contains(words)));
    // Another disk is another file system with another queue: one cause.
    let disk = refusal(
        &[("file_system.source", "/dev/sda1"), ("disk.rotates", "1")],
        &[("file_system.source", "/dev/sdb1"), ("disk.rotates", "0")],
    );
    assert_eq!(disk, None);
}

#[test]
fn a_fact_that_one_side_lacks_is_a_difference() {
    let both = refusal(&[("setting.jit", "off")], &[("kernel", "6.12")]);
    let words = "settings: setting.jit (off, as shipped); machine: kernel (not known, 6.12)";
    assert!(
        both.as_ref().is_some_and(|refusal| refusal.contains(words)),
        "{both:?}"
    );
}

#[test]
fn facts_that_vary_between_arms_are_compared_arm_by_arm() {
    let plan = plan(1);
    let before = results(&plan, 1.0);
    let mut after = later(with_fact(results(&plan, 1.0), "cpu", "eight cores"));
    for result in after.iter_mut().filter(|result| result.cell.arm == "14") {
        let version = ("server_version".to_owned(), "14.9".to_owned());
        result.environment.extend([version]);
    }
    let sides = [recorded("a", &plan, &before), recorded("b", &plan, &after)];
    let refused = compare(&sides[0], &sides[1], &[], &about())
        .expect_err("another server and another processor")
        .to_string();
    assert!(
        refused.contains("server: server_version of 14 (14.1, 14.9); machine: cpu"),
        "{refused}"
    );
    // What a version ships is no setting of anybody's: it came with the version.
    let programs = |mut results: Vec<RunResult>, setting: bool| {
        for result in &mut results {
            let programs = ("server_programs".to_owned(), "/opt".to_owned());
            result.environment.extend([programs]);
            let shared = ("setting.shared_buffers".to_owned(), "16384 8kB".to_owned());
            result.environment.extend(setting.then_some(shared));
            result.environment.remove("cpu");
        }
        results
    };
    let (before, after) = (programs(before, true), programs(after, false));
    let sides = [recorded("a", &plan, &before), recorded("b", &plan, &after)];
    let found = differences(&sides[0], &sides[1]);
    let of_14 = found.iter().filter(|one| one.what.ends_with("of 14"));
    assert!(of_14.clone().count() == 2 && of_14.clone().all(|one| one.group == Group::Server));
    let of_13 = found.iter().filter(|one| one.what.ends_with("of 13"));
    assert!(of_13.clone().all(|one| one.group == Group::Settings));
}

#[test]
fn what_was_brought_is_compared_too() {
    let plan = plan(1);
    let mut brought = plan.clone();
    brought.yours.ddl = Some("CREATE TEMP TABLE t ()".to_owned());
    let (before, after) = (results(&plan, 1.0), later(results(&plan, 1.0)));
    let (one, other) = (
        recorded("a", &plan, &before),
        recorded("b", &brought, &after),
    );
    let refusal = compare(&one, &other, &[], &about()).expect_err("other statements");
    assert!(
        refusal
            .to_string()
            .contains("the statements of --ddl differ"),
        "{refusal}"
    );
}

#[test]
fn a_comparison_names_the_raw_files_where_they_are() {
    let plan = plan(1);
    let (one, other) = (results(&plan, 1.0), results(&plan, 0.5));
    let sides = [
        recorded("lab/a/", &plan, &one),
        recorded("lab/b", &plan, &other),
    ];
    let document = compare(&sides[0], &sides[1], &[], &about()).expect("comparable");
    let first = &plan.cells[0].id;
    let named = |id: &str| {
        let run = document.runs.iter().find(|run| run.id == id);
        run.and_then(|run| run.files.first().cloned())
    };
    for (letter, folder) in [("A", "lab/a"), ("B", "lab/b")] {
        assert_eq!(
            named(&format!("{letter}-{first}")),
            Some(format!("{folder}/runs/{first}/run.json"))
        );
    }
}

#[test]
fn a_folder_and_its_copy_count_once() {
    let plan = plan(1);
    let results = results(&plan, 1.0);
    let folders = [
        recorded("lab", &plan, &results),
        recorded("copy", &plan, &results[3..]),
    ];
    let refused = merge(&Made, &folders, &about()).expect_err("one of them is a copy");
    let words = format!("lab and copy hold the same run, {}", results[3].cell.id);
    assert!(refused.to_string().contains(&words), "{refused}");
    let refused = compare(&folders[0], &folders[1], &[], &about()).expect_err("a copy");
    assert!(refused.to_string().contains(&words), "{refused}");
}

#[test]
fn a_comparison_names_the_keys_of_own_files_that_differ() {
    let plan = plan(1);
    let with = |text: &str| Plan {
        own: Some(text.to_owned()),
        ..plan.clone()
    };
    let (before, after) = (results(&plan, 1.0), later(results(&plan, 1.0)));
    let compared = |one: &Plan, other: &Plan| {
        let sides = [recorded("a", one, &before), recorded("b", other, &after)];
        compare(&sides[0], &sides[1], &[], &about())
    };
    let template = with(crate::TEMPLATE);
    let commented = with(&format!("# Mine.\n{}", crate::TEMPLATE));
    assert!(compared(&template, &commented).is_ok());
    let covering =
        with(&crate::TEMPLATE.replace("INCLUDE (total); VACUUM", "INCLUDE (note); VACUUM"));
    let refused = compared(&template, &covering).expect_err("another index");
    assert_eq!(
        refused.to_string(),
        "the files of the two experiments differ: arm \"covering\": sql"
    );
}

#[test]
fn another_scale_or_question_is_refused() {
    let plan = plan(1);
    let mut published = plan.clone();
    published.scale = crate::experiment::Scale::Published;
    let (before, after) = (results(&plan, 1.0), later(results(&plan, 1.0)));
    let (one, other) = (
        recorded("a", &plan, &before),
        recorded("b", &published, &after),
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
