//! `pgclinic.drill-loss/1`: what a check and a salvage say of a cluster of which something is
//! missing, beside the truth.

use serde::{Deserialize, Serialize};

use super::{Coverage, Level, NotRun, Target, Tool, Verdict};

/// One kind of loss on one copy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LossCell {
    /// What was hurt: `pg_class`, `table-with-key`, `control-file`, …
    pub witness: String,
    /// How: `zeroed`, `zeroed-fifth`, `garbage`, `truncated`, `missing`, `old-copy`.
    pub hurt: String,
    /// `stopped`, `without-checksums`, `running` or `crashed`.
    pub state: String,
    /// The files and blocks that were hurt.
    pub place: String,
    /// Rows that the server gives of the undamaged cluster.
    pub rows: u64,
    /// Of them, rows that the salvage wrote to the files of their tables.
    pub written: u64,
    /// Of them, rows that it did not write there.
    pub lost: u64,
    /// Rows that it wrote and that the server does not give.
    pub wrong: u64,
    /// Rows that it wrote and marked: partial, carved, mended or uncertain.
    pub marked: u64,
    /// Rows that it says are lost.
    pub predicted: u64,
    /// What the check says at level `structure`.
    pub verdict_at_structure: Verdict,
    /// What it says at level `full`.
    pub verdict: Verdict,
    /// Rules of severity damage that fired at level `full`.
    pub found_by: Vec<String>,
    /// How the salvage ended: `whole`, `damaged`, `incomplete`, or why it did not work.
    pub outcome: String,
    /// Why nothing can see this loss; absent where it must be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blind: Option<String>,
    /// Every expectation held.
    pub passed: bool,
    /// Which did not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
}

/// The matrix of losses.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LossDocument {
    /// `pgclinic.drill-loss/1`.
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// The cluster that was hurt.
    pub target: Target,
    /// The deepest level of the checks.
    pub level: Level,
    /// The ledger of the check of the undamaged cluster.
    pub coverage: Coverage,
    /// `postgres (PostgreSQL) 18.6`.
    pub server: String,
    /// The seed that chose the blocks.
    pub seed: u64,
    /// One a witness, hurt and state.
    pub cells: Vec<LossCell>,
    /// Cells that were not run, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<NotRun>,
    /// Every expectation held.
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
