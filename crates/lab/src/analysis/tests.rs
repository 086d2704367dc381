//! A made-up experiment, from its plan to its document.

use std::collections::BTreeMap;

use pgclinic_model::document::{DecisionWord, RunSummary, RunWord};

use super::*;
use crate::bench::Bench;
use crate::cell::{Arm, Axis, Better, Cell, Metric, Outcome};
use crate::cost::Cost;
use crate::error::Result;
use crate::experiment::{Matrix, Measured, Scale};
use crate::plan::PlanOptions;

/// Two arms along an axis; the second is twice as fast.
pub(crate) struct Made;

impl Experiment for Made {
    fn name(&self) -> &str {
        "analyze-prefetch"
    }

    fn question(&self) -> &str {
        "What does it buy?"
    }

    fn explain(&self) -> &str {
        ""
    }

    fn matrix(&self, _scale: Scale) -> Matrix {
        Matrix {
            arms: vec![
                Arm::new("13", "before"),
                Arm::new("14", "after").with_setting("jit", "off"),
            ],
            axes: vec![Axis::new("maintenance_io_concurrency", "", &[0, 10, 50])],
            blocks: 4,
        }
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::timing("analyze_s", "time of an ANALYZE", "s", Better::Lower),
            Metric::exact("pages", "pages read", "pages", Better::Lower),
        ]
    }

    fn cost(&self, _cell: &Cell, _scale: Scale) -> Cost {
        Cost::seconds(1.0)
    }

    fn run(&self, _bench: &mut Bench<'_>) -> Result<Measured> {
        Ok(Measured::default())
    }

    fn advice(&self, arm: &Arm) -> String {
        format!("install {}", arm.name)
    }
}

pub(crate) fn plan(seed: u64) -> Plan {
    let options = PlanOptions {
        seed,
        ..PlanOptions::default()
    };
    Plan::make(&Made, None, &options).expect("a plan that fits")
}

pub(crate) fn result(cell: &Cell, speed: f64) -> RunResult {
    let wobble = 1.0 + f64::from(cell.block) * 0.1 + f64::from(u8::from(cell.is_control)) * 0.002;
    let of_arm = if cell.arm == "14" { 2.0 } else { 4.0 };
    let seconds = of_arm * wobble * speed * (1.0 + 0.001 * f64::from(cell.block % 2));
    RunResult {
        cell: cell.clone(),
        outcome: Outcome::Done,
        metrics: BTreeMap::from([("analyze_s".into(), seconds), ("pages".into(), 300.0)]),
        series: BTreeMap::new(),
        environment: BTreeMap::from([
            ("server_version".into(), format!("{}.1", cell.arm)),
            ("cpu".into(), "two cores".into()),
            ("port".into(), cell.id.clone()),
        ]),
        overlaps: Vec::new(),
        files: vec!["server.log".into()],
        started: 1_795_280_461 + u64::from(cell.block),
        elapsed_s: seconds,
    }
}

pub(crate) fn results(plan: &Plan, speed: f64) -> Vec<RunResult> {
    plan.cells.iter().map(|cell| result(cell, speed)).collect()
}

pub(crate) fn about() -> About {
    About {
        folder: "/tmp/lab".into(),
        command: "pgclinic lab run analyze-prefetch".into(),
        judge: Judge::default(),
    }
}

fn of(results: &[RunResult]) -> ExperimentDocument {
    let plan = plan(1);
    let machine = Machine {
        name: "here",
        prefix: "",
        plan: &plan,
        results,
    };
    document(&Made, &plan, &[machine], &about())
}

#[test]
fn runs_become_a_decision_with_its_raw_files() {
    let document = of(&results(&plan(1), 1.0));
    assert!(document.complete);
    assert_eq!(document.started.as_deref(), Some("2026-11-21T17:01:02Z"));
    let card = &document.cards[0];
    assert_eq!(card.word, DecisionWord::Better, "{}", card.headline);
    assert!(
        card.headline
            .starts_with("choose 14 instead of 13: time of an ANALYZE 2.00 times faster"),
        "{}",
        card.headline
    );
    assert_eq!(card.apply, ["install 14"]);
    assert_eq!(card.runs.len(), 8);
    assert_eq!(
        document.runs[0].files[0],
        format!("runs/{}/run.json", document.runs[0].id)
    );
    let published = card
        .published
        .as_ref()
        .map(|published| published.word.as_str());
    assert_eq!(published, Some("weaker"));
}

#[test]
fn figures_hold_curves_effects_noise_and_what_was_published() {
    let document = of(&results(&plan(1), 1.0));
    let [time, pages] = document.figures.as_slice() else {
        panic!("one figure a metric")
    };
    assert!(time.primary && !pages.primary);
    assert_eq!(time.lines.len(), 2);
    assert!(time.lines.iter().all(|line| line.points.len() == 3));
    assert!(
        time.lines[0]
            .points
            .iter()
            .all(|point| point.interval.is_some())
    );
    assert!(
        time.noise
            .is_some_and(|noise| noise.times > 1.0 && noise.times < 1.01)
    );
    assert_eq!(time.effects.len(), 1);
    assert!(
        time.effects[0]
            .points
            .iter()
            .all(|point| (point.times - 2.0).abs() < 0.01)
    );
    assert_eq!(time.published.len(), 2);
    assert!(
        pages.lines[0].points[0].interval.is_none(),
        "the same in every run needs no interval"
    );
}

#[test]
fn facts_are_sorted_by_whom_they_belong_to() {
    let document = of(&results(&plan(1), 1.0));
    let machine = &document.machines[0].environment;
    assert_eq!(machine.get("cpu").map(String::as_str), Some("two cores"));
    assert!(!machine.contains_key("port") && !machine.contains_key("server_version"));
    assert_eq!(document.arms[1].version.as_deref(), Some("PostgreSQL 14.1"));
    assert_eq!(
        document.arms[1].settings.get("jit").map(String::as_str),
        Some("off")
    );
}

#[test]
fn what_failed_or_did_not_run_stays_visible() {
    let mut results = results(&plan(1), 1.0);
    results.truncate(5);
    results[2].outcome = Outcome::Empty {
        why: "the window was spent connecting".into(),
    };
    let document = of(&results);
    assert!(!document.complete);
    let count = |word: RunWord| {
        document
            .runs
            .iter()
            .filter(|run| run.outcome == word)
            .count()
    };
    assert_eq!(count(RunWord::Empty), 1);
    assert_eq!(count(RunWord::Done), 4);
    assert_eq!(count(RunWord::NotRun), plan(1).cells.len() - 5);
    assert_eq!(document.cards[0].word, DecisionWord::Undecided);
}

#[test]
fn runs_on_another_server_than_the_first_of_their_arm_are_flagged() {
    let mut results = results(&plan(1), 1.0);
    let own = |result: &&mut RunResult| result.cell.arm == "14" && result.cell.block == 4;
    let mut ids = Vec::new();
    for result in results.iter_mut().filter(own) {
        result
            .environment
            .insert("server_version".into(), "14.7".into());
        ids.push(result.cell.id.clone());
    }
    let document = of(&results);
    let is_flagged = |run: &&RunSummary| {
        let mut overlaps = run.overlaps.iter();
        overlaps.any(|words| {
            words == "another server than the arm's first run: server_version (14.1, 14.7)"
        })
    };
    let flagged = document.runs.iter().filter(is_flagged);
    let flagged: Vec<&String> = flagged.map(|run| &run.id).collect();
    assert_eq!(flagged, ids.iter().collect::<Vec<_>>());
    let mut remarks = document.remarks.iter();
    assert!(
        remarks.any(|remark| remark.starts_with("3 runs had another server")),
        "{:?}",
        document.remarks
    );
    let version = document.arms[1].version.as_deref();
    assert_eq!(version, Some("PostgreSQL 14.1 and 14.7"));
}

#[test]
fn a_guest_is_told_that_its_hosts_cache_is_out_of_reach() {
    let mut results = results(&plan(1), 1.0);
    let told = |results: &[RunResult]| {
        let remarks = of(results).remarks;
        remarks
            .iter()
            .any(|remark| remark.starts_with("here is a virtual machine"))
    };
    assert!(!told(&results));
    for result in &mut results {
        let fact = ("virtual_machine".into(), "yes: QEMU".into());
        result.environment.extend([fact]);
    }
    assert!(told(&results));
}
