//! `pgclinic.drill-start/1`: servers that were kept from starting, and what a plan promised beside
//! what the server then showed.

use serde::{Deserialize, Serialize};

use super::{NotRun, Target, Tool};
use crate::plan::Safety;

/// The schema of [`StartDrillDocument`].
pub const START_DRILL_SCHEMA: &str = "pgclinic.drill-start/1";

/// A cure of a plan, in short.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StartDrillCure {
    /// Its name.
    pub name: String,
    /// How sure it is.
    pub safety: Safety,
}

/// The rows of a table: committed, promised by the plan, and shown by the server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StartDrillTable {
    /// Its name.
    pub relation: String,
    /// Rows before the wound.
    pub rows: u64,
    /// Rows that the plan says will be seen; null where it says that the server will refuse some.
    pub predicted: Option<u64>,
    /// Rows that COPY gave; null where it was refused.
    pub measured: Option<u64>,
}

impl StartDrillTable {
    /// The plan said what came.
    pub fn agrees(&self) -> bool {
        self.predicted == self.measured
    }

    /// Rows that the plan gave up; nothing where it did not know.
    pub fn predicted_loss(&self) -> Option<i64> {
        self.predicted
            .map(|own| self.rows.cast_signed() - own.cast_signed())
    }

    /// Rows that are gone; nothing where the server refuses some. Less than none where rows came
    /// back that were deleted.
    pub fn measured_loss(&self) -> Option<i64> {
        self.measured
            .map(|own| self.rows.cast_signed() - own.cast_signed())
    }
}

/// One wound on one copy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StartDrillCell {
    /// What was done, in words.
    pub wound: String,
    /// How the server had ended: `crash` or `shutdown`.
    pub before: String,
    /// What the server said instead of starting.
    pub says: String,
    /// Pages of the textbook that explain it.
    pub explained_by: Vec<String>,
    /// The cures of the plan, in their order.
    pub cures: Vec<StartDrillCure>,
    /// The journal gave the first bytes back before the plan was carried out again.
    pub undone: bool,
    /// The server started after the plan.
    pub started: bool,
    /// Its tables then.
    pub tables: Vec<StartDrillTable>,
    /// Every expectation held.
    pub passed: bool,
    /// Which did not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
}

/// Every way in which a server comes not to start.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StartDrillDocument {
    /// [`START_DRILL_SCHEMA`].
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// The cluster that was hurt.
    pub target: Target,
    /// `postgres (PostgreSQL) 18.6`.
    pub server: String,
    /// The seed that chose the content.
    pub seed: u64,
    /// One a wound.
    pub cells: Vec<StartDrillCell>,
    /// What was not run, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<NotRun>,
    /// Every expectation held, and all of them were run.
    pub passed: bool,
    /// Stopped by a signal before its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Cells that were not run, as it was stopped before.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub cells_left: u64,
    /// Seconds it took.
    pub elapsed_s: f64,
}
