//! Every value that was measured, with where it belongs.

use std::collections::BTreeMap;

use crate::cell::{Point, RunResult};
use crate::plan::Plan;

/// The results of one machine.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'a> {
    /// Host name, or what the user called it.
    pub name: &'a str,
    /// Put before ids of runs and names of files; empty where there is one machine.
    pub prefix: &'a str,
    /// What it was to run: without the blocks that its budget did not hold.
    pub plan: &'a Plan,
    /// What it measured.
    pub results: &'a [RunResult],
}

impl Machine<'_> {
    /// The id of a run in the document.
    pub(super) fn id(&self, run: &str) -> String {
        match self.prefix {
            "" => run.to_owned(),
            prefix => format!("{prefix}/{run}"),
        }
    }

    /// How many numbers its blocks take, so that those of the next machine are others.
    fn block_numbers(&self) -> u32 {
        let measured = self.results.iter().map(|result| result.cell.block).max();
        self.plan.matrix.blocks.max(measured.unwrap_or_default())
    }
}

/// A run that is done.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Observation {
    pub(crate) run: String,
    pub(crate) arm: String,
    pub(crate) point: Point,
    /// Unique over all machines.
    pub(crate) block: u32,
    pub(crate) is_control: bool,
    pub(crate) metrics: BTreeMap<String, f64>,
    pub(crate) elapsed_s: f64,
}

/// All runs that are done.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Observations(pub(crate) Vec<Observation>);

impl Observations {
    pub(super) fn of(machines: &[Machine<'_>]) -> Self {
        let (mut all, mut first) = (Vec::new(), 0_u32);
        for machine in machines {
            let done = machine.results.iter().filter(|result| result.is_done());
            all.extend(done.map(|result| Observation {
                run: machine.id(&result.cell.id),
                arm: result.cell.arm.clone(),
                point: result.cell.point.clone(),
                block: result.cell.block.saturating_add(first),
                is_control: result.cell.is_control,
                metrics: result.metrics.clone(),
                elapsed_s: result.elapsed_s,
            }));
            first = first.saturating_add(machine.block_numbers());
        }
        all.sort_by_key(|observation| observation.block);
        Observations(all)
    }

    /// Runs of an arm at a point, controls aside.
    pub(super) fn at<'a>(
        &'a self,
        arm: &'a str,
        point: &'a Point,
    ) -> impl Iterator<Item = &'a Observation> + 'a {
        self.0
            .iter()
            .filter(move |one| !one.is_control && one.arm == arm && one.point == *point)
    }

    /// (block, value) of a metric of an arm at a point.
    pub(super) fn values(&self, metric: &str, arm: &str, point: &Point) -> Vec<(u32, f64)> {
        let values = self.at(arm, point).filter_map(|one| {
            let value = one.metrics.get(metric).filter(|value| value.is_finite())?;
            Some((one.block, *value))
        });
        values.collect()
    }

    /// Values of control runs of an arm at a point.
    pub(super) fn controls(&self, metric: &str, arm: &str, point: &Point) -> Vec<f64> {
        let controls = self
            .0
            .iter()
            .filter(|one| one.is_control && one.arm == arm && one.point == *point);
        controls
            .filter_map(|one| one.metrics.get(metric).copied())
            .collect()
    }
}
