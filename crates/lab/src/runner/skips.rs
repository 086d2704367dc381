//! What a plan would skip on this machine, told before it is run.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pgclinic_servers::Installation;

use crate::cell::{Arm, Cell};
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::external_server;
use crate::plan::Plan;
use crate::servers_of_arms::{Site, SiteOptions};

/// What of a plan this machine cannot run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkippedHere {
    /// Arms and points, as (what, why), those too that are skipped only if a server cannot be
    /// fetched.
    pub lines: Vec<(String, String)>,
    /// Arms without a run that could be made.
    pub arms: Vec<String>,
    /// Runs of the plan, controls included, that are known to be skipped.
    pub runs: usize,
}

/// Arms and points that would be skipped. Servers that are here are started once and asked; nothing
/// is fetched.
pub fn skipped_here(
    experiment: &dyn Experiment,
    plan: &Plan,
    options: &SiteOptions,
    interrupted: Arc<AtomicBool>,
) -> Result<SkippedHere> {
    if let Some(given) = &options.url {
        external_server::check(experiment, given)?;
    }
    let mut site = Site::open(options.clone(), interrupted)?;
    let cells = plan.cells.iter();
    let cells: Vec<&Cell> = cells
        .filter(|cell| cell.block == 1 && !cell.is_control)
        .collect();
    let mut skips: Vec<Skip<'_>> = Vec::new();
    for arm in &plan.matrix.arms {
        let own = cells.iter().filter(|cell| cell.arm == arm.name);
        match whole_arm(&mut site, arm)? {
            Hindrance::Always(why) => skips.extend(own.map(|cell| Skip {
                cell,
                why: why.clone(),
                is_certain: true,
            })),
            Hindrance::ToBeFetched(version) => skips.extend(own.map(|cell| {
                let needs = experiment.needs(cell, arm);
                let mut missing = needs.iter();
                let missing = missing.find_map(|need| need.missing_if_fetched(&version, arm));
                let not_yet = || {
                    format!("only if it cannot be fetched: PostgreSQL {version} is not here yet")
                };
                Skip {
                    cell,
                    is_certain: missing.is_some(),
                    why: missing.unwrap_or_else(not_yet),
                }
            })),
            Hindrance::AsItsCells(installation) => {
                let Some(features) = site.known_features(&installation) else {
                    continue;
                };
                // Looking for it elsewhere takes its time: cells of an arm need the same.
                let mut asked: BTreeMap<String, Option<String>> = BTreeMap::new();
                skips.extend(own.filter_map(|cell| {
                    let needs = experiment.needs(cell, arm);
                    let why = needs.iter().find_map(|need| {
                        let asked = asked.entry(format!("{need:?}"));
                        let answer = asked
                            .or_insert_with(|| need.missing_here(features, &installation, arm));
                        answer.clone()
                    })?;
                    Some(Skip {
                        cell,
                        why,
                        is_certain: true,
                    })
                }));
            }
        }
    }
    Ok(SkippedHere {
        lines: worded(&skips, &cells, plan),
        arms: impossible_arms(&skips, &cells, plan),
        runs: certain_runs(&skips, plan),
    })
}

/// Arms all of whose cells are known to be skipped.
fn impossible_arms(skips: &[Skip<'_>], cells: &[&Cell], plan: &Plan) -> Vec<String> {
    let is_skipped = |cell: &&&Cell| {
        skips
            .iter()
            .any(|skip| skip.is_certain && skip.cell.id == cell.id)
    };
    let names = plan.matrix.arms.iter().map(|arm| &arm.name);
    let without_runs = names.filter(|name| {
        let mut own = cells.iter().filter(|cell| cell.arm == **name).peekable();
        own.peek().is_some() && own.all(|cell| is_skipped(&cell))
    });
    without_runs.cloned().collect()
}

/// Runs at the places that are known to be skipped.
fn certain_runs(skips: &[Skip<'_>], plan: &Plan) -> usize {
    let is_skipped = |cell: &&Cell| {
        let same = |skip: &Skip<'_>| {
            skip.is_certain && skip.cell.arm == cell.arm && skip.cell.point == cell.point
        };
        !plan.is_spare(cell) && skips.iter().any(same)
    };
    plan.cells.iter().filter(is_skipped).count()
}

/// A cell that would be skipped.
struct Skip<'a> {
    cell: &'a Cell,
    why: String,
    /// Not only if a server cannot be fetched.
    is_certain: bool,
}

/// What stands in the way of an arm.
enum Hindrance {
    /// All its cells would be skipped.
    Always(String),
    /// This version of its server is not here yet.
    ToBeFetched(String),
    /// Its server answers; each cell has its own needs.
    AsItsCells(Installation),
}

fn whole_arm(site: &mut Site, arm: &Arm) -> Result<Hindrance> {
    let found = match site.installation_here(arm) {
        Err(Error::Skip(why)) => return Ok(Hindrance::Always(why)),
        found => found?,
    };
    let Some(installation) = found else {
        let version = arm.version.as_deref().unwrap_or("18");
        return Ok(Hindrance::ToBeFetched(version.to_owned()));
    };
    match site.learn(&installation) {
        Ok(()) => Ok(Hindrance::AsItsCells(installation)),
        Err(Error::Interrupted) => Err(Error::Interrupted),
        Err(error) => Ok(Hindrance::Always(error.to_string())),
    }
}

/// One line for all cells of an arm, of an axis's value, or of both, that are skipped for one
/// reason; else one a cell.
fn worded(skips: &[Skip<'_>], cells: &[&Cell], plan: &Plan) -> Vec<(String, String)> {
    let why_of = |cell: &Cell| skips.iter().find(|skip| skip.cell.id == cell.id);
    let mut reasons: Vec<&str> = Vec::new();
    for skip in skips {
        if !reasons.contains(&skip.why.as_str()) {
            reasons.push(&skip.why);
        }
    }
    let mut lines = Vec::new();
    for why in reasons {
        let is_for_it = |cell: &&Cell| why_of(cell).is_some_and(|skip| skip.why == why);
        let mut rest: Vec<&Cell> = cells.iter().copied().filter(is_for_it).collect();
        for slice in slices(plan) {
            let is_whole = cells
                .iter()
                .filter(|cell| slice.holds(cell))
                .all(|cell| why_of(cell).is_some_and(|skip| skip.why == why));
            if is_whole && rest.iter().any(|cell| slice.holds(cell)) {
                rest.retain(|cell| !slice.holds(cell));
                lines.push((slice.to_string(), why.to_owned()));
            }
        }
        let single = rest.iter().map(|cell| (at(cell), why.to_owned()));
        lines.extend(single);
    }
    lines
}

/// The cells of an arm, of an axis's value, or of both.
struct Slice<'a> {
    arm: Option<&'a str>,
    value: Option<(&'a str, &'a str)>,
}

impl Slice<'_> {
    fn holds(&self, cell: &Cell) -> bool {
        let is_value = |(axis, value): (&str, &str)| cell.at(axis) == value;
        self.arm.is_none_or(|arm| cell.arm == arm) && self.value.is_none_or(is_value)
    }
}

impl fmt::Display for Slice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.arm, self.value) {
            (Some(arm), Some((axis, value))) => write!(f, "{arm} {axis} {value}"),
            (Some(arm), None) => f.write_str(arm),
            (None, Some((axis, value))) => write!(f, "{axis} {value}"),
            (None, None) => f.write_str("everything"),
        }
    }
}

/// The widest first.
fn slices(plan: &Plan) -> Vec<Slice<'_>> {
    let arms = || plan.matrix.arms.iter().map(|arm| arm.name.as_str());
    let axes = plan.matrix.axes.iter();
    let values: Vec<(&str, &str)> = axes
        .flat_map(|axis| {
            axis.values
                .iter()
                .map(|value| (axis.name.as_str(), value.as_str()))
        })
        .collect();
    let of_arms = arms().map(|arm| (Some(arm), None));
    let of_values = values.iter().map(|value| (None, Some(*value)));
    let of_both = arms().flat_map(|arm| values.iter().map(move |value| (Some(arm), Some(*value))));
    let all = of_arms.chain(of_values).chain(of_both);
    all.map(|(arm, value)| Slice { arm, value }).collect()
}

/// `arm axis value, axis value`.
fn at(cell: &Cell) -> String {
    let point = cell.point.iter();
    let at: Vec<String> = point
        .map(|(axis, value)| format!("{axis} {value}"))
        .collect();
    format!("{} {}", cell.arm, at.join(", "))
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment_named;
    use crate::plan::PlanOptions;

    fn told(is_skipped: impl Fn(&Cell) -> bool) -> Vec<String> {
        let experiment = experiment_named("connection-memory").expect("it is registered");
        let plan = Plan::make(experiment, None, &PlanOptions::default()).expect("a plan");
        let cells: Vec<&Cell> = plan
            .cells
            .iter()
            .filter(|cell| cell.block == 1 && !cell.is_control)
            .collect();
        let skips: Vec<Skip<'_>> = cells
            .iter()
            .filter(|cell| is_skipped(cell))
            .map(|cell| Skip {
                cell,
                why: "because".into(),
                is_certain: true,
            })
            .collect();
        let lines = worded(&skips, &cells, &plan);
        lines.into_iter().map(|(what, _)| what).collect()
    }

    #[test]
    fn what_is_skipped_alike_is_one_line() {
        assert_eq!(
            told(|cell| cell.at("huge-pages") == "on"),
            ["huge-pages on"]
        );
        assert_eq!(told(|cell| cell.arm == "idle"), ["idle"]);
        assert_eq!(
            told(|cell| cell.arm == "idle" && cell.at("connections") == "50"),
            ["idle connections 50"]
        );
        assert_eq!(
            told(|cell| cell.arm == "idle" || cell.at("connections") == "50"),
            ["idle", "connections 50"]
        );
        assert_eq!(told(|_| false), [""; 0]);
    }

    #[test]
    fn an_arm_is_impossible_when_all_its_runs_are_known_to_be_skipped() {
        let experiment = experiment_named("jit-memory").expect("it is registered");
        let plan = Plan::make(experiment, None, &PlanOptions::default()).expect("a plan");
        let cells: Vec<&Cell> = plan
            .cells
            .iter()
            .filter(|cell| cell.block == 1 && !cell.is_control)
            .collect();
        let of = |arm: &str, is_certain: bool| Skip {
            cell: cells.iter().find(|cell| cell.arm == arm).expect("a cell"),
            why: String::new(),
            is_certain,
        };
        let skips = [of("15.5", true), of("15.6", false)];
        assert_eq!(impossible_arms(&skips, &cells, &plan), ["15.5"]);
        assert_eq!(certain_runs(&skips, &plan), 4);
    }

    #[test]
    fn what_is_skipped_alone_is_named_whole() {
        let is_one = |cell: &Cell| {
            cell.arm == "all-buffers"
                && cell.at("connections") == "50"
                && cell.at("huge-pages") == "on"
        };
        assert_eq!(told(is_one), ["all-buffers connections 50, huge-pages on"]);
    }
}
