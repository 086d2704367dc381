//! `pgclinic.heal/1`: cures of single pages, as they are planned and as they were carried out.

use pgclinic_format::{BlockNo, Fork};
use serde::{Deserialize, Serialize};

use super::{
    FileKind, Finding, HealStatement, Level, NotChecked, Place, PlanStep, Target, Tool,
    ValueAnatomy,
};
use crate::plan::{Change, Safety};

/// The schema of [`HealDocument`].
pub const HEAL_SCHEMA: &str = "pgclinic.heal/1";

/// What became of a heal as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HealOutcome {
    /// Nothing was written: somebody has to consent first.
    Planned,
    /// All of it was written, read back, and the pages were checked again.
    Healed,
    /// All of it was written, and the check still finds damage on what was healed.
    DamageRemains,
    /// Some cures were left out, or a page could not be checked again.
    PartlyUndecided,
    /// The check finds no damaged page.
    NothingToHeal,
    /// The journal gave the first bytes back.
    Undone,
}

impl HealOutcome {
    /// As the JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            HealOutcome::Planned => "planned",
            HealOutcome::Healed => "healed",
            HealOutcome::DamageRemains => "damage-remains",
            HealOutcome::PartlyUndecided => "partly-undecided",
            HealOutcome::NothingToHeal => "nothing-to-heal",
            HealOutcome::Undone => "undone",
        }
    }
}

/// What became of one cure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CureOutcome {
    /// It waits for consent.
    Planned,
    /// Others were carried out, and nobody consented to this one.
    LeftOut,
    /// It was written, and the check finds no damage on it.
    Healed,
    /// It was written, and the check finds damage on it.
    DamageRemains,
    /// It was written, and the page could not be checked again.
    NotChecked,
    /// Its first bytes are back.
    Undone,
}

impl CureOutcome {
    /// As a person reads it.
    pub fn words(self) -> &'static str {
        match self {
            CureOutcome::Planned => "planned",
            CureOutcome::LeftOut => "left out: nobody consented",
            CureOutcome::Healed => "written, read back and checked",
            CureOutcome::DamageRemains => "written, and damage remains",
            CureOutcome::NotChecked => "written, and not checked again",
            CureOutcome::Undone => "undone",
        }
    }
}

/// The cluster at the moment of the plan: what must still be so when it is carried out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HealBasis {
    /// As text, since it does not fit a JSON number.
    pub system_identifier: String,
    /// BLAKE3 of `global/pg_control`, in hexadecimal: every start of a server changes it.
    pub control_file: String,
    /// Of a saved plan: SHA-256 of its requests and of the ids of its cures, in hexadecimal. One of
    /// them that was taken out by hand is missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<String>,
}

impl NotHealed {
    /// How many blocks it is about.
    pub fn page_count(&self) -> u64 {
        let ranges = self.blocks.iter();
        ranges.map(|[start, end]| end.saturating_sub(*start)).sum()
    }
}

/// Where pages were looked for that come back.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct HealEvidence {
    /// Directories with WAL.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wal: Vec<String>,
    /// Base backups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backups: Vec<String>,
    /// Incremental backups on the base backup.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incrementals: Vec<String>,
    /// Standbys and other copies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub standbys: Vec<String>,
}

/// Damage for which the plan has no cure, and what else there is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NotHealed {
    /// The first file of the fork.
    pub path: String,
    /// `schema.name`, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<String>,
    /// Half-open ranges of its blocks.
    pub blocks: Vec<[u64; 2]>,
    /// Only a lossy cure is left; otherwise what is damaged follows from something else.
    pub needs_loss: bool,
    /// Why.
    pub why: Vec<String>,
    /// What to type instead.
    pub commands: Vec<String>,
}

/// What damage was looked for, where nobody named a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HealScope {
    /// The level of the check.
    pub level: Level,
    /// Pages of indexes are given back as well, and not only listed.
    pub index_pages: bool,
    /// A real server rolled forward what our own redo does not know.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scratch: bool,
}

/// How far exact cures reach, in pages: blocks of relations that are damaged or missing, and pages
/// of status logs. Each counts once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct HealReach {
    /// All of them.
    pub pages: u64,
    /// Those of an exact cure.
    pub exact: u64,
    /// Those that only a lossy cure helps, whether it is in the plan or not.
    pub lossy: u64,
    /// Those with another way out, such as an index that is built again.
    pub other: u64,
}

impl HealReach {
    /// Of the cures of a plan, of what it does not heal, and of pages of so many bytes.
    fn of(document: &HealDocument) -> Self {
        let page_bytes = document.target.block_size.map_or(8192, u64::from).max(1);
        let mut reach = HealReach::default();
        for (cure, request) in document.cures.iter().zip(&document.request) {
            let pages = pages_of_cure(cure, request, page_bytes);
            match cure.safety {
                Safety::Exact => reach.exact += pages,
                Safety::Lossy | Safety::ShowOnly => reach.lossy += pages,
            }
        }
        for own in &document.not_healed {
            if own.needs_loss {
                reach.lossy += own.page_count();
            } else {
                reach.other += own.page_count();
            }
        }
        reach.pages = reach.exact + reach.lossy + reach.other;
        reach
    }
}

/// One, but for ends of files and for files of status logs; a segment of WAL has none.
fn pages_of_cure(cure: &Cure, request: &CureRequest, page_bytes: u64) -> u64 {
    if cure.place.kind == FileKind::Wal {
        return 0;
    }
    let grown = cure.pages.iter().filter_map(|page| page.change.growth());
    let grown: u64 = grown.map(|(_, len)| len.div_ceil(page_bytes)).sum();
    match (grown, request.item) {
        (0, None) => 1,
        (0, Some(pages)) => pages.into(),
        (grown, _) => grown,
    }
}

/// What somebody asked for: from it and the cluster's bytes follows the whole plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CureRequest {
    /// Name of the cure.
    pub cure: String,
    /// Any file of the relation, relative to the data directory.
    pub path: String,
    /// Block through all segments of the fork.
    pub block: BlockNo,
    /// Line pointer number; of `restore-status` how many pages there are from `block` on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u16>,
    /// Name of the column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
}

/// A field that gets another value, with PostgreSQL's own name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FieldChange {
    /// `page header`, `line pointer 7`, `tuple 7`, `visibility map`.
    pub of: String,
    /// `lp_flags`, `t_infomask`.
    pub name: String,
    /// Its value before.
    pub before: String,
    /// Its value after.
    pub after: String,
}

/// A page that a cure changes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PageChange {
    /// The file, relative to the data directory, with its segment.
    pub path: String,
    /// Fork.
    pub fork: Fork,
    /// Block through all segments of the fork.
    pub block: BlockNo,
    /// BLAKE3 of the whole page before, in hexadecimal.
    pub before: String,
    /// The same after.
    pub after: String,
    /// The bytes that differ; those that another cure of the plan wrote before count as before.
    pub change: Change,
}

/// A row that the table shows no longer, or shows otherwise.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HealRow {
    /// Block of the table.
    pub block: BlockNo,
    /// Line pointer number.
    pub item: u16,
    /// What became of it up to now, in words.
    pub state: String,
    /// It counts as a loss: somebody may see it today, and nobody will.
    pub lost: bool,
    /// Its values by column, long ones shortened; none where they cannot be read.
    pub values: Vec<ValueAnatomy>,
}

/// Entries of one index that lead to what is gone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DanglingEntries {
    /// Schema of the index.
    pub schema: String,
    /// Its name.
    pub index: String,
    /// How many; null where the index cannot be read.
    pub entries: Option<u64>,
    /// Why they are not known, or may be more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A file that a cure makes, replaces or sets aside, so that a server starts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HealFile {
    /// From the root of the data directory.
    pub path: String,
    /// What is done, in words.
    pub what: String,
}

/// What a server will show of a table once it has started.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TableFates {
    /// Its database; absent for shared relations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub relation: String,
    /// Rows that will be seen.
    pub rows: u64,
    /// Rows that will not be seen though their transaction may have been committed.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub hidden: u64,
    /// Rows that will be seen though they may have been deleted or replaced.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub kept: u64,
    /// Rows at which the server will stop with an error.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub undecided: u64,
    /// Pages without a readable row.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub pages_unreadable: u64,
}

impl TableFates {
    /// There are rows, or pages that may have had some.
    pub fn says_something(&self) -> bool {
        let counts = [
            self.rows,
            self.hidden,
            self.kept,
            self.undecided,
            self.pages_unreadable,
        ];
        counts.into_iter().any(|count| count > 0)
    }

    /// Something about its rows is not known any more.
    pub fn is_doubtful(&self) -> bool {
        self.hidden + self.kept + self.undecided + self.pages_unreadable > 0
    }
}

/// What belongs to a cure with which a server starts again.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StartCure {
    /// The files that it is about.
    pub files: Vec<HealFile>,
    /// What the server will show, by table; empty where no row changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<TableFates>,
}

/// One cure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cure {
    /// Follows from cluster, cure, place and the bytes of the page: what a user types to consent.
    pub id: String,
    /// Kebab-case.
    pub name: String,
    /// How sure it is.
    pub safety: Safety,
    /// Where.
    pub place: Place,
    /// What is done, in a sentence.
    pub summary: String,
    /// Why it is as safe as it says.
    pub evidence: Vec<String>,
    /// Fields before and after.
    pub fields: Vec<FieldChange>,
    /// Pages before and after.
    pub pages: Vec<PageChange>,
    /// Rows that go, or that come back.
    pub rows: Vec<HealRow>,
    /// How many rows are lost; null where nobody knows.
    pub rows_lost: Option<u64>,
    /// Entries of indexes that lead to what is gone.
    pub dangling: Vec<DanglingEntries>,
    /// What to know before.
    pub warnings: Vec<String>,
    /// For one with which a server starts again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Box<StartCure>>,
    /// What became of it.
    pub outcome: CureOutcome,
    /// What the check still finds on what was healed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
}

/// What was carried out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AppliedHeal {
    /// The data directory.
    pub pgdata: String,
    /// The directory of the journal that takes it back.
    pub journal: String,
    /// The directory was copied first, and this is the copy.
    pub is_copy: bool,
    /// How many changes were written.
    pub changes: u64,
    /// Files beside the journal with the rows that went.
    pub rows_saved: Vec<SavedRows>,
}

/// A file with rows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SavedRows {
    /// Its name in the journal's directory.
    pub file: String,
    /// Rows in it.
    pub rows: u64,
    /// Those of them whose values could not be decoded: they stand there as hexadecimal digits.
    pub as_hex: u64,
}

/// A real server, started on a copy of what was healed, that read everything.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct HealProof {
    /// Its version, as in 15.18.
    pub server: String,
    /// It started and took connections.
    pub started: bool,
    /// Databases in which it read.
    pub databases: u64,
    /// Relations that it was asked to read, indexes by scans in their order.
    pub relations: u64,
    /// Tables whose rows amcheck verified.
    pub tables_verified: u64,
    /// B-tree indexes that amcheck compared with their tables, entry by entry.
    pub indexes_verified: u64,
    /// Why amcheck was not asked, where it was not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_verified: Vec<String>,
    /// Row counts of the tables that were healed.
    pub counts: Vec<RowCount>,
    /// Its errors, and what amcheck reports.
    pub messages: Vec<String>,
}

impl HealProof {
    /// Nothing speaks against what was healed.
    pub fn holds(&self) -> bool {
        self.started && self.messages.is_empty() && self.counts.iter().all(RowCount::agrees)
    }
}

/// Rows of a table, counted twice.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RowCount {
    /// Database.
    pub database: String,
    /// Name with schema.
    pub relation: String,
    /// As the server counts them; null where it could not.
    pub server: Option<u64>,
    /// As the files hold them; null where that cannot be decided from them.
    pub files: Option<u64>,
}

impl RowCount {
    /// Both are known and the same, or the files alone do not decide.
    pub fn agrees(&self) -> bool {
        self.server.is_some() && self.files.is_none_or(|files| Some(files) == self.server)
    }
}

/// The whole document.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HealDocument {
    /// [`HEAL_SCHEMA`].
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// What it is about.
    pub target: Target,
    /// What became of it.
    pub outcome: HealOutcome,
    /// What must still be so when it is carried out.
    pub basis: HealBasis,
    /// What was asked for.
    pub request: Vec<CureRequest>,
    /// Where evidence was looked for; absent where cures were named by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<HealEvidence>,
    /// What damage was looked for; absent where cures were named by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<HealScope>,
    /// How far exact cures reach; absent where cures were named by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<HealReach>,
    /// Damage that no cure of this plan is for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_healed: Vec<NotHealed>,
    /// What could not be read, so that it may be damaged as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_checked: Vec<NotChecked>,
    /// Why it cannot be carried out here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub obstacles: Vec<String>,
    /// The cures, in the order in which they are done.
    pub cures: Vec<Cure>,
    /// What to know before.
    pub warnings: Vec<String>,
    /// Findings on the same pages that are not of this heal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_findings: Vec<Finding>,
    /// What to do afterwards, in order.
    pub follow_up: Vec<PlanStep>,
    /// What was carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<AppliedHeal>,
    /// The plan for a running server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<HealStatement>,
    /// What a real server made of a copy afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<HealProof>,
    /// Seconds it took.
    pub elapsed_s: f64,
}

impl HealDocument {
    /// Counts what exact cures reach, where damage was looked for.
    pub fn count_reach(&mut self) {
        self.reach = self.evidence.as_ref().map(|_| HealReach::of(self));
    }
}
