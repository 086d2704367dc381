//! `pgclinic.state/1`: what a run of `check` has done so far, so that another can go on where it
//! ended.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_format::wal::FileNumber;
use pgclinic_format::{BlockNo, Fork, Lsn, Oid};
use pgclinic_source::FileMark;
use serde::{Deserialize, Serialize};

use pgclinic_model::document::{
    CauseLinks, Coverage, Evidence, Finding, Level, NotChecked, RelationSummary, Target, Tool,
};

/// The state of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunState {
    /// `pgclinic.state/1`.
    pub schema: String,
    /// Who wrote it; only the same version goes on with it.
    pub tool: Tool,
    /// Files by which this copy of the cluster is known; none in older states, and of files that
    /// only a server has.
    #[serde(default)]
    pub files: Vec<FileMark>,
    /// What is checked.
    pub target: Target,
    /// How deep.
    pub level: Level,
    /// What part of it, in words.
    pub selection: String,
    /// Where the last checkpoint of the cluster was when the run began.
    pub checkpoint: String,
    /// Where the cluster was when the run began, for runs that only look at what changed since.
    #[serde(default)]
    pub begin: Option<Begin>,
    /// Where it is in the WAL, if the run only looks at pages that changed since then.
    #[serde(default)]
    pub since: Option<Lsn>,
    /// A server is at work on the cluster.
    #[serde(default)]
    pub running: bool,
    /// Nothing is left to do.
    pub complete: bool,
    /// What belongs to no database is done.
    pub(crate) whole: bool,
    /// The databases that were begun.
    pub(crate) databases: BTreeMap<Oid, DatabaseState>,
    /// What was seen.
    pub(crate) books: SavedBooks,
}

impl RunState {
    /// What was checked up to here.
    pub fn coverage(&self) -> &Coverage {
        &self.books.coverage
    }
}

/// A cluster at the begin of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Begin {
    /// The redo point of its last checkpoint: what was changed before it was on disk.
    pub redo: Lsn,
    /// The timeline of its WAL.
    pub timeline: u32,
    /// Folders with relation files, by tablespace and database.
    pub homes: Vec<(Oid, Oid)>,
}

/// What is done of a database.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct DatabaseState {
    /// Every relation is.
    pub(crate) complete: bool,
    /// Tables that are done, with their indexes and long values.
    pub(crate) tables: Vec<Owner>,
}

/// A table by its OID, or a file that no relation names by its tablespace and number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Owner {
    Table(Oid),
    File(Oid, Oid),
}

/// The books of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SavedBooks {
    pub(crate) coverage: Coverage,
    pub(crate) findings: Vec<SavedFindings>,
    pub(crate) relations: Vec<RelationSummary>,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) main_bytes: u64,
    /// Checksums of files that were read whole, in base64.
    #[serde(default)]
    pub(crate) sums: BTreeMap<String, String>,
    /// Small files that are booked.
    #[serde(default)]
    pub(crate) booked: BTreeSet<String>,
    /// Unchanged pages that were looked at again.
    #[serde(default)]
    pub(crate) unchanged: BTreeSet<(String, BlockNo)>,
    /// Beside a server: bytes of relation files that were looked at.
    #[serde(default)]
    pub(crate) looked_at: BTreeMap<String, u64>,
    /// Beside a server: pages that need a second look.
    #[serde(default)]
    pub(crate) suspects: SavedSuspects,
    /// Beside a server: tables whose indexes know pages that the files do not have.
    #[serde(default)]
    pub(crate) suspicious: SuspiciousTables,
    /// Beside a server: tables with an index or a sequence whose pages do not hang together.
    #[serde(default)]
    pub(crate) disconnected: BTreeSet<(Oid, Owner)>,
    /// Beside a server: what checks of files found once.
    #[serde(default)]
    pub(crate) held: Vec<SavedFinding>,
    /// Relation files that were not looked at whole, and folders that could not be listed; see
    /// `Books`.
    #[serde(default)]
    pub(crate) unread: BTreeSet<String>,
    /// What no later look at changed pages makes up for.
    #[serde(default)]
    pub(crate) open: Vec<OpenGap>,
}

/// Something that a run over changed pages does not look for, and that no run has looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct OpenGap {
    /// The first file of its relation, with which it goes.
    pub(crate) path: Option<String>,
    pub(crate) gap: NotChecked,
    /// Recovery was due, or a server at work: a run of which that is so tells it by itself.
    #[serde(default)]
    pub(crate) unsettled: bool,
}

/// A page, whatever the files are called in the next listing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Spot {
    pub(crate) file: FileNumber,
    pub(crate) fork: Fork,
    pub(crate) block: BlockNo,
}

/// A table by its database and its OID.
pub(crate) type Table = (Oid, Oid);

/// Tables in which the pass over the pages met what an index contradicts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SuspiciousTables(pub(crate) BTreeSet<Table>);

/// Pages that need a second look.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SavedSuspects {
    pub(crate) pages: Vec<Spot>,
    /// Those that are younger than the WAL that was known, with their LSN.
    pub(crate) young: Vec<(Lsn, Spot)>,
    /// How many more there were.
    pub(crate) omitted: u64,
}

/// Findings of one rule in one relation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct SavedFindings {
    pub(crate) relation: String,
    pub(crate) rule: String,
    /// How many there were, kept or not.
    pub(crate) total: u64,
    pub(crate) kept: Vec<SavedFinding>,
}

/// A finding with how it hangs together with others, which its own form leaves out.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct SavedFinding {
    pub(crate) finding: Finding,
    pub(crate) links: CauseLinks,
}

impl SavedFinding {
    pub(crate) fn of(finding: &Finding) -> Self {
        SavedFinding {
            links: finding.links.clone(),
            finding: finding.clone(),
        }
    }

    pub(crate) fn restored(self) -> Finding {
        Finding {
            links: self.links,
            ..self.finding
        }
    }
}
