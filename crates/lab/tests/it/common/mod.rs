//! Runs an experiment at its smallest scale on real servers and gives its results.
#![allow(dead_code, reason = "each test file takes what it needs")]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pgclinic_lab::{
    Audience, Cell, Experiment, Plan, PlanOptions, RunFolder, RunOptions, RunResult, Scale,
    SiteOptions, carry_out, experiment_named,
};

/// Hears nothing.
pub(crate) struct Nobody;

impl Audience for Nobody {
    fn tell(&mut self, _words: &str) {}
    fn begins(&mut self, _at: usize, _total: usize, _cell: &Cell) {}
    fn ends(&mut self, _result: &RunResult) {}
}

/// The experiment of this name.
pub(crate) fn experiment(name: &str) -> &'static dyn Experiment {
    experiment_named(name).unwrap_or_else(|| panic!("there is no experiment {name}"))
}

/// A plan at the smallest scale, one block.
pub(crate) fn smallest(name: &str, only: &[(&str, &[&str])]) -> Plan {
    let own = |value: &&str| (*value).to_owned();
    let options = PlanOptions {
        scale: Scale::Smallest,
        blocks: Some(1),
        only: only
            .iter()
            .map(|(axis, values)| ((*axis).to_owned(), values.iter().map(own).collect()))
            .collect(),
        ..PlanOptions::default()
    };
    Plan::make(experiment(name), None, &options).expect("a plan")
}

/// How tests run: on the newest installed server, a busy machine being no matter.
pub(crate) fn options(major: Option<u16>) -> RunOptions {
    let mut options = RunOptions {
        site: SiteOptions {
            major,
            ..SiteOptions::default()
        },
        ..RunOptions::default()
    };
    options.calm.patience = std::time::Duration::ZERO;
    options
}

/// Carries out a plan in a folder of its own.
pub(crate) fn results(plan: Plan, major: Option<u16>) -> Vec<RunResult> {
    let folder = tempfile::tempdir().expect("a directory");
    let name = plan.experiment.clone();
    let folder = RunFolder::create(&folder.path().join("run"), plan).expect("a run directory");
    let stop = Arc::new(AtomicBool::new(false));
    carry_out(
        experiment(&name),
        &folder,
        &options(major),
        stop,
        &mut Nobody,
    )
    .expect("results")
}

/// The metric of the one plain run of this arm that fits the filter.
#[track_caller]
pub(crate) fn metric(results: &[RunResult], arm: &str, point: &[(&str, &str)], name: &str) -> f64 {
    let fits = |result: &&RunResult| {
        let cell = &result.cell;
        cell.arm == arm
            && !cell.is_control
            && point.iter().all(|(axis, value)| cell.at(axis) == *value)
    };
    let found: Vec<&RunResult> = results.iter().filter(fits).collect();
    let [result] = found.as_slice() else {
        panic!("{} runs of {arm} at {point:?}", found.len());
    };
    let value = result.metrics.get(name);
    *value.unwrap_or_else(|| panic!("{}: {}", result.cell.id, result.outcome.words()))
}
