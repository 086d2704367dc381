//! The runs of a search: an experiment at one place of its matrix, on one minor at a time, each in
//! a directory of its own, so that a search that was interrupted goes on where it was.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::range::MinorRange;
use super::search::{Outcome as SearchOutcome, Rounds, search};
use crate::cell::{Metric, Outcome, RunResult};
use crate::decision::decisive;
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::plan::{Plan, PlanOptions};
use crate::runner::{Audience, RunFolder, RunOptions, carry_out};

/// What is searched, and how.
#[derive(Clone, Debug)]
pub struct BisectOptions {
    /// The releases.
    pub range: MinorRange,
    /// The figure, by its name among the metrics of the experiment.
    pub metric: String,
    /// Scale, arm and place; its blocks and version are the search's own.
    pub plan: PlanOptions,
    /// Servers and places.
    pub run: RunOptions,
    /// Where runs go: a directory for each minor and round.
    pub folder: PathBuf,
}

/// Looks for the minor that changed a metric.
///
/// # Errors
/// When there is no such metric, arm or place, and when a run fails: a failed run is no figure.
pub fn bisect(
    experiment: &dyn Experiment,
    text: Option<String>,
    options: &BisectOptions,
    interrupted: &Arc<AtomicBool>,
    audience: &mut dyn Audience,
) -> Result<SearchOutcome> {
    let metric = metric(experiment, &options.metric)?;
    let plan = at_one_place(experiment, &options.plan);
    let rounds = if metric.timing {
        Rounds::TIMED
    } else {
        Rounds::COUNTED
    };
    let ends = (options.range.first, options.range.last);
    let mut measure = |minor: u16, round: u32| {
        let version = options.range.version(minor);
        let name = format!("{version}-round-{round:03}");
        let plan = PlanOptions {
            version: Some(version),
            seed: plan.seed.wrapping_add(u64::from(round)),
            ..plan.clone()
        };
        let plan = Plan::make(experiment, text.clone(), &plan)?;
        let folder = RunFolder::create(&options.folder.join(name), plan)?;
        let stop = Arc::clone(interrupted);
        let results = carry_out(experiment, &folder, &options.run, stop, audience)?;
        value(&results, &metric, folder.path())
    };
    search(ends, rounds, &mut measure)
}

fn metric(experiment: &dyn Experiment, name: &str) -> Result<Metric> {
    let all = experiment.metrics();
    let found = all.iter().find(|metric| metric.name == name).cloned();
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|metric| metric.name.as_str()).collect();
        Error::Refused(format!(
            "{} has no metric \"{name}\"; there is {}",
            experiment.name(),
            names.join(", ")
        ))
    })
}

/// The first arm at the place at which the experiment decides, where the person names no other.
fn at_one_place(experiment: &dyn Experiment, options: &PlanOptions) -> PlanOptions {
    let mut options = options.clone();
    let matrix = experiment.matrix(options.scale);
    options.blocks = Some(1);
    if options.arms.is_empty() {
        let first = matrix.arms.first().map(|arm| arm.name.clone());
        options.arms = first.into_iter().collect();
    }
    options.arms.truncate(1);
    for axis in &matrix.axes {
        match options.only.iter_mut().find(|(name, _)| *name == axis.name) {
            Some((_, values)) => values.truncate(1),
            None => {
                let (name, value) = match decisive(axis) {
                    Some(place) => place,
                    None => continue,
                };
                options.only.push((name, vec![value]));
            }
        }
    }
    options
}

/// The mean over the runs of a probe, controls included; `None` where the minor cannot be had.
fn value(results: &[RunResult], metric: &Metric, folder: &Path) -> Result<Option<f64>> {
    let mut values = Vec::new();
    for result in results {
        match &result.outcome {
            Outcome::Skipped { .. } => return Ok(None),
            Outcome::Done => values.extend(result.metrics.get(&metric.name)),
            other => {
                return Err(Error::Refused(format!(
                    "{} {}, so that the search cannot go on; {} keeps the run",
                    result.cell.id,
                    other.words(),
                    folder.display()
                )));
            }
        }
    }
    if values.is_empty() {
        return Err(Error::Refused(format!(
            "the runs in {} gave no {}",
            folder.display(),
            metric.name
        )));
    }
    Ok(Some(values.iter().sum::<f64>() / values.len() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::experiment_named;

    #[test]
    fn a_probe_is_one_block_of_one_arm_at_one_place_on_one_minor() {
        let experiment = experiment_named("lock-contention").expect("it is registered");
        let options = at_one_place(experiment, &PlanOptions::default());
        let plan = PlanOptions {
            version: Some("15.7".to_owned()),
            ..options
        };
        let plan = Plan::make(experiment, None, &plan).expect("a plan");
        assert!(plan.cells.iter().all(|cell| cell.at("clients") == "1024"));
        assert_eq!(plan.matrix.blocks, 1);
        let versions: Vec<_> = plan.matrix.arms.iter().map(|arm| &arm.version).collect();
        assert_eq!(versions, [&Some("15.7".to_owned())]);
    }

    #[test]
    fn an_unknown_metric_is_refused_with_those_that_are_there() {
        let experiment = experiment_named("lock-contention").expect("it is registered");
        let refused = metric(experiment, "speed")
            .expect_err("no metric")
            .to_string();
        assert!(
            refused.contains("there is tps, latency_p99_ms"),
            "{refused}"
        );
    }
}
