//! What the plan costs, and what of it fits into the time and the disk that the person gives.
//!
//! Time is saved in this order: blocks down to three, then values of the longest axis (its ends
//! stay), then blocks down to one. Disk is saved by making bases anew in each block, so that one
//! lies there at a time, and then by leaving the largest values out. What is left of the time at
//! the end goes to the points that are still undecided.

use serde::{Deserialize, Serialize};

use crate::cell::{Arm, Cell, Point};
use crate::cost::Cost;
use crate::error::{Error, Result};
use crate::experiment::{Experiment, Matrix, Scale, Use};
use crate::plan::order::Wanted;
use crate::plan::{PlanOptions, bases, controls, order, points};

/// Below three blocks no interval means much.
const BLOCKS_ENOUGH: u32 = 3;

/// Something that the matrix holds and the plan does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// `2 of 5 blocks`, `rows = 1000000`.
    pub what: String,
    /// Why.
    pub why: String,
}

/// How long bases stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bases {
    /// From their first run to their last: all lie side by side.
    Kept,
    /// In each block anew, one after the other.
    ByBlock,
}

/// The estimate for all cells with their bases. Bases lie beside the runs; a run that has a copy
/// needs its space again.
pub(super) fn price(
    experiment: &dyn Experiment,
    matrix: &Matrix,
    cells: &[Cell],
    scale: Scale,
    kept: Bases,
) -> Cost {
    let none = Cost::default();
    let runs = cells
        .iter()
        .fold(none, |sum, cell| sum.then(experiment.cost(cell, scale)));
    let bases = bases(experiment, matrix, cells, scale);
    let filled = bases.iter().map(|(name, used_as)| {
        let fill = experiment.fill_cost(name, scale);
        match used_as {
            Use::Shared => fill,
            Use::Copy => fill.beside(Cost {
                seconds: 0.0,
                written_bytes: 0,
                ..fill
            }),
        }
    });
    let all = match kept {
        Bases::Kept => filled.fold(runs, Cost::beside),
        Bases::ByBlock => {
            let mut blocks: Vec<u32> = cells.iter().map(|cell| cell.block).collect();
            blocks.sort_unstable();
            blocks.dedup();
            let one_by_one = filled.fold(none, Cost::then);
            let every_block = blocks.iter().fold(none, |sum, _| sum.then(one_by_one));
            runs.beside(every_block)
        }
    };
    Cost {
        // Three decimals: more are not known, and more do not come back from JSON as they went in.
        seconds: (all.seconds * 1e3).round() / 1e3,
        ..all
    }
}

/// What fits.
pub(super) struct Fitted {
    pub(super) matrix: Matrix,
    pub(super) points: Vec<Point>,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) bases: Bases,
}

/// The matrix and the points that fit, and what was left out for it.
pub(super) fn fit(
    experiment: &dyn Experiment,
    mut matrix: Matrix,
    options: &PlanOptions,
) -> Result<Fitted> {
    let mut left_out = Vec::new();
    let bases = fit_disk(experiment, &mut matrix, options, &mut left_out)?;
    if let Some(minutes) = options.minutes {
        let ask = CostQuery {
            experiment,
            options,
            bases,
        };
        fit_time(&ask, &mut matrix, minutes, &mut left_out)?;
    }
    let points = points::all(&matrix.axes);
    Ok(Fitted {
        matrix,
        points,
        left_out,
        bases,
    })
}

/// Whose price is asked.
#[derive(Clone, Copy)]
struct CostQuery<'a> {
    experiment: &'a dyn Experiment,
    options: &'a PlanOptions,
    bases: Bases,
}

/// The first spare block, when the planned blocks are enough to judge and leave some of the time.
pub(super) fn spare_from(matrix: &Matrix, cost: &Cost, options: &PlanOptions) -> Option<u32> {
    let budget = options.minutes? * 60.0;
    let leaves_some = cost.seconds < budget * 0.95;
    (leaves_some && matrix.blocks >= BLOCKS_ENOUGH).then(|| matrix.blocks.saturating_add(1))
}

impl CostQuery<'_> {
    fn price_of(&self, matrix: &Matrix) -> Cost {
        let (scale, seed) = (self.options.scale, self.options.seed);
        let asks = |arm: &Arm, point: &Point| self.experiment.asks(arm, point, scale);
        let points = points::all(&matrix.axes);
        let repeated = controls::repeated(self.experiment, matrix, &points, &asks);
        let wanted = Wanted {
            points: &points,
            asks: &asks,
            repeated: &repeated,
        };
        let cells = order::cells(matrix, wanted, seed, None);
        price(self.experiment, matrix, &cells, scale, self.bases)
    }

    /// What lies on disk at once. It is the same however many blocks there are.
    fn disk_of(&self, matrix: &Matrix) -> u64 {
        let one_block = Matrix {
            blocks: 1,
            ..matrix.clone()
        };
        self.price_of(&one_block).disk_bytes
    }

    /// Takes blocks off until the rest takes so many seconds at most, or only `enough` are left.
    /// Each block takes the same time, so that halves find the number.
    fn take_blocks_off(&self, matrix: &mut Matrix, enough: u32, seconds: f64) {
        let (mut fits, mut too_many) = (enough, matrix.blocks);
        while too_many.saturating_sub(fits) > 1 {
            matrix.blocks = fits + (too_many - fits) / 2;
            if self.price_of(matrix).seconds <= seconds {
                fits = matrix.blocks
            } else {
                too_many = matrix.blocks
            }
        }
        matrix.blocks = fits;
    }
}

/// Makes bases anew in each block where that is enough or helps, then drops the largest values of
/// the axes, until what lies on disk at once fits.
fn fit_disk(
    experiment: &dyn Experiment,
    matrix: &mut Matrix,
    options: &PlanOptions,
    left_out: &mut Vec<LeftOut>,
) -> Result<Bases> {
    let of = |bases: Bases| CostQuery {
        experiment,
        options,
        bases,
    };
    let Some(limit) = options.disk_bytes else {
        return Ok(Bases::Kept);
    };
    let [kept, by_block] = [Bases::Kept, Bases::ByBlock].map(|one| of(one).disk_of(matrix));
    if kept <= limit {
        return Ok(Bases::Kept);
    }
    let bases = if by_block < kept {
        Bases::ByBlock
    } else {
        Bases::Kept
    };
    loop {
        let ask = of(bases);
        let needs = ask.disk_of(matrix);
        if needs <= limit {
            return Ok(bases);
        }
        let Some(smaller) = cheapest_cut(&ask, matrix, needs) else {
            return Err(Error::Refused(format!(
                "the smallest plan needs {} MB of disk and {} MB are allowed: allow more with --disk, or choose a smaller --scale",
                needs >> 20,
                limit >> 20
            )));
        };
        let why = format!("it does not fit into {} MB of disk", limit >> 20);
        left_out.push(LeftOut {
            what: smaller.1,
            why,
        });
        *matrix = smaller.0;
    }
}

/// The matrix without the one value whose absence saves most disk; `None` when no value does.
fn cheapest_cut(ask: &CostQuery<'_>, matrix: &Matrix, now: u64) -> Option<(Matrix, String)> {
    let mut best: Option<(u64, Matrix, String)> = None;
    for (at, axis) in matrix.axes.iter().enumerate() {
        for value in axis.values.iter().filter(|_| axis.values.len() > 1) {
            let mut without = matrix.clone();
            if let Some(axis) = without.axes.get_mut(at) {
                axis.values.retain(|other| other != value);
            }
            let needs = ask.disk_of(&without);
            if needs < best.as_ref().map_or(now, |(best, _, _)| *best) {
                best = Some((needs, without, format!("{} = {value}", axis.name)));
            }
        }
    }
    best.map(|(_, matrix, what)| (matrix, what))
}

fn fit_time(
    ask: &CostQuery<'_>,
    matrix: &mut Matrix,
    minutes: f64,
    left_out: &mut Vec<LeftOut>,
) -> Result<()> {
    let why = || format!("it does not fit into {minutes} minutes");
    let (asked, limit) = (matrix.blocks, minutes * 60.0);
    loop {
        let seconds = ask.price_of(matrix).seconds;
        if seconds <= limit {
            break;
        }
        if matrix.blocks > BLOCKS_ENOUGH {
            ask.take_blocks_off(matrix, BLOCKS_ENOUGH, limit);
        } else if let Some(what) = thin_longest_axis(matrix) {
            left_out.push(LeftOut { what, why: why() });
        } else if matrix.blocks > 1 {
            ask.take_blocks_off(matrix, 1, limit);
        } else {
            return Err(Error::Refused(format!(
                "the smallest plan takes {:.1} minutes and {minutes} are allowed: allow more with --minutes, or choose fewer arms with --arm",
                seconds / 60.0
            )));
        }
    }
    if matrix.blocks < asked {
        let what = format!("{} of {asked} blocks", asked - matrix.blocks);
        left_out.push(LeftOut { what, why: why() });
    }
    Ok(())
}

/// Takes every second value out of the longest axis; first and last stay. `None` when every axis
/// has at most two.
fn thin_longest_axis(matrix: &mut Matrix) -> Option<String> {
    let axis = matrix
        .axes
        .iter_mut()
        .filter(|axis| axis.values.len() > 2)
        .max_by_key(|axis| axis.values.len())?;
    let last = axis.values.len() - 1;
    let (mut kept, mut gone) = (Vec::new(), Vec::new());
    for (at, value) in axis.values.drain(..).enumerate() {
        if at % 2 == 0 || at == last {
            kept.push(value);
        } else {
            gone.push(value);
        }
    }
    axis.values = kept;
    // With an even count the last two would both stay.
    if last % 2 == 1 && axis.values.len() > 2 {
        gone.push(axis.values.remove(axis.values.len() - 2));
    }
    Some(format!("{} = {}", axis.name, gone.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::experiment_named;
    use crate::plan::Plan;

    fn plan(minutes: f64) -> Result<Plan> {
        let experiment = experiment_named("duplicate-inserts").expect("it is in the register");
        let options = PlanOptions {
            minutes: Some(minutes),
            ..PlanOptions::default()
        };
        Plan::make(experiment, None, &options)
    }

    #[test]
    fn much_time_makes_spare_blocks_and_little_time_leaves_blocks_out() {
        let rich = plan(60.0).expect("a plan");
        assert_eq!((rich.spare_from, rich.matrix.blocks), (Some(4), 6));
        assert_eq!(rich.required_runs() * 2, rich.cells.len());
        let poor = plan(5.0).expect("a plan");
        assert!(poor.spare_from.is_none() && poor.matrix.blocks < 3);
        assert!(poor.cost.seconds <= 300.0 && !poor.left_out.is_empty());
        assert!(plan(0.01).is_err());
    }

    #[test]
    fn as_many_blocks_stay_as_fit_and_one_more_would_not() {
        let experiment = experiment_named("duplicate-inserts").expect("it is in the register");
        let plan = |blocks: u32, minutes: Option<f64>| {
            let options = PlanOptions {
                blocks: Some(blocks),
                minutes,
                ..PlanOptions::default()
            };
            Plan::make(experiment, None, &options).expect("a plan")
        };
        let seconds = |blocks: u32| plan(blocks, None).cost.seconds;
        for fits in [3, 4, 17, 39] {
            // Half a block more than fits.
            let minutes = (seconds(fits) + seconds(fits + 1)) / 120.0;
            let fitted = plan(40, Some(minutes));
            let all_values = fitted.matrix.axes == plan(1, None).matrix.axes;
            assert_eq!(
                (fitted.planned_blocks(), all_values),
                (fits, true),
                "{fits}"
            );
            let gone = format!("{} of 40 blocks", 40 - fits);
            assert!(fitted.left_out.iter().any(|left| left.what == gone));
        }
    }

    #[test]
    fn bases_are_made_anew_in_each_block_where_they_would_not_lie_side_by_side() {
        let experiment = experiment_named("large-object-dump").expect("it is in the register");
        let plan = |disk_bytes: Option<u64>| {
            let options = PlanOptions {
                scale: Scale::Published,
                disk_bytes,
                only: vec![("object-bytes".to_owned(), vec!["0".to_owned()])],
                ..PlanOptions::default()
            };
            Plan::make(experiment, None, &options).expect("a plan")
        };
        let all = plan(None);
        let less = plan(Some(all.cost.disk_bytes - 1));
        assert!(!all.bases_by_block && less.bases_by_block);
        assert_eq!(less.left_out, all.left_out, "every value still fits");
        assert_eq!(less.cells.len(), all.cells.len());
        assert!(less.cost.disk_bytes < all.cost.disk_bytes);
        assert!(
            less.cost.seconds > all.cost.seconds,
            "bases are filled again"
        );
        let read = Plan::from_json(&serde_json::to_vec(&less).expect("JSON"));
        assert_eq!(read.expect("the same plan"), less);
    }

    #[test]
    fn the_hash_covers_what_is_asked() {
        let (one, same, other) = (plan(60.0), plan(60.0), plan(5.0));
        let hash = |plan: Result<Plan>| plan.expect("a plan").hash;
        let one = hash(one);
        assert_eq!(one, hash(same));
        assert_ne!(one, hash(other));
    }
}
