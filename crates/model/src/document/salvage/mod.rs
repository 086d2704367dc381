//! The account of a salvage, as plain data: what was written, what was not, and where it was lost.
//!
//! Absent fields do not apply, `null` is unknown. Keys are stable; new ones may be added.

mod losses;
mod outcome;

use pgclinic_format::types::Tid;
use serde::{Deserialize, Serialize};

use super::{NotChecked, Target, Tool, is_zero};
pub use losses::{
    Estimate, FOREIGN_KEYS, INDEX_ENTRIES, INDEX_KEYS, IndexCount, LostBy, PageNotes, ROOT_BLOCKS,
    TOAST_VALUES,
};
use outcome::outcome_of;

/// How a salvage ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Everything that was asked for was there and is written.
    Whole,
    /// Something is lost, partial, carved or uncertain.
    Damaged,
    /// Something could not be looked at.
    Incomplete,
}

/// `salvage.json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SalvageReport {
    /// `pgclinic.salvage/1`.
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// From what.
    pub target: Target,
    /// `running` for the files of a server at work: rows are those of the end of the write-ahead
    /// log on disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The form of the files.
    pub form: String,
    /// Which row versions were asked for: `live` or `all`.
    pub rows: String,
    /// Where the rows went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<SalvageDestination>,
    /// How it ended.
    pub outcome: Outcome,
    /// It was interrupted: tables that were not written whole are not there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// What was applied of the write-ahead log, where the cluster was not shut down in good order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayAccount>,
    /// Snapshots of a running server, in which its tables were read; more than one where it went
    /// down meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<SnapshotAccount>,
    /// Databases of which no file is left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_databases: Vec<LostDatabase>,
    /// Databases whose catalogs hold nothing: names and columns of their tables are lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_catalogs: Vec<LostDatabase>,
    /// Of all tables.
    pub totals: RowCounts,
    /// Who says how many rows of all tables are lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_by: Vec<LostBy>,
    /// By database, schema and name.
    pub tables: Vec<TableAccount>,
    /// Sequences with their values; each database's folder holds a script that sets them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sequences: Vec<SequenceAccount>,
    /// Large objects, one file a database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub large_objects: Vec<LargeObjectsAccount>,
    /// Keys of the tables that were written, where they were looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckAccount>,
    /// Rows of the tables that were written, where they were counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<CountAccount>,
    /// What was not looked at, and why.
    pub not_salvaged: Vec<NotChecked>,
    /// How long it took.
    pub elapsed_s: f64,
}

/// Where the rows of a salvage went.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SalvageDestination {
    /// `directory`, `server` or `stdout`.
    pub kind: String,
    /// The whole path, or the URL without its password; absent for stdout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<String>,
    /// The file in the directory by which `psql` loads all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_script: Option<String>,
    /// The load script makes the tables as well; else they must be there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_schema: bool,
}

/// What was applied of the write-ahead log, in memory.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ReplayAccount {
    /// Where the first record was read.
    pub start: String,
    /// Where the records end.
    pub end: String,
    /// Why they end there.
    pub why: String,
    /// Records that were read.
    pub records: u64,
    /// Changes of pages that were applied.
    pub applied: u64,
    /// Changes that could not be applied.
    pub not_applied: u64,
    /// Why, the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// All write-ahead log that there is was read.
    pub is_complete: bool,
}

/// A database that is lost with everything in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LostDatabase {
    /// Its name.
    pub database: String,
    /// Its OID.
    pub oid: u32,
    /// Where its files were, from the root of the data directory.
    pub directory: String,
    /// How that is known.
    pub why: String,
}

/// A snapshot of a running server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SnapshotAccount {
    /// From 1; tables name the snapshots from which their rows came.
    pub number: u32,
    /// `pg_current_snapshot()`: the oldest transaction that was at work, the next one, and those
    /// between that were at work.
    pub transactions: String,
    /// When it was taken, by the server's clock.
    pub taken_at: String,
}

/// Rows by what became of them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct RowCounts {
    /// Written to the files.
    pub written: u64,
    /// Of these, those that stand in a file of their own because they may not be what they say:
    /// carved, mended, partial and uncertain ones.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub suspect: u64,
    /// Visible to every new transaction.
    pub live: u64,
    /// Deleted, replaced or never committed.
    pub dead: u64,
    /// Found by their structure on pages that no longer name them; among those written.
    pub carved: u64,
    /// Written though their headers contradict themselves, after one field of it was put right.
    pub mended: u64,
    /// Written without some of their values.
    pub partial: u64,
    /// Written though the status of their transactions is lost or contradicts them; most probably
    /// live.
    pub uncertain: u64,
    /// Not written (but with `--rows all`), though they may count: the status of the transaction
    /// that replaced them is lost, and their newer version is to be preferred; or it contradicts
    /// their hint bits, which make them dead.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub withheld: u64,
    /// Lost: those that are known and those that are estimated. At most so many where a witness is
    /// not exact.
    pub lost: u64,
    /// Of these, those that a witness names one by one: keys and entries of an index, rows that
    /// were met and cannot be read.
    #[serde(default)]
    pub lost_known: u64,
    /// Of these, those that stood on pages of which nothing is left and that no index names.
    #[serde(default)]
    pub lost_estimated: u64,
    /// Of those that are known, those that the destination did not take.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused: u64,
    /// About so many stand in files that are there and could not be read: nothing is known to be
    /// lost of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_read: u64,
    /// Row versions that were found: written, skipped or refused.
    #[serde(default)]
    pub found: u64,
    /// Of these, those that were not asked for: dead and withheld ones.
    #[serde(default)]
    pub skipped: u64,
}

impl RowCounts {
    /// Adds another count.
    pub fn add(&mut self, other: &RowCounts) {
        self.written += other.written;
        self.suspect += other.suspect;
        self.live += other.live;
        self.dead += other.dead;
        self.carved += other.carved;
        self.mended += other.mended;
        self.partial += other.partial;
        self.uncertain += other.uncertain;
        self.withheld += other.withheld;
        self.lost += other.lost;
        self.lost_known += other.lost_known;
        self.lost_estimated += other.lost_estimated;
        self.refused += other.refused;
        self.not_read += other.not_read;
        self.found += other.found;
        self.skipped += other.skipped;
    }

    /// Every version that was found went somewhere.
    fn adds_up(&self) -> bool {
        self.found == self.written + self.skipped + self.refused && self.suspect <= self.written
    }

    fn is_whole(&self) -> bool {
        self.suspect == 0
            && self.carved == 0
            && self.mended == 0
            && self.partial == 0
            && self.uncertain == 0
            && self.withheld == 0
            && self.lost == 0
            && self.not_read == 0
    }
}

/// A sequence in the account.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SequenceAccount {
    /// Database.
    pub database: String,
    /// Schema.
    pub schema: String,
    /// Name.
    pub sequence: String,
    /// The last value that may have been given out.
    pub last_value: i64,
    /// It was given out; otherwise it is the next one.
    pub is_called: bool,
    /// Why the value may be another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

/// The large objects of a database.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct LargeObjectsAccount {
    /// Database.
    pub database: String,
    /// The tar file, from the destination.
    pub file: String,
    /// Its bytes.
    pub file_bytes: u64,
    /// Objects in it.
    pub objects: u64,
    /// Bytes of the objects.
    pub bytes: u64,
    /// Objects of which an index names pages or the row in `pg_largeobject_metadata`, and these are
    /// lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_objects: u64,
    /// Pages of objects that an index names and that are lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_pages: u64,
    /// A file is there and could not be read: what is missing may be whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub out_of_reach: bool,
    /// Where something was lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<LossPlace>,
    /// Where something was lost, the objects that may have had it, the first 1,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubtful: Vec<DoubtfulObject>,
}

/// A large object that may not be whole.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DoubtfulObject {
    /// Its number.
    pub object: u32,
    /// What is missing of it.
    pub why: String,
}

/// A table in the account.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TableAccount {
    /// Database.
    pub database: String,
    /// Schema.
    pub schema: String,
    /// Name.
    pub table: String,
    /// OID in `pg_class`.
    pub oid: u32,
    /// Number of its files; not written.
    #[serde(skip)]
    pub filenode: u32,
    /// `table` or `materialized-view`.
    pub kind: String,
    /// Its file, from the destination, or its name on the server; null if it was not written whole.
    pub file: Option<String>,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// The file of its suspect rows, from the destination: CSV with the reason in front.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspect_file: Option<String>,
    /// Names of the columns that were written.
    pub columns: Vec<String>,
    /// Rows.
    #[serde(flatten)]
    pub rows: RowCounts,
    /// Numbers of the snapshots from which the rows came, of a running server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<u32>,
    /// Changes in the write-ahead log that could not be applied to its files.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_replayed: u64,
    /// Pages of which something could not be read.
    pub damaged_pages: u64,
    /// Pages of files that are there and could not be read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pages_not_read: u64,
    /// Pages of zeros: never written, or lost without a trace.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub empty_pages: u64,
    /// Pages that a server at work had written since the moment of which the rows are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub changed_pages: u64,
    /// Pages that were changed after the end of the write-ahead log, of which some must be missing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pages_beyond_wal: u64,
    /// Row versions that were written by transactions before `relfrozenxid` and are not frozen, or
    /// deleted by such: nothing leaves them in the table.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rows_before_freeze: u64,
    /// Pages on which a hint bit says that a transaction committed of which `pg_xact` says that it
    /// did not.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pages_against_status: u64,
    /// A server at work moved the table each time while it was read: what is missing is not known
    /// to be lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsettled: bool,
    /// A file of it is there and could not be read: what is missing of the table may be whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub out_of_reach: bool,
    /// Where something was lost, the first 1,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<LossPlace>,
    /// How many more there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub places_omitted: u64,
    /// Keys of lost rows that unique indexes still hold, one list an index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_keys: Vec<LostKeys>,
    /// Columns of a file of columns that do not have the kind of their type, because some value has
    /// no place in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns_as: Vec<ColumnAs>,
    /// What a person should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Who says how many of its rows are lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_by: Vec<LostBy>,
    /// The index that was asked whether all its rows are there, with its schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<String>,
    /// Its losses were counted, by all who know of them.
    #[serde(skip)]
    pub is_counted: bool,
    /// What was seen of its pages; not written.
    #[serde(skip)]
    pub pages: PageNotes,
}

/// A key of a table, held to the rows that were written.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct CheckAccount {
    /// Database.
    pub database: String,
    /// Schema.
    pub schema: String,
    /// Name of the table.
    pub table: String,
    /// Name of the constraint.
    pub key: String,
    /// `primary-key`, `unique` or `foreign-key`.
    pub kind: String,
    /// Its columns.
    pub columns: Vec<String>,
    /// The table that a foreign key leads to, with its schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub references: Option<String>,
    /// Rows that were looked at.
    pub keys: u64,
    /// Rows with the key of another row; of a foreign key, rows without the row that it leads to.
    pub broken: u64,
    /// Their keys, the first 1,000, as lines of CSV.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listed: Vec<String>,
    /// Why it was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_checked: Option<String>,
}

/// The rows of a table that were written, beside those that are known of.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct CountAccount {
    /// Database.
    pub database: String,
    /// Schema.
    pub schema: String,
    /// Name of the table.
    pub table: String,
    /// Rows that were written.
    pub written: u64,
    /// The index whose entries were followed, with its schema: one that has all rows, of a key if
    /// there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// Rows to which its entries lead and that a new transaction would see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub led_to: Option<u64>,
    /// Entries that lead to where nothing can be read: lost rows, or deleted ones that VACUUM did
    /// not pass.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nowhere: u64,
    /// `reltuples` of `pg_class`: an estimate, which decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<u64>,
    /// Why no index was followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_counted: Option<String>,
}

impl CountAccount {
    /// Rows of the index that were not written; at most so many, where some entries lead nowhere.
    pub fn missing(&self) -> u64 {
        let known = self.led_to.map_or(0, |rows| rows + self.nowhere);
        known.saturating_sub(self.written)
    }

    /// Rows that were written, and that the index does not have.
    pub fn unknown(&self) -> u64 {
        let known = self.led_to.map(|rows| rows + self.nowhere);
        known.map_or(0, |known| self.written.saturating_sub(known))
    }

    /// As many rows were written as the index has.
    pub fn holds(&self) -> bool {
        self.led_to.is_some() && self.missing() == 0 && self.unknown() == 0
    }
}

/// How the note of a row begins that the server does not take: its error and the row follow.
pub const REFUSED_ROW: &str = "the server refuses a row: ";

/// Keys that a check lists.
pub const KEYS_MAX: usize = 1000;

/// Keys of rows that are lost, or were deleted not long before.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LostKeys {
    /// The index, with its schema.
    pub index: String,
    /// The columns that it holds, those of the key first.
    pub columns: Vec<String>,
    /// How many keys.
    pub keys: u64,
    /// The file with the list, from the destination.
    pub file: String,
}

/// A column that was written as something else than its type has there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ColumnAs {
    /// The column.
    pub column: String,
    /// `text`, as COPY prints it; or `binary`: that text in the encoding of the database.
    pub written_as: String,
    /// What was found in it.
    pub why: String,
}

/// Where something was lost.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LossPlace {
    /// Block in the main fork.
    pub block: u32,
    /// Line pointer, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u16>,
    /// The block is one of the TOAST relation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_toast: bool,
    /// Column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// What happened.
    pub why: String,
}

/// Places that a table's account holds.
pub const PLACES_MAX: usize = 1000;

impl TableAccount {
    /// Takes in what a part of the table gave. Parts come in any order; places are sorted at the
    /// end.
    pub fn add(&mut self, tally: Tally) {
        self.rows.add(&tally.rows);
        self.damaged_pages += tally.damaged_pages;
        self.pages.seen_damaged += tally.damaged_pages;
        self.pages_not_read += tally.pages_not_read;
        self.empty_pages += tally.empty_pages;
        self.changed_pages += tally.changed_pages;
        self.pages_beyond_wal += tally.pages_beyond_wal;
        self.rows_before_freeze += tally.rows_before_freeze;
        self.pages_against_status += tally.pages_against_status;
        self.places_omitted += tally.places_omitted;
        self.out_of_reach |= tally.out_of_reach;
        self.pages.add(tally.pages);
        self.places.extend(tally.places);
        if self.places.len() > 2 * PLACES_MAX {
            self.settle();
        }
    }

    /// So many of the rows that were read were not taken by the destination.
    pub fn refuse(&mut self, rows: u64) {
        self.rows.lost += rows;
        self.rows.refused += rows;
        self.rows.written = self.rows.written.saturating_sub(rows);
    }

    /// What accounts are sorted by.
    pub fn names(&self) -> (String, String, String, u32) {
        let own = [&self.database, &self.schema, &self.table];
        let [database, schema, table] = own.map(String::clone);
        (database, schema, table, self.oid)
    }

    /// Sorts the places and keeps the first.
    pub fn settle(&mut self) {
        self.pages.settle();
        self.places.sort_by_key(|place| (place.block, place.item));
        let omitted = self.places.len().saturating_sub(PLACES_MAX);
        self.places.truncate(PLACES_MAX);
        self.places_omitted += omitted as u64;
    }

    /// Nothing of it is lost, partial, carved or uncertain.
    pub fn is_whole(&self) -> bool {
        self.rows.is_whole()
            && self.not_replayed == 0
            && self.damaged_pages == 0
            && self.pages_not_read == 0
            && self.places.is_empty()
    }

    /// Something of it is known to be lost or doubtful. What moved away under the look, or stands
    /// in what could not be opened, is not: of such a table only what was read counts.
    pub fn is_hurt(&self) -> bool {
        let is_known = !self.unsettled && !self.out_of_reach;
        (is_known && !self.is_whole()) || (self.out_of_reach && self.pages.seen_damaged > 0)
    }

    /// Another look at the table lost the same.
    pub fn loses_as(&self, other: &TableAccount) -> bool {
        let losses = |own: &TableAccount| {
            let RowCounts {
                carved,
                mended,
                partial,
                uncertain,
                withheld,
                lost,
                ..
            } = own.rows;
            (carved, mended, partial, uncertain, withheld, lost)
        };
        // What moved to other files in between was cut by its own server.
        self.filenode == other.filenode
            && losses(self) == losses(other)
            && self.damaged_pages == other.damaged_pages
            && self.places == other.places
            && self.places_omitted == other.places_omitted
    }
}

/// What one part of a table gave.
#[derive(Default, Debug)]
pub struct Tally {
    /// Its rows.
    pub rows: RowCounts,
    /// See [`TableAccount::damaged_pages`].
    pub damaged_pages: u64,
    /// See [`TableAccount::pages_not_read`].
    pub pages_not_read: u64,
    /// See [`TableAccount::empty_pages`].
    pub empty_pages: u64,
    /// See [`TableAccount::changed_pages`].
    pub changed_pages: u64,
    /// See [`TableAccount::pages_beyond_wal`].
    pub pages_beyond_wal: u64,
    /// See [`TableAccount::rows_before_freeze`].
    pub rows_before_freeze: u64,
    /// See [`TableAccount::pages_against_status`].
    pub pages_against_status: u64,
    /// Where something was lost, the first of them.
    pub places: Vec<LossPlace>,
    /// How many more places there are.
    pub places_omitted: u64,
    /// Rows that count, as far as their fate is known.
    pub counted: u64,
    /// Of the table itself; damaged blocks each perhaps more than once.
    pub pages: PageNotes,
    /// A file is there and could not be read.
    pub out_of_reach: bool,
}

impl Tally {
    /// Rows of this block of the table may be lost.
    pub fn doubt_block(&mut self, block: u32) {
        if self.pages.damaged.last() != Some(&block) {
            self.pages.damaged.push(block);
        }
    }

    /// Something is to be said of a row; the words are made only where there is room for them.
    pub fn tell_row(&mut self, place: Tid, why: &str) {
        if self.places.len() >= PLACES_MAX {
            self.places_omitted += 1;
        } else {
            self.places.push(LossPlace::row(place, why));
        }
    }

    /// Something was lost there.
    pub fn lose(&mut self, place: LossPlace) {
        if self.places.len() >= PLACES_MAX {
            self.places_omitted += 1;
        } else {
            self.places.push(place);
        }
    }
}

impl LossPlace {
    /// A page of the table.
    pub fn page(block: u32, why: impl ToString) -> Self {
        LossPlace {
            block,
            item: None,
            in_toast: false,
            column: None,
            why: why.to_string(),
        }
    }

    /// A row of the table.
    pub fn row(place: Tid, why: impl ToString) -> Self {
        LossPlace {
            // A row that was found by its structure may not tell.
            item: (place.offset > 0).then_some(place.offset),
            ..LossPlace::page(place.block, why)
        }
    }
}

impl SalvageReport {
    /// Nothing was found, and nothing is missed. What nobody can know is told of every cluster.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
            && self.sequences.is_empty()
            && self.large_objects.is_empty()
            && self.lost_databases.is_empty()
            && self.lost_catalogs.is_empty()
            && self.not_salvaged.iter().all(|gap| gap.inherent)
    }

    /// The files were not what they were taken for: what seems whole or lost may not be so.
    pub fn cast_doubt(&mut self, why: NotChecked) {
        self.outcome = Outcome::Incomplete;
        self.not_salvaged.push(why);
    }

    /// Sums up and says how it ended.
    pub fn close(&mut self) {
        for table in &mut self.tables {
            table.settle();
        }
        self.tables.sort_by_cached_key(TableAccount::names);
        self.count();
        self.outcome = outcome_of(self);
    }

    /// Totals, which add up.
    fn count(&mut self) {
        self.totals = RowCounts::default();
        for table in &mut self.tables {
            // What stood in a file that was taken away is not there.
            if self.interrupted && table.file.is_none() {
                table.rows = RowCounts::default();
                table.lost_by.clear();
                table.is_counted = true;
            }
            if !table.is_counted {
                table.count_losses(None, Estimate::default());
            }
            table.part_not_read();
            let RowCounts {
                found,
                written,
                skipped,
                refused,
                ..
            } = table.rows;
            assert!(
                table.rows.adds_up(),
                "of {found} row versions of {}.{} {written} were written, {skipped} skipped and {refused} refused",
                table.schema,
                table.table
            );
            self.totals.add(&table.rows);
        }
        self.lost_by = losses::sum(&self.tables);
    }
}
