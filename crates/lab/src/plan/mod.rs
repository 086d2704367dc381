//! From a matrix to the list of runs in their order, with a hash and a price.
//!
//! ```text
//! Matrix ─► points x arms (+ A/A controls) ─► budget: what fits ─► blocks in random order ─► cost, hash
//! ```
//!
//! The hash covers what is asked, not where: the same plan on two machines has the same hash, so
//! that their results can be merged.

mod budget;
mod controls;
mod order;
mod points;

use serde::{Deserialize, Serialize};

use crate::cell::{Arm, Cell, Metric, Point};
use crate::cost::Cost;
use crate::error::{Error, Result};
use crate::experiment::{Experiment, Matrix, Scale, Use};
use crate::prepared_folder::PreparedFolder;
use crate::user_input::UserInput;

pub use budget::LeftOut;
use budget::{Bases, Fitted};
use order::Wanted;
pub use order::block_seed;
pub(crate) use points::is_plain;

/// The schema of `plan.json`.
pub const PLAN_SCHEMA: &str = "pgclinic.lab-plan/1";

/// What the person wants of the plan.
#[derive(Debug, Clone)]
pub struct PlanOptions {
    /// Sizes.
    pub scale: Scale,
    /// Orders the runs and makes the data.
    pub seed: u64,
    /// How often each cell is run, instead of what the experiment says.
    pub blocks: Option<u32>,
    /// Only these arms; all when empty.
    pub arms: Vec<String>,
    /// The version of all arms, instead of what the experiment says.
    pub version: Option<String>,
    /// Folders to compare, for an experiment whose arms are folders.
    pub folders: Vec<PreparedFolder>,
    /// Only these values of an axis, as (axis, values).
    pub only: Vec<(String, Vec<String>)>,
    /// What the person brings; the experiment was tailored to it already.
    pub yours: UserInput,
    /// All of it must fit in this time.
    pub minutes: Option<f64>,
    /// Everything that lies on disk at the same time must fit in this.
    pub disk_bytes: Option<u64>,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            scale: Scale::Quick,
            seed: 1,
            blocks: None,
            arms: Vec::new(),
            version: None,
            folders: Vec::new(),
            only: Vec::new(),
            yours: UserInput::default(),
            minutes: None,
            disk_bytes: None,
        }
    }
}

/// The runs to be made; `plan.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// [`PLAN_SCHEMA`].
    pub schema: String,
    /// The experiment's name.
    pub experiment: String,
    /// The text of a person's own experiment; absent for those of the register.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<String>,
    /// What the person brought to it.
    #[serde(default, skip_serializing_if = "UserInput::is_empty")]
    pub yours: UserInput,
    /// Sizes.
    pub scale: Scale,
    /// Orders the runs and makes the data.
    pub seed: u64,
    /// What is compared.
    pub matrix: Matrix,
    /// What is read off each run; the first decides.
    pub metrics: Vec<Metric>,
    /// Every run, in order.
    pub cells: Vec<Cell>,
    /// What did not fit the budget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// The estimate for all of it.
    pub cost: Cost,
    /// Bases are made anew in each block and removed after their runs, so that the disk holds one
    /// at a time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bases_by_block: bool,
    /// The budget in seconds, when one was given; what the plan leaves of it goes to the undecided
    /// points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_s: Option<f64>,
    /// The first of the spare blocks, whose cells are run only while their decision is open and the
    /// budget holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare_from: Option<u32>,
    /// Tells this plan from others.
    pub hash: String,
}

impl Plan {
    /// Makes the plan of an experiment. Refuses unknown arms, axes and values, and a budget that
    /// fits nothing.
    pub fn make(
        experiment: &dyn Experiment,
        own: Option<String>,
        options: &PlanOptions,
    ) -> Result<Self> {
        let unused = experiment.brought()?;
        let matrix = points::chosen(matrix(experiment, options)?, options)?;
        points::check_names(&matrix)?;
        let Fitted {
            mut matrix,
            points,
            mut left_out,
            bases,
        } = budget::fit(experiment, matrix, options)?;
        let asks = |arm: &Arm, point: &Point| experiment.asks(arm, point, options.scale);
        let repeated = controls::repeated(experiment, &matrix, &points, &asks);
        let wanted = Wanted {
            points: &points,
            asks: &asks,
            repeated: &repeated,
        };
        let cells = order::cells(&matrix, wanted, options.seed, None);
        if cells.is_empty() {
            return Err(Error::Refused(format!(
                "none of these arms is run at these values; `pgclinic lab plan {}` without --arm and --only says what is",
                experiment.name()
            )));
        }
        left_out.extend(holes(&matrix, &points, &asks));
        left_out.extend(unused);
        let cost = budget::price(experiment, &matrix, &cells, options.scale, bases);
        let spare_from = budget::spare_from(&matrix, &cost, options);
        if spare_from.is_some() {
            matrix.blocks = matrix.blocks.saturating_mul(2);
        }
        let bases_by_block = bases == Bases::ByBlock;
        let base_of = |cell: &Cell| base_name(experiment, &matrix, cell, options.scale);
        let base_of: Option<order::BaseOf<'_>> = if bases_by_block { Some(&base_of) } else { None };
        let cells = order::cells(&matrix, wanted, options.seed, base_of);
        let mut plan = Self {
            schema: PLAN_SCHEMA.to_owned(),
            experiment: experiment.name().to_owned(),
            own,
            yours: options.yours.clone(),
            scale: options.scale,
            seed: options.seed,
            matrix,
            metrics: experiment.metrics(),
            cells,
            left_out,
            cost,
            bases_by_block,
            spare_from,
            budget_s: options.minutes.map(|minutes| minutes * 60.0),
            hash: String::new(),
        };
        plan.hash = plan.count_hash();
        Ok(plan)
    }

    /// Over everything that is asked: not over prices, and not over the machine.
    fn count_hash(&self) -> String {
        let asked = (
            (&self.experiment, &self.own, &self.yours),
            (self.scale, self.seed),
            (&self.matrix, &self.metrics, &self.cells),
        );
        let text = serde_json::to_vec(&asked).expect("plain data can be written as JSON");
        let hash = blake3::hash(&text).to_hex();
        hash.get(..16).unwrap_or(&hash).to_owned()
    }

    /// Reads `plan.json` and holds it to its hash.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        let plan: Self = serde_json::from_slice(bytes)
            .map_err(|error| Error::Refused(format!("plan.json is no plan: {error}")))?;
        let counted = plan.count_hash();
        if plan.schema != PLAN_SCHEMA || plan.hash != counted {
            let (schema, hash) = (&plan.schema, &plan.hash);
            return Err(Error::Refused(format!(
                "plan.json ({schema}) says hash {hash} and holds a plan of hash {counted}: it was changed by hand, or written by another version. Make a new plan."
            )));
        }
        Ok(plan)
    }

    /// The arm of this name.
    pub fn arm(&self, name: &str) -> Option<&Arm> {
        self.matrix.arms.iter().find(|arm| arm.name == name)
    }

    /// Whether a cell belongs to a spare block.
    pub fn is_spare(&self, cell: &Cell) -> bool {
        self.spare_from.is_some_and(|first| cell.block >= first)
    }

    /// Blocks that are run whatever the decisions are.
    pub fn planned_blocks(&self) -> u32 {
        let before = |first: u32| first.saturating_sub(1);
        self.spare_from.map_or(self.matrix.blocks, before)
    }

    /// Runs that are made whatever the decisions are.
    pub fn required_runs(&self) -> usize {
        let required = |cell: &&Cell| !self.is_spare(cell);
        self.cells.iter().filter(required).count()
    }

    /// What these of its cells cost with their bases, on an empty site.
    pub(crate) fn price_of(&self, experiment: &dyn Experiment, cells: &[Cell]) -> Cost {
        let bases = if self.bases_by_block {
            Bases::ByBlock
        } else {
            Bases::Kept
        };
        budget::price(experiment, &self.matrix, cells, self.scale, bases)
    }

    /// The plan without this planned block and all that follow, with the reason among what is left
    /// out.
    pub(crate) fn without_blocks_from(&self, first: u32, why: String) -> Self {
        let planned = self.planned_blocks();
        let mut plan = self.clone();
        plan.cells.retain(|cell| cell.block < first);
        plan.matrix.blocks = first.saturating_sub(1);
        plan.spare_from = None;
        let gone = planned.saturating_sub(plan.matrix.blocks);
        let what = format!("{gone} of {planned} blocks");
        plan.left_out.push(LeftOut { what, why });
        plan
    }

    /// The metric that decides.
    pub fn primary(&self) -> Option<&Metric> {
        self.metrics.first()
    }
}

/// What of a matrix is not run whatever the budget.
fn holes(matrix: &Matrix, points: &[Point], asks: order::Asks<'_>) -> Option<LeftOut> {
    let of_arm = |arm: &Arm| points.iter().filter(|point| !asks(arm, point)).count();
    let holes: usize = matrix.arms.iter().map(of_arm).sum();
    let all = matrix.arms.len() * points.len();
    (holes > 0).then(|| LeftOut {
        what: format!("{holes} of {all} combinations"),
        why: "they ask nothing that the others do not answer".to_owned(),
    })
}

/// The experiment's own matrix, or its arms made from folders.
fn matrix(experiment: &dyn Experiment, options: &PlanOptions) -> Result<Matrix> {
    let mut matrix = experiment.matrix(options.scale);
    if !options.folders.is_empty() {
        matrix.arms = experiment.arms_in(&options.folders).ok_or_else(|| {
            let name = experiment.name();
            Error::Refused(format!(
                "the arms of {name} are no directories; `lab list {name}` says what they are"
            ))
        })?;
    }
    if options.version.is_some() {
        for arm in &mut matrix.arms {
            arm.version.clone_from(&options.version);
        }
    }
    Ok(matrix)
}

/// The name of a cell's base; cells of other servers or other `initdb` arguments have others.
fn base_name(experiment: &dyn Experiment, matrix: &Matrix, cell: &Cell, scale: Scale) -> String {
    let arm = matrix.arms.iter().find(|arm| arm.name == cell.arm);
    arm.map_or_else(String::new, |arm| {
        let base = experiment.base(cell, arm, scale);
        format!("{:?} {:?} {}", arm.version, arm.initdb, base.name)
    })
}

/// The bases that cells need, each once: (server, base, `initdb` arguments) with whether runs share
/// it.
pub(crate) fn bases(
    experiment: &dyn Experiment,
    matrix: &Matrix,
    cells: &[Cell],
    scale: Scale,
) -> Vec<(String, Use)> {
    let mut found: Vec<(String, String, Use)> = Vec::new();
    for cell in cells {
        let Some(arm) = matrix.arms.iter().find(|arm| arm.name == cell.arm) else {
            continue;
        };
        let base = experiment.base(cell, arm, scale);
        let key = format!("{:?} {:?} {}", arm.version, arm.initdb, base.name);
        if found.iter().all(|(known, _, _)| *known != key) {
            found.push((key, base.name, base.used_as));
        }
    }
    found
        .into_iter()
        .map(|(_, name, used_as)| (name, used_as))
        .collect()
}
