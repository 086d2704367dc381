//! `pgclinic.checksums/1`: what enabling or disabling data checksums did or would do, and where the
//! nodes of a cluster differ.

use pgclinic_format::BlockNo;
use serde::{Deserialize, Serialize};

use super::{NotChecked, PlanStep, Target, Tool};

/// Schema of the document.
pub const CHECKSUMS_SCHEMA: &str = "pgclinic.checksums/1";

/// What was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChecksumsAction {
    /// Every page gets its checksum, then the control file says so.
    Enable,
    /// The control file says that pages have none; pages stay as they are.
    Disable,
    /// What was written is taken back.
    Undo,
    /// Nodes are compared, and nothing is written.
    Compare,
}

/// How it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChecksumsOutcome {
    /// Written and read back.
    Done,
    /// It was so before; nothing was written.
    Unchanged,
    /// Only shown; nothing was written.
    Planned,
    /// Damaged pages are in the way; nothing was written.
    Refused,
    /// Somebody stopped it; the cluster starts as before.
    Interrupted,
    /// Nodes or clusters do not match.
    Differs,
    /// Nodes or clusters match.
    Same,
    /// Some of it could not be read.
    Incomplete,
}

/// What becomes of a damaged page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DamagedPageChoice {
    /// Nobody decided.
    Undecided,
    /// It gets no checksum, so that the server refuses it.
    Left,
    /// It gets a checksum as it stands, as the user said.
    Included,
}

/// A page that the structure check calls damaged.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DamagedPage {
    /// The file with its segment.
    pub path: String,
    /// Through all segments of the fork.
    pub block: BlockNo,
    /// `schema.name`, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<String>,
    /// What is wrong with it.
    pub rules: Vec<String>,
    /// The first of its findings in words.
    pub message: String,
    /// What becomes of it.
    pub choice: DamagedPageChoice,
}

/// A node that is compared with the target.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ChecksumsNode {
    /// `standby` or `new cluster`.
    pub role: String,
    /// The node.
    pub target: Target,
    /// It has what the target has, or will have.
    pub matches: Option<bool>,
    /// What else stands in the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The whole document.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ChecksumsDocument {
    /// [`CHECKSUMS_SCHEMA`].
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// The cluster.
    pub target: Target,
    /// What was asked for.
    pub action: ChecksumsAction,
    /// How it ended.
    pub outcome: ChecksumsOutcome,
    /// Why, where it did not go as asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Files of relations.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Pages that have or need a checksum.
    pub pages: u64,
    /// Pages that were never written, which have none.
    pub pages_new: u64,
    /// Pages whose stored checksum is another one.
    pub pages_to_write: u64,
    /// Of them, those that were written.
    pub pages_written: u64,
    /// Pages that the structure check calls damaged, the first 1,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedPage>,
    /// Further ones.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub damaged_omitted: u64,
    /// Findings of damage that belong to no page.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub findings_elsewhere: u64,
    /// What could not be read or examined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_checked: Vec<NotChecked>,
    /// Standbys, or the new cluster of an upgrade.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<ChecksumsNode>,
    /// What to do, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<PlanStep>,
    /// What takes it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<String>,
    /// Everything was made lasting before the control file changed.
    pub synced: bool,
    /// Seconds it took.
    pub elapsed_s: f64,
}
