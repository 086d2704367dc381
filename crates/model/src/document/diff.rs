//! Two copies of one cluster, block by block: `pgclinic.diff/1`.

use pgclinic_format::{BlockNo, Fork};
use serde::{Deserialize, Serialize};

use super::check::titled;
use super::{FileKind, NotChecked, Target, Tool};

/// Schema of the document.
pub const DIFF_SCHEMA: &str = "pgclinic.diff/1";

/// The answer in one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiffVerdict {
    /// Nothing differs but what may at any time.
    Same,
    /// Everything that differs follows from the WAL: one copy is older.
    Explained,
    /// Something differs that no WAL explains, or a copy is unsound.
    Contradictory,
    /// The copies went on by themselves, each on its timeline; nothing else contradicts.
    Parted,
    /// No contradiction, but not everything could be compared.
    Incomplete,
}

/// One of the two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Copy {
    /// The one named first.
    A,
    /// The one named second.
    B,
}

/// How the two copies of a block differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// In hint bits, the checksum, or space that nothing uses.
    Hints,
    /// One copy has a later version, and the WAL of the other brings it there.
    Replayed,
    /// One copy has a later version from after the other was taken.
    Later,
    /// The copy at fault is older than the checkpoint that must have written it: a write was lost,
    /// or an old page put back.
    Stale,
    /// Both are sound, carry the same LSN, and hold something else.
    Conflict,
    /// The copy at fault is no sound page.
    Unsound,
    /// Neither copy is a sound page.
    BothUnsound,
    /// Only one copy has the block, or it is empty in one, and WAL or a truncation explains why.
    Missing,
    /// Only one copy has the block, though the other must have it too.
    Lost,
    /// Changed on one timeline or on both after the copies parted; neither is the later version.
    Parted,
    /// Nothing tells whether WAL explains it: of different timelines, where the copies parted; of a
    /// block that is empty or gone at rest, whether the file was truncated.
    Undecided,
    /// One copy cannot be read.
    Unreadable,
}

impl Difference {
    /// All of them, mildest first.
    pub const ALL: [Difference; 12] = [
        Difference::Hints,
        Difference::Replayed,
        Difference::Later,
        Difference::Missing,
        Difference::Undecided,
        Difference::Unreadable,
        Difference::Parted,
        Difference::Stale,
        Difference::Lost,
        Difference::Conflict,
        Difference::Unsound,
        Difference::BothUnsound,
    ];

    /// The word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Difference::Hints => "hints",
            Difference::Replayed => "replayed",
            Difference::Later => "later",
            Difference::Stale => "stale",
            Difference::Conflict => "conflict",
            Difference::Unsound => "unsound",
            Difference::BothUnsound => "both-unsound",
            Difference::Missing => "missing",
            Difference::Lost => "lost",
            Difference::Parted => "parted",
            Difference::Undecided => "undecided",
            Difference::Unreadable => "unreadable",
        }
    }

    /// No WAL brings it about.
    pub fn is_contradiction(self) -> bool {
        matches!(
            self,
            Difference::Stale
                | Difference::Conflict
                | Difference::Unsound
                | Difference::BothUnsound
                | Difference::Lost
        )
    }
}

/// A block that differs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DiffBlock {
    /// Through all segments of the fork.
    pub block: BlockNo,
    /// How.
    pub difference: Difference,
    /// The copy that is older, at fault, or lacks the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<Copy>,
    /// `pd_lsn` in A; absent without the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lsn_a: Option<String>,
    /// `pd_lsn` in B; absent without the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lsn_b: Option<String>,
    /// What is wrong with the copy at fault, or what explains the difference.
    pub why: String,
}

/// A fork in which blocks differ.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DiffFork {
    /// Its database; absent for shared relations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Its schema, if a catalog tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Its name, if a catalog tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<String>,
    /// The table whose TOASTed values it holds, or whose TOAST table it is an index of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toast_of: Option<String>,
    /// The number in its file's name.
    pub filenode: u32,
    /// The first segment, below the data directory.
    pub path: String,
    /// Table, index and so on.
    pub kind: FileKind,
    /// The fork.
    pub fork: Fork,
    /// Blocks in A; absent where A has no such file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_a: Option<u64>,
    /// Blocks in B; absent where B has no such file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_b: Option<u64>,
    /// How many blocks differ in which way, worst first.
    pub counts: Vec<(Difference, u64)>,
    /// The first of them but hints, contradictions before others.
    pub blocks: Vec<DiffBlock>,
    /// Further ones, counted and not kept.
    pub blocks_omitted: u64,
}

/// A file beside the relations that differs: a relation map, or one with the status of
/// transactions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DiffFile {
    /// From the root of the data directory.
    pub path: String,
    /// What it is.
    pub kind: FileKind,
    /// How it differs.
    pub difference: Difference,
    /// The copy that is older, at fault, or lacks the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<Copy>,
    /// Pages of it that differ, counted from the beginning of the file; none of a relation map, and
    /// none where one copy lacks the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<u64>,
    /// What is wrong with the copy at fault, or what explains the difference.
    pub why: String,
}

/// Blocks and files in which the copies contradict each other, by who is at fault; of those that
/// the document names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Soundness {
    /// A is at fault.
    pub at_fault_a: u64,
    /// B is at fault.
    pub at_fault_b: u64,
    /// Both are sound by themselves, and one of them is wrong.
    pub undecided: u64,
}

/// What was compared, in blocks.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DiffCoverage {
    /// Bytes read of both copies.
    pub bytes_read: u64,
    /// Forks that both have.
    pub forks: u64,
    /// Blocks that both have.
    pub blocks: u64,
    /// Of them, equal to the byte.
    pub blocks_equal: u64,
    /// Blocks that one copy has alone, or that could not be read in one of them.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub blocks_of_one: u64,
    /// Blocks that a running server wrote between two looks: equal or gone at the last, or never
    /// settled.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub blocks_unsettled: u64,
    /// Relation maps and files with the status of transactions that were compared.
    #[serde(default)]
    pub files: u64,
    /// What was not compared, and why.
    pub not_checked: Vec<NotChecked>,
}

/// Where a copy stands in the WAL.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CopyPosition {
    /// Everything before it is in the files.
    pub redo: String,
    /// The end of its WAL.
    pub end: String,
    /// The timeline at that end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<u32>,
    /// More WAL is needed, and lies elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub goes_on_elsewhere: bool,
}

/// The whole document.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DiffDocument {
    /// `pgclinic.diff/1`.
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// The one named first.
    pub a: Target,
    /// The one named second.
    pub b: Target,
    /// Where A stands; null without a control file to trust.
    pub position_a: Option<CopyPosition>,
    /// Where B stands.
    pub position_b: Option<CopyPosition>,
    /// The copy whose WAL ends earlier; null where both end at the same place, where they parted,
    /// and where nobody can tell.
    pub older: Option<Copy>,
    /// Where the copies parted: up to there their WAL is the same, and behind it each has its own
    /// on its own timeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parted_at: Option<String>,
    /// The answer.
    pub verdict: DiffVerdict,
    /// Which copy may be relied on; absent in documents of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sound: Option<Soundness>,
    /// What was compared.
    pub coverage: DiffCoverage,
    /// Forks in which blocks differ, contradictions first.
    pub forks: Vec<DiffFork>,
    /// Files beside the relations that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<DiffFile>,
    /// Stopped by a signal before its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Seconds it took.
    pub elapsed_s: f64,
}

impl DiffCoverage {
    /// Blocks of both copies, each place once.
    pub fn blocks_in_all(&self) -> u64 {
        self.blocks.saturating_add(self.blocks_of_one)
    }
}

impl DiffDocument {
    /// Every block is equal, differs in one way, or was not settled.
    pub fn is_balanced(&self) -> bool {
        let counts = self.forks.iter().flat_map(|fork| &fork.counts);
        let differ: u64 = counts.map(|(_, blocks)| blocks).sum();
        let DiffCoverage {
            blocks_equal,
            blocks_unsettled,
            ..
        } = self.coverage;
        self.coverage.blocks_in_all() == blocks_equal + differ + blocks_unsettled
    }

    /// How many blocks differ in each way, worst first.
    pub fn counts(&self) -> Vec<(Difference, u64)> {
        let of = |difference: Difference| {
            let counts = self.forks.iter().flat_map(|fork| &fork.counts);
            let own = counts.filter(|(way, _)| *way == difference);
            own.map(|(_, count)| count).sum::<u64>()
        };
        let all = Difference::ALL.into_iter().rev();
        all.map(|way| (way, of(way)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

impl DiffFork {
    /// Nothing differs that matters.
    pub fn is_hints_only(&self) -> bool {
        self.counts.iter().all(|(way, _)| *way == Difference::Hints)
    }

    /// A block of it differs in this way.
    pub fn has(&self, difference: Difference) -> bool {
        self.counts.iter().any(|(way, _)| *way == difference)
    }

    /// A block of it contradicts the other copy.
    pub fn contradicts(&self) -> bool {
        self.counts.iter().any(|(way, _)| way.is_contradiction())
    }

    /// `schema.name`, or the file where no name is known.
    pub fn name(&self) -> String {
        match (&self.schema, &self.relation) {
            (Some(schema), Some(name)) => format!("{schema}.{name}"),
            _ => self.path.clone(),
        }
    }

    /// The same for people: `TOAST of public.docs`, `TOAST index of public.docs`.
    pub fn title(&self) -> String {
        titled(self.toast_of.as_deref(), self.kind).unwrap_or_else(|| self.name())
    }
}
