//! `pgclinic.drill/1` and `pgclinic.drill-blind/1`: the scoreboards of a drill.

use serde::{Deserialize, Serialize};

use super::{Coverage, Level, Place, Target, Tool, is_zero};

/// What a real server said when it was started on the damaged copy and every relation was read.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ServerAnswer {
    /// The server started.
    pub started: bool,
    /// A backend died.
    pub crashed: bool,
    /// Messages that the undamaged cluster does not give, in the order of their first appearance.
    pub messages: Vec<String>,
    /// Rows that differ from the undamaged cluster without any message, by relation.
    pub silent: Vec<String>,
}

/// How an injury of a drill ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowOutcome {
    /// It was found, and every expectation held.
    Passed,
    /// Nothing found it, as its declaration says, and every other expectation held.
    Blind,
    /// An expectation did not hold.
    Failed,
}

/// How many injuries of a drill ended in which way.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct OutcomeCounts {
    /// Found, and every expectation held.
    pub passed: u64,
    /// Not found, as declared.
    pub blind: u64,
    /// An expectation did not hold.
    pub failed: u64,
}

impl OutcomeCounts {
    /// Counts these rows.
    pub fn of(rows: &[DrillRow]) -> Self {
        rows.iter().fold(Self::default(), |mut counts, row| {
            match row.outcome {
                RowOutcome::Passed => counts.passed += 1,
                RowOutcome::Blind => counts.blind += 1,
                RowOutcome::Failed => counts.failed += 1,
            }
            counts
        })
    }

    /// All of them.
    pub fn all(&self) -> u64 {
        self.passed + self.blind + self.failed
    }
}

/// One injury on one copy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DrillRow {
    /// Name of the injury.
    pub injury: String,
    /// `raw`, or `sealed`: with the checksum made true again.
    pub variant: String,
    /// Where it hurt.
    pub place: Place,
    /// What was done, in words.
    pub wound: String,
    /// Rules that fired, most important first.
    pub found_by: Vec<String>,
    /// The first finding's words.
    pub message: Option<String>,
    /// Likely cause that was named.
    pub cause: Option<String>,
    /// Rules that had to fire and did not.
    pub missing: Vec<String>,
    /// Rules that fired and were not allowed to.
    pub unexpected: Vec<String>,
    /// Why no check can see it.
    pub blind: Option<String>,
    /// Why the server noticed nothing: it does not look there. Absent where it looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_does_not_look: Option<String>,
    /// What findings foretold that the server would say.
    pub server_says: Option<String>,
    /// The server really said so; null when nothing was foretold.
    pub server_says_true: Option<bool>,
    /// The server's answer with data checksums on; null when it was not run so.
    pub with_checksums: Option<ServerAnswer>,
    /// The server's answer with data checksums off.
    pub without_checksums: Option<ServerAnswer>,
    /// The journal brought the first bytes back.
    pub undone: bool,
    /// What a person without the journal can do.
    pub way_out: Option<String>,
    /// How it ended.
    pub outcome: RowOutcome,
    /// Expectations that did not hold.
    pub failures: Vec<String>,
}

/// An injury that was not run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NotRun {
    /// Name of the injury.
    pub injury: String,
    /// Why.
    pub why: String,
}

/// The scoreboard of a drill.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DrillDocument {
    /// `pgclinic.drill/1`.
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// The cluster that was hurt.
    pub target: Target,
    /// Level of the checks.
    pub level: Level,
    /// The ledger of the check of the undamaged cluster.
    pub coverage: Coverage,
    /// `postgres (PostgreSQL) 18.6`.
    pub server: String,
    /// The seed that chose the wounds.
    pub seed: u64,
    /// One row an injury and variant.
    pub rows: Vec<DrillRow>,
    /// How many of them ended in which way.
    pub outcomes: OutcomeCounts,
    /// What was not run.
    pub not_run: Vec<NotRun>,
    /// Rows that only `--all` makes: injuries beyond one of each family and of each kind of page
    /// or file.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// Every expectation held; what is blind was declared so.
    pub passed: bool,
    /// Stopped by a signal before its end: what was not run stands in `not_run`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Seconds it took.
    pub elapsed_s: f64,
}

/// One blind shot.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BlindTrial {
    /// `bytes`, `sector`, `page`, …
    pub kind: String,
    /// Where.
    pub place: Place,
    /// The bytes were changed in this half-open range of the file.
    pub file_bytes: [u64; 2],
    /// The server's reading differs: an error, a crash or other rows.
    pub hurts: bool,
    /// What the server said or what differed, first line.
    pub server: Option<String>,
    /// Rules that fired.
    pub found_by: Vec<String>,
    /// Data checksums were on.
    pub checksums: bool,
}

/// The score of one kind of shot.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BlindKind {
    /// Kind of shot.
    pub kind: String,
    /// Data checksums were on.
    pub checksums: bool,
    /// Shots.
    pub trials: u64,
    /// Shots that we found.
    pub found: u64,
    /// Shots that change what the server reads.
    pub hurtful: u64,
    /// Of them, shots that we found.
    pub hurtful_found: u64,
}

/// The scoreboard of a blind drill.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BlindDocument {
    /// `pgclinic.drill-blind/1`.
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// The cluster that was hurt.
    pub target: Target,
    /// Level of the checks.
    pub level: Level,
    /// The ledger of the check of the undamaged cluster.
    pub coverage: Coverage,
    /// `postgres (PostgreSQL) 18.6`.
    pub server: String,
    /// The seed that chose the shots.
    pub seed: u64,
    /// Scores by kind, with and without checksums.
    pub kinds: Vec<BlindKind>,
    /// Shots that were not found, hurtful ones first.
    pub misses: Vec<BlindTrial>,
    /// The undamaged cluster gave no finding and every shot was undone.
    pub passed: bool,
    /// Stopped by a signal before its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Shots that were not fired, as it was stopped before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shots_left: u64,
    /// Seconds it took.
    pub elapsed_s: f64,
}
