//! `pgclinic.check/1`: the findings document.

use std::fmt;

use pgclinic_format::{BlockNo, Fork, Oid};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Level, MeasureDocument, PlanStep, Target, Tool, is_zero};
use crate::plan::Safety;
use crate::rule::Severity;

/// The answer in one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Everything the level promises was looked at and is right.
    Healthy,
    /// At least one finding of severity damage.
    Damaged,
    /// No damage seen, but not everything could be looked at.
    Incomplete,
}

impl Verdict {
    /// The word at the beginning of the report.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Healthy => "healthy",
            Verdict::Damaged => "damaged",
            Verdict::Incomplete => "incomplete",
        }
    }
}

/// What kind of thing a finding is about.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// An ordinary or partitioned table's file.
    Table,
    /// An index of any access method.
    Index,
    /// A TOAST relation.
    Toast,
    /// A sequence.
    Sequence,
    /// A materialised view.
    MaterializedView,
    /// A relation that no catalog names.
    Unknown,
    /// `global/pg_control`.
    ControlFile,
    /// `pg_filenode.map`.
    RelationMap,
    /// A file of `pg_xact`, `pg_multixact` and the like.
    Slru,
    /// Write-ahead log.
    Wal,
    /// Any other file.
    #[default]
    File,
}

impl FileKind {
    /// The word in the JSON document, with a blank for people.
    pub fn words(self) -> &'static str {
        match self {
            FileKind::Table => "table",
            FileKind::Index => "index",
            FileKind::Toast => "toast",
            FileKind::Sequence => "sequence",
            FileKind::MaterializedView => "materialized view",
            FileKind::Unknown => "unknown relation",
            FileKind::ControlFile => "control file",
            FileKind::RelationMap => "relation map",
            FileKind::Slru => "slru",
            FileKind::Wal => "wal",
            FileKind::File => "file",
        }
    }
}

/// A column.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct AttributePlace {
    /// `attnum`, from 1.
    pub number: u16,
    /// `attname`, when the catalogs were readable.
    pub name: Option<String>,
}

/// Where something is.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Place {
    /// The file, relative to the data directory, with its segment.
    pub path: String,
    /// Name of the database; shared relations have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Name of the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Name of the relation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<String>,
    /// OID of the database; 0 for shared relations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_oid: Option<Oid>,
    /// OID of the relation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation_oid: Option<Oid>,
    /// Number in the file's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filenode: Option<Oid>,
    /// Kind of thing.
    pub kind: FileKind,
    /// Fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Fork>,
    /// Block through all segments of the fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<BlockNo>,
    /// Line pointer number, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u16>,
    /// Column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribute: Option<AttributePlace>,
    /// Half-open offsets in the page; without a block, in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<[u64; 2]>,
}

impl Place {
    /// `public.docs`, or the file's path where the name is unknown.
    pub fn relation_name(&self) -> String {
        match (&self.schema, &self.relation) {
            (Some(schema), Some(relation)) => format!("{schema}.{relation}"),
            (None, Some(relation)) => relation.clone(),
            _ => self.path.clone(),
        }
    }
}

impl fmt::Display for Place {
    /// `public.docs (base/5/16384.1), block 131073, item 7, column body, bytes 12-14`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.relation_name())?;
        if self.relation.is_some() {
            write!(f, " ({})", self.path)?;
        }
        if let Some(fork) = self.fork.filter(|fork| *fork != Fork::Main) {
            write!(f, ", fork {fork}")?;
        }
        if let Some(block) = self.block {
            write!(f, ", block {block}")?;
        }
        if let Some(item) = self.item {
            write!(f, ", item {item}")?;
        }
        if let Some(attribute) = &self.attribute {
            match &attribute.name {
                Some(name) => write!(f, ", column {name}")?,
                None => write!(f, ", column {}", attribute.number)?,
            }
        }
        match self.bytes {
            Some([start, end]) => write!(f, ", bytes {start}-{}", end.saturating_sub(1).max(start)),
            None => Ok(()),
        }
    }
}

/// The likely cause of a damaged page.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cause {
    /// `stray-write`, `torn-page`, `zeroed-sectors`, `zeroed-header`, `text-overwrite`, `bit-flip`,
    /// `checksum-not-written`, …
    pub name: String,
    /// 0 to 1.
    pub confidence: f64,
    /// The evidence.
    pub facts: Map<String, Value>,
}

impl Cause {
    /// Nothing but a match that turns up by chance on half of all pages.
    pub fn is_a_guess(&self) -> bool {
        self.confidence < 0.3
    }
}

/// What may be lost.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct AtRisk {
    /// Rows that cannot be trusted or reached; null when nothing tells.
    pub rows: Option<u64>,
    /// A scan of the table stops at these rows, so that the server gives none of the others either.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole_table: bool,
}

/// A way out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Remedy {
    /// Kebab-case name of the way.
    pub name: String,
    /// Whether it restores what was there, loses rows, or is only advice.
    pub safety: Safety,
    /// What to type, or a sentence where no command does it.
    pub command: String,
}

/// One defect at one place.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// Hash of system identifier, rule and place: two runs agree.
    pub id: String,
    /// The likely cause; null when nothing tells.
    pub cause: Option<Cause>,
    /// The finding this one follows from.
    pub caused_by: Option<String>,
    /// Name of the rule.
    pub rule: String,
    /// Severity of the rule.
    pub severity: Severity,
    /// Where.
    pub place: Place,
    /// What was seen, with its numbers.
    pub message: String,
    /// The numbers.
    pub facts: Map<String, Value>,
    /// What the server of this major would say; null when it cannot be foretold.
    pub server_says: Option<String>,
    /// What may be lost.
    pub at_risk: AtRisk,
    /// Ways out, best first.
    pub remedies: Vec<Remedy>,
    /// Of a run that did not look for it: the LSN at which the run began that saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_from: Option<String>,
    /// Somebody knows of it: it no longer decides the exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<Ignored>,
    /// What it would follow from.
    #[serde(skip)]
    pub links: CauseLinks,
}

/// Why a finding does not decide the exit code.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ignored {
    /// As whoever ignores it says.
    pub reason: String,
    /// The last day, as 2027-01-31.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// How a finding hangs together with others, while they are put in order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CauseLinks {
    /// It came from comparing places, not from a page alone.
    pub compared: bool,
    /// It explains the other findings of its page, or, without a block, of its fork.
    #[serde(default)]
    pub root: bool,
    /// The transaction whose end the row and the commit log tell differently.
    #[serde(default)]
    pub contradicts: Option<u32>,
    /// Damage there explains it.
    pub follows: Vec<Origin>,
    /// Of an index or of long values: the table that they belong to.
    pub owner: Option<Owner>,
}

/// The table of an index or of long values.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Owner {
    /// OID in `pg_class`.
    pub oid: Oid,
    /// As SQL takes it.
    pub name: String,
    /// `schema.name`.
    pub qualified_name: String,
    /// All of its pages were read in this run.
    pub is_examined: bool,
    /// No other index, visibility map or count of pages tells how long it was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unvouched: bool,
}

/// So the entry of what was not checked begins whose table may have lost rows, which nothing that
/// can be read knows of.
pub const ROWS_MAY_BE_LOST: &str = "rows that may be lost";

/// A page, or a whole fork, whose damage would explain a finding elsewhere.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Origin {
    /// OID of the database.
    pub database: Oid,
    /// Number of the file.
    pub filenode: Oid,
    /// Fork.
    pub fork: Fork,
    /// `None` for any page of the fork.
    pub block: Option<BlockNo>,
}

/// The fact with the values of rows that the message of its finding ends with.
pub const SHOWN_VALUES: &str = "shown_values";
/// The fact with what somebody wrote over a page.
pub const SHOWN_TEXT: &str = "text";

impl Finding {
    /// Takes the values of rows out of its words.
    pub fn withhold_values(&mut self) {
        if let Some(Value::String(values)) = self.facts.remove(SHOWN_VALUES) {
            self.message = self.message.replacen(&format!(": {values}"), "", 1);
        }
        if let Some(cause) = &mut self.cause {
            cause.facts.remove(SHOWN_TEXT);
        }
    }
}

/// Why a cluster that needs recovery is not compared with itself. A gap with this reason is closed
/// by the recovery alone.
pub const RECOVERY_IS_DUE: &str = "the cluster needs recovery, which may change them: copy it, start the copy, stop it and check it again";

/// Something that was not looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NotChecked {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
    /// No reader of files could decide it; it does not change the exit code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inherent: bool,
}

/// The ledger: bytes and relations that were seen went somewhere.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Coverage {
    /// Bytes of all files that were selected.
    pub bytes_seen: u64,
    /// Bytes whose checks ran.
    pub bytes_checked: u64,
    /// Bytes that were left out.
    pub bytes_skipped: u64,
    /// Bytes that could not be read.
    pub bytes_unreadable: u64,
    /// Whole pages read.
    pub pages: u64,
    /// Of them, pages of zeros only.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub zeroed_pages: u64,
    /// Pages that were passed over since they have not changed since another run; their bytes are
    /// counted nowhere else.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pages_unchanged: u64,
    /// Relations that were looked at: files of tables, indexes, sequences and long values.
    pub relations: u64,
    /// All that were selected, by their files or by a catalog: those that were looked at, left
    /// out, unreadable or missing.
    #[serde(default)]
    pub relations_selected: u64,
    /// Relations that were left out, by nature or as the run was interrupted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub relations_skipped: u64,
    /// Relations of which some page is there and could not be read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub relations_unreadable: u64,
    /// Relations that are known and have no file.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub relations_missing: u64,
    /// Who was asked whether something is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub witnesses: Vec<WitnessCount>,
    /// Directories of relations that are there and cannot be reached: how many bytes lie in them is
    /// not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub directories_unreadable: u64,
    /// What was not checked, and why.
    pub not_checked: Vec<NotChecked>,
    /// What lies beyond the level that was asked for; it does not change the verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beyond_level: Vec<NotChecked>,
}

impl Coverage {
    /// The books balance; if not, it is our own mistake.
    pub fn is_balanced(&self) -> bool {
        let relations = self.relations
            + self.relations_skipped
            + self.relations_unreadable
            + self.relations_missing;
        self.bytes_seen == self.bytes_checked + self.bytes_skipped + self.bytes_unreadable
            && self.relations_selected == relations
    }

    /// Books relations as what became of them.
    pub fn book_relations(&mut self, fate: RelationFate, relations: u64) {
        self.relations_selected += relations;
        *match fate {
            RelationFate::Checked => &mut self.relations,
            RelationFate::Skipped => &mut self.relations_skipped,
            RelationFate::Unreadable => &mut self.relations_unreadable,
            RelationFate::Missing => &mut self.relations_missing,
        } += relations;
    }

    /// Books witnesses of a kind that were asked.
    pub fn asked(&mut self, witness: Witness, asked: u64, out_of_reach: u64) {
        if asked + out_of_reach == 0 {
            return;
        }
        let mut known = self.witnesses.iter_mut();
        if let Some(own) = known.find(|own| own.witness == witness) {
            own.asked += asked;
            own.out_of_reach += out_of_reach;
            return;
        }
        self.witnesses.push(WitnessCount {
            witness,
            asked,
            out_of_reach,
        });
        self.witnesses.sort_by_key(|own| own.witness);
    }
}

/// What became of a relation that was selected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RelationFate {
    /// All of its pages were read.
    Checked,
    /// It was left out.
    Skipped,
    /// Some page is there and could not be read.
    Unreadable,
    /// It has no file.
    Missing,
}

/// What else knows that something should be there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Witness {
    /// Indexes whose entries name blocks and rows of a table, catalogs included.
    IndexEntries,
    /// Visibility maps, which have bits for pages that were there.
    VisibilityMaps,
    /// Counts of pages in `pg_class`.
    PageCounts,
    /// Records of the write-ahead log.
    WalRecords,
}

/// How many witnesses of a kind were asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WitnessCount {
    /// Their kind.
    pub witness: Witness,
    /// How many were asked.
    pub asked: u64,
    /// How many are there and could not be read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub out_of_reach: u64,
}

/// What a run did with what has not changed since another run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SinceSummary {
    /// A page with an older LSN has not changed.
    pub lsn: String,
    /// Unchanged pages that were passed over.
    pub pages_unchanged: u64,
    /// Unchanged pages that were looked at all the same, as the other run found something in them.
    pub pages_again: u64,
    /// Findings of the other run that this one did not look for, and tells as they were known.
    pub findings_carried: u64,
}

/// A relation with findings, for the map of its blocks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RelationSummary {
    /// Name of the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Name of the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Name of the relation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<String>,
    /// Of a TOAST table or its index: the table whose long values it holds, `schema.name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toast_of: Option<String>,
    /// OID of the database; 0 for shared relations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_oid: Option<Oid>,
    /// OID of the relation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation_oid: Option<Oid>,
    /// Number in the file's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filenode: Option<Oid>,
    /// Its first file.
    pub path: String,
    /// Kind.
    pub kind: FileKind,
    /// Fork.
    pub fork: Fork,
    /// Blocks of the fork.
    pub blocks: u64,
    /// Half-open ranges of blocks with damage.
    pub damaged: Vec<[u64; 2]>,
}

impl RelationSummary {
    /// `schema.name`, or the file where no name is known.
    pub fn name(&self) -> String {
        match (&self.schema, &self.relation) {
            (Some(schema), Some(name)) => format!("{schema}.{name}"),
            (None, Some(name)) => name.clone(),
            (_, None) => self.path.clone(),
        }
    }

    /// The same for people: `TOAST of public.docs`, `TOAST index of public.docs`.
    pub fn title(&self) -> String {
        titled(self.toast_of.as_deref(), self.kind).unwrap_or_else(|| self.name())
    }
}

/// What the long values of a table are called.
pub(super) fn titled(toast_of: Option<&str>, kind: FileKind) -> Option<String> {
    let owner = toast_of?;
    Some(match kind {
        FileKind::Index => format!("TOAST index of {owner}"),
        _ => format!("TOAST of {owner}"),
    })
}

/// A page as it was found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Evidence {
    /// The file with its segment.
    pub path: String,
    /// Block through all segments of the fork.
    pub block: BlockNo,
    /// The bytes, in base64.
    pub page: String,
}

/// The whole document.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CheckDocument {
    /// `pgclinic.check/1`.
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// What was checked.
    pub target: Target,
    /// How deep.
    pub level: Level,
    /// The answer.
    pub verdict: Verdict,
    /// The cluster was not shut down in good order; replay would change it.
    pub needs_recovery: bool,
    /// Of a run that only looked at what changed since another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<SinceSummary>,
    /// The ledger.
    pub coverage: Coverage,
    /// Relations with findings.
    pub relations: Vec<RelationSummary>,
    /// Damaged pages as they were found.
    pub evidence: Vec<Evidence>,
    /// Findings counted.
    pub findings_total: u64,
    /// Findings counted and not kept.
    pub findings_omitted: u64,
    /// The same by rule and relation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<OmittedFindings>,
    /// Findings, worst first.
    pub findings: Vec<Finding>,
    /// What to do about all of them, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<PlanStep>,
    /// The measurements that were taken of the same pages (`check --with measure`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Box<MeasureDocument>>,
    /// Seconds it took.
    pub elapsed_s: f64,
    /// Stopped by a signal before its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

/// Findings of one rule in one relation or file that were counted and not kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OmittedFindings {
    /// The rule.
    pub rule: String,
    /// The database of the relation; 0 of shared ones, absent without a relation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_oid: Option<u32>,
    /// The relation, where a catalog names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation_oid: Option<u32>,
    /// The number in the name of its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filenode: Option<u32>,
    /// The file, of the last one that was kept.
    pub path: String,
    /// How many.
    pub findings: u64,
}

impl CheckDocument {
    /// Something could not be looked at that a recovery of the cluster would not settle.
    pub fn has_gaps_beyond_recovery(&self) -> bool {
        let coverage = &self.coverage;
        let mut gaps = coverage.not_checked.iter();
        let other = gaps.any(|gap| !gap.inherent && gap.why != RECOVERY_IS_DUE);
        other || coverage.bytes_skipped > 0 || coverage.bytes_unreadable > 0
    }
}
