//! Folders that may be held against each other or merged, and those that may not.

use pgclinic_model::document::DecisionWord;

use super::*;
use crate::analysis::tests::{Made, about, plan, plan as plan_of, results};
use crate::cell::RunResult;

fn recorded<'a>(name: &'a str, plan: &'a Plan, results: &'a [RunResult]) -> Recorded<'a> {
    Recorded {
        name,
        place: name,
        plan,
        results,
        unreadable: &[],
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

/// The plan with the first two of its blocks, as where the budget did not hold more, and their
/// results.
fn cut_short(plan: &Plan, speed: f64) -> (Plan, Vec<RunResult>) {
    let cut = plan.without_blocks_from(3, format!("runs take {speed} times as long"));
    let mut results = results(plan, speed);
    results.retain(|result| result.cell.block < 3);
    (cut, results)
}

#[test]
fn blocks_that_the_budget_did_not_hold_are_not_missing() {
    let plan = plan(1);
    let [(cut, slow), (cut_too, fast)] = [cut_short(&plan, 1.0), cut_short(&plan, 0.9)];
    let whole = results(&plan, 0.2);
    let folders = [
        recorded("lab/a", &cut, &slow),
        recorded("lab/b", &cut_too, &fast),
        recorded("lab/c", &plan, &whole),
    ];
    let both = merge(&Made, &folders[..2], &about()).expect("one plan");
    assert!(both.complete);
    assert_eq!(both.plan.blocks, 4);
    assert_eq!(both.runs.len(), slow.len() + fast.len());
    let basis = &both.cards[0].basis;
    assert!(basis.contains("inside 4 blocks"), "{basis}");
    let left_out = "left out of the plan on b: 2 of 4 blocks: runs take 0.9 times as long";
    assert!(both.remarks.iter().any(|remark| remark == left_out));

    let all = merge(&Made, &folders, &about()).expect("one plan");
    assert!(all.complete);
    assert_eq!(all.plan.blocks, 8);
    assert_eq!(all.runs.len(), slow.len() + fast.len() + whole.len());
    let differ = "the machines ran different numbers of blocks (a 2, b 2, c 4): each is held to its own, and all of their runs count";
    assert!(
        all.remarks.iter().any(|remark| remark == differ),
        "{:?}",
        all.remarks
    );
}

#[test]
fn results_that_cannot_be_read_are_named() {
    let plan = plan(1);
    let (before, after) = (results(&plan, 1.0), results(&plan, 0.5));
    let unreadable = [Unreadable {
        path: "b/runs/one/run.json".into(),
        why: "EOF while parsing".into(),
    }];
    let folders = [
        recorded("a", &plan, &before),
        Recorded {
            unreadable: &unreadable,
            ..recorded("b", &plan, &after[1..])
        },
    ];
    let merged = merge(&Made, &folders, &about()).expect("one plan");
    let compared = compare(&folders[0], &folders[1], &[], &about()).expect("comparable");
    for document in [merged, compared] {
        let words = "b/runs/one/run.json cannot be read and does not count: EOF while parsing";
        let mut remarks = document.remarks.iter();
        assert!(remarks.any(|remark| remark == words));
    }
}

#[test]
fn a_merged_folder_is_one_side_of_a_comparison() {
    let plan = plan(1);
    let (cut, slow) = cut_short(&plan, 1.0);
    let (fast, now) = (results(&plan, 0.9), results(&plan, 0.5));
    let machines = [
        recorded("merged/machines/a", &cut, &slow),
        recorded("merged/machines/b", &plan, &fast),
    ];
    let before = joined(&machines).expect("one plan");
    assert_eq!(before.results.len(), slow.len() + fast.len());
    assert_eq!(before.plan.matrix.blocks, 6);
    let side = recorded("merged", &before.plan, &before.results);
    let after = recorded("now", &plan, &now);
    let document = compare(&side, &after, &[], &about()).expect("comparable");
    assert!(document.complete);
    assert_eq!(document.runs.len(), slow.len() + fast.len() + now.len());
    let file = format!("merged/machines/b/runs/{}/run.json", plan.cells[0].id);
    assert!(document.runs.iter().any(|run| run.files[0] == file));

    // A machine of it is no other experiment.
    let refused = compare(&side, &machines[1], &[], &about()).expect_err("it is in there");
    assert!(
        refused.to_string().contains("hold the same run"),
        "{refused}"
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
