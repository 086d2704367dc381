//! `pgclinic.rehearsal/1`: random damage on a copy of a user's own cluster, and what became of it.

use serde::{Deserialize, Serialize};

use super::{Coverage, Level, Place, ServerAnswer, Target, Tool};

/// `schema` of the document.
pub const REHEARSAL_SCHEMA: &str = "pgclinic.rehearsal/1";

/// Who dealt with the damage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RehearsalKind {
    /// `check` and `salvage`.
    Drill,
    /// A user, whose work is marked.
    Exam,
}

/// What a user made of an injury.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InjuryState {
    /// The bytes are those of the original.
    Restored,
    /// The bytes are others, and no check finds damage there.
    Mended,
    /// The bytes are others, and a check finds damage there.
    Changed,
    /// The damage is there as it was made.
    Untouched,
}

impl InjuryState {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            InjuryState::Restored => "restored",
            InjuryState::Mended => "mended",
            InjuryState::Changed => "changed",
            InjuryState::Untouched => "untouched",
        }
    }

    /// Nothing is left of the damage.
    pub fn is_dealt_with(self) -> bool {
        matches!(self, InjuryState::Restored | InjuryState::Mended)
    }
}

/// One injury of the copy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RehearsalInjury {
    /// Name of the injury.
    pub injury: String,
    /// Where it hurts.
    pub place: Place,
    /// The table whose TOASTed values are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toast_of: Option<String>,
    /// What was done, in words.
    pub damage: String,
    /// Rules that fired there, those that the injury is about first.
    pub found_by: Vec<String>,
    /// The first finding's words.
    pub message: Option<String>,
    /// A rule that names the damage itself fired, not a checksum alone.
    pub explained: bool,
    /// What the server would say of it.
    pub server_says: Option<String>,
    /// What to do, by the finding, else by the injury.
    pub way_out: Option<String>,
    /// Why no check is sure to see it once the checksum of the page is right.
    pub blind: Option<String>,
    /// In an exam, what became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<InjuryState>,
}

/// A finding that no injury explains.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FalseAlarm {
    /// The rule.
    pub rule: String,
    /// Where.
    pub place: Place,
    /// What it says.
    pub message: String,
}

/// The rows of one table that was hurt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RehearsalTable {
    /// Its database.
    pub database: String,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub table: String,
    /// Rows of the original.
    pub rows: u64,
    /// Of them, rows that were read of the damaged copy as they were.
    pub saved: u64,
    /// Rows that were read of the copy and that the original does not have.
    pub wrong: u64,
}

/// What a server says of the damaged copy.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RehearsalServer {
    /// Its version; absent where none was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Why none was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_asked: Option<String>,
    /// What it said when it read everything.
    pub answer: ServerAnswer,
}

/// What is compared from one rehearsal to the next.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct RehearsalScore {
    /// Injuries that were made.
    pub injuries: u64,
    /// Of them, those at whose place a check found something.
    pub detected: u64,
    /// Of them, those of which a finding names the damage itself.
    pub explained: u64,
    /// Not found, for a reason that is known.
    pub blind: u64,
    /// Findings that no injury explains.
    pub false_alarms: u64,
    /// In an exam, injuries that were dealt with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dealt_with: Option<u64>,
    /// Rows of the tables that were hurt.
    pub rows: u64,
    /// Of them, those that were saved.
    pub rows_saved: u64,
    /// Rows that the original does not have.
    pub rows_wrong: u64,
    /// Seconds that the copy took.
    pub copy_s: f64,
    /// Seconds that the check of the damaged copy took.
    pub check_s: f64,
    /// Seconds that reading its rows took.
    pub salvage_s: f64,
}

/// A rehearsal, with its score.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RehearsalDocument {
    /// `pgclinic.rehearsal/1`.
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// Who dealt with the damage.
    pub kind: RehearsalKind,
    /// The original, which is never written to.
    pub target: Target,
    /// Level of the checks.
    pub level: Level,
    /// The ledger of the check of the undamaged copy.
    pub coverage: Coverage,
    /// The seed that chose the injuries.
    pub seed: u64,
    /// Pages of the copy that could be hurt.
    pub pages: u64,
    /// Bytes that were copied.
    pub copied_bytes: u64,
    /// What a server says of the damaged copy; absent in an exam.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<RehearsalServer>,
    /// Each injury.
    pub injuries: Vec<RehearsalInjury>,
    /// Findings that no injury explains.
    pub false_alarms: Vec<FalseAlarm>,
    /// Tables that were hurt.
    pub tables: Vec<RehearsalTable>,
    /// The sums.
    pub score: RehearsalScore,
    /// The score of an earlier rehearsal, where one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<RehearsalScore>,
    /// Every injury that is not blind was found, or in an exam dealt with, and there is no false
    /// alarm.
    pub passed: bool,
    /// Seconds it took.
    pub elapsed_s: f64,
}
