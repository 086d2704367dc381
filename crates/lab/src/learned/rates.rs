//! How fast a table is written, counted in the WAL that lies beside its files.
//!
//! ```text
//! rows | commit | rows | abort | rows | commit | rows
//!               └────────── counted ──────────┘
//! ```
//!
//! Records of commits say when they were made, records of heaps whose rows they write. What stands before the first commit was
//! written in a time of which nothing is known, and what stands behind the last has not ended: neither counts. Rows of
//! transactions that were rolled back were written like any others, and count.

use std::fmt;

use pgclinic_cluster::Cluster;
use pgclinic_cluster::wal::Recovery;
use pgclinic_format::wal::{
    Event, FileNumber, Outcome, Record, RowsWritten, WalEnd, WalPages, WalReader,
};
use pgclinic_format::{Fork, Lsn};
use serde::{Deserialize, Serialize};

/// Bytes of WAL that are read: the last of it.
const WAL_BYTES_MAX: u64 = 4 << 30;

/// A transaction takes its time before its place in WAL, so that neighbours may be out of order by a little. A clock that is
/// further back than this was set; in microseconds.
const JITTER_MICROS: i64 = 1_000_000;

/// What WAL tells of writing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Writing {
    /// How much in how long.
    Counted(Rates),
    /// Nothing.
    Unknown {
        /// The reason, without a full stop.
        why: String,
    },
}

/// What was written between the first and the last commit of the WAL that is there.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Rates {
    /// Microseconds between the two by the server's clock, without the steps in which it was set back; above 0.
    pub micros: u64,
    /// Commits behind the first, in all databases. Transactions that wrote nothing have no record.
    pub commits: u64,
    /// Transactions that were rolled back; their rows count.
    pub aborts: u64,
    /// Rows of the table.
    pub table: RowCounts,
    /// Rows of `pg_class` in the table's database: each that was inserted is a relation that was created.
    pub classes: RowCounts,
    /// What of the WAL does not count, as clauses without a full stop.
    pub notes: Vec<String>,
}

/// Rows of one table that were written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RowCounts {
    /// Microseconds of those of [`Rates`] in which the table had the files that it has now; rows of older files are not known.
    pub micros: u64,
    /// New rows.
    pub inserted: u64,
    /// New versions of rows.
    pub updated: u64,
    /// Those of them that stayed on their page without new index entries.
    pub hot_updated: u64,
    /// Deleted rows.
    pub deleted: u64,
}

impl Rates {
    /// Commits a second, in all databases.
    pub fn commits_a_second(&self) -> f64 {
        a_second(self.commits, self.micros).unwrap_or_default()
    }

    /// Rows of the table that were inserted, updated or deleted, a second; `None` where its files are as new as the last commit.
    pub fn rows_a_second(&self) -> Option<f64> {
        let RowCounts {
            micros,
            inserted,
            updated,
            deleted,
            ..
        } = self.table;
        let written = inserted.saturating_add(updated).saturating_add(deleted);
        a_second(written, micros)
    }

    /// Tables, indexes, TOAST tables, sequences and views that were created, a second; `None` where the files of `pg_class` are
    /// as new as the last commit.
    pub fn relations_created_a_second(&self) -> Option<f64> {
        a_second(self.classes.inserted, self.classes.micros)
    }
}

fn a_second(count: u64, micros: u64) -> Option<f64> {
    (micros > 0).then(|| count as f64 / (micros as f64 / 1e6))
}

/// What the WAL of a cluster tells of the table with these files; `classes` are those of `pg_class` in its database.
pub(super) fn writing(cluster: &Cluster, table: FileNumber, classes: FileNumber) -> Writing {
    match read(cluster, table, classes) {
        Ok(rates) => Writing::Counted(rates),
        Err(why) => Writing::Unknown { why },
    }
}

fn read(cluster: &Cluster, table: FileNumber, classes: FileNumber) -> Result<Rates, String> {
    let recovery = cluster
        .recovery()
        .ok_or("global/pg_control, which says where WAL ends, cannot be trusted")?;
    if let Some(trouble) = recovery.files.troubles.first()
        && recovery.files.is_unreadable
    {
        return Err(format!("{}: {}", trouble.what, trouble.why));
    }
    if recovery.files.segments.is_empty() {
        return Err("pg_wal holds no WAL".to_owned());
    }
    let newest = newest(cluster, recovery);
    let (begin, cut) = begin(cluster, recovery, newest);
    let mut reading = Reading {
        cluster,
        recovery,
        newest,
        counting: Counting::of(table, classes),
        notes: cut.into_iter().collect(),
    };
    reading.go_through(begin);
    reading.counting.rates(reading.notes)
}

/// The last place that is known to hold a record.
fn newest(cluster: &Cluster, recovery: &Recovery) -> Lsn {
    let replayed = cluster.replay().map(|replay| replay.end.record);
    let start = recovery.start;
    start
        .redo
        .max(start.checkpoint)
        .max(replayed.unwrap_or(Lsn(0)))
}

/// The first segment of the last WAL without a gap, and words where only the end of it is read.
fn begin(cluster: &Cluster, recovery: &Recovery, newest: Lsn) -> (Lsn, Option<String>) {
    let shape = &recovery.shape;
    let oldest = cluster.wal_survey().map_or(0, |survey| survey.oldest);
    let oldest = Lsn(oldest.saturating_mul(u64::from(shape.segment_bytes)));
    let floor = shape.segment_of(Lsn(newest.0.saturating_sub(WAL_BYTES_MAX)));
    let cut = format!("only its last {} GiB were read", WAL_BYTES_MAX >> 30);
    (oldest.max(floor), (floor > oldest).then_some(cut))
}

/// Goes through WAL.
struct Reading<'a> {
    cluster: &'a Cluster,
    recovery: &'a Recovery,
    newest: Lsn,
    counting: Counting,
    notes: Vec<String>,
}

impl Reading<'_> {
    /// Reads from the segment at `begin` to the newest record. Where records break, only what stands behind the break counts.
    fn go_through(&mut self, begin: Lsn) {
        let shape = self.recovery.shape;
        let mut at = begin;
        let mut broken = None;
        // Each turn moves on by a segment at least, and all of them together are bounded in bytes.
        while at <= self.newest {
            let Some(end) = self.stretch(at) else { break };
            let number = shape.segment_number(end.at.max(end.record).max(at));
            let next = number.saturating_add(1);
            if next > shape.segment_number(self.newest) {
                broken = Some(format!("what stands behind a break does not count: {end}"));
                break;
            }
            broken = Some(format!("what stands before a break does not count: {end}"));
            self.counting = self.counting.anew();
            at = Lsn(next.saturating_mul(u64::from(shape.segment_bytes)));
        }
        self.notes.extend(broken);
    }

    /// Reads from a segment on; the place where the records break before the newest.
    fn stretch(&mut self, at: Lsn) -> Option<WalEnd> {
        let pages = self.recovery.pages(self.cluster.source().as_ref());
        let mut reader = WalReader::new(pages, self.recovery.shape, at);
        let broken = match reader.find_first() {
            Ok(_) => self.follow(&mut reader),
            Err(end) => Some(end),
        };
        for trouble in &reader.pages().troubles {
            self.notes
                .push(format!("{}: {}", trouble.what, trouble.why));
        }
        broken
    }

    fn follow(&mut self, reader: &mut WalReader<impl WalPages>) -> Option<WalEnd> {
        while reader.position() <= self.newest {
            match reader.read() {
                Ok(record) => self.counting.record(&record, self.recovery.shape.major),
                Err(end) if end.record >= self.newest => return None,
                Err(end) => return Some(end),
            }
        }
        None
    }
}

/// What is counted while records go by.
#[derive(Clone, Debug)]
struct Counting {
    clock: Clock,
    commits: u64,
    aborts: u64,
    /// Behind the last commit.
    aborts_since: u64,
    table: Watched,
    classes: Watched,
}

impl Counting {
    fn of(table: FileNumber, classes: FileNumber) -> Self {
        Self {
            clock: Clock::default(),
            commits: 0,
            aborts: 0,
            aborts_since: 0,
            table: Watched::of(table, 0),
            classes: Watched::of(classes, 0),
        }
    }

    /// The same before anything was counted.
    fn anew(&self) -> Self {
        Self::of(self.table.file, self.classes.file)
    }

    fn record(&mut self, record: &Record<'_>, major: u16) {
        if let Some((file, rows)) = RowsWritten::of(record) {
            self.rows(file, rows);
            return;
        }
        match Event::of(record, major) {
            Event::Ended(ended) => self.ended(ended.outcome, ended.at),
            Event::Created(of) if of.fork == Fork::Main => self.made(of.file),
            _ => {}
        }
    }

    fn rows(&mut self, file: FileNumber, rows: RowsWritten) {
        for watched in [&mut self.table, &mut self.classes] {
            if watched.file == file {
                watched.since.add(rows);
            }
        }
    }

    /// Files were made: a table has none of its older rows in them, or others of the same name.
    fn made(&mut self, file: FileNumber) {
        for watched in [&mut self.table, &mut self.classes] {
            if watched.file == file {
                *watched = Watched::of(file, self.clock.micros);
            }
        }
    }

    fn ended(&mut self, outcome: Outcome, at: Option<i64>) {
        match (outcome, at) {
            (Outcome::Committed, Some(at)) => self.commit(at),
            (Outcome::Aborted, _) => self.aborts_since += 1,
            _ => {}
        }
    }

    fn commit(&mut self, at: i64) {
        let aborts = std::mem::take(&mut self.aborts_since);
        let since = [&mut self.table, &mut self.classes].map(Watched::settle);
        if self.clock.latest.is_some() {
            let [table, classes] = since;
            self.commits += 1;
            self.aborts += aborts;
            self.table.counted.join(table);
            self.classes.counted.join(classes);
        }
        self.clock.tick(at);
    }

    /// The counts, unless they are no rates.
    fn rates(self, mut notes: Vec<String>) -> Result<Rates, String> {
        let micros = self.clock.micros;
        let set_back = self.clock.set_back;
        if set_back > 0 {
            let times = if set_back == 1 { "time" } else { "times" };
            notes.push(format!(
                "the server's clock was set back {set_back} {times}, and how long these steps were is not known"
            ));
        }
        let why = match (self.clock.latest, self.commits) {
            (None, _) => Some("the WAL in pg_wal holds no commit"),
            (_, 0) => Some("the WAL in pg_wal holds one commit, and a rate takes two"),
            _ if micros == 0 => Some("no time passes between the commits of the WAL in pg_wal"),
            _ => None,
        };
        if let Some(why) = why {
            let all: Vec<&str> = std::iter::once(why)
                .chain(notes.iter().map(String::as_str))
                .collect();
            return Err(all.join("; "));
        }
        if self.table.from > 0 {
            let age = span(micros - self.table.from);
            notes.push(format!(
                "the table's rows over the last {age} only, as its files were made then"
            ));
        }
        Ok(Rates {
            micros,
            commits: self.commits,
            aborts: self.aborts,
            table: self.table.counts(micros),
            classes: self.classes.counts(micros),
            notes,
        })
    }
}

/// Time that passes from commit to commit.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    /// Of the latest commit, microseconds since 2000.
    latest: Option<i64>,
    /// Microseconds since the first.
    micros: u64,
    /// How often it was set back.
    set_back: u32,
}

impl Clock {
    fn tick(&mut self, at: i64) {
        let step = at.saturating_sub(self.latest.unwrap_or(at));
        if (-JITTER_MICROS..0).contains(&step) {
            return;
        }
        match u64::try_from(step) {
            Ok(step) => self.micros = self.micros.saturating_add(step),
            Err(_) => self.set_back += 1,
        }
        self.latest = Some(at);
    }
}

/// A table whose rows are counted.
#[derive(Clone, Copy, Debug)]
struct Watched {
    file: FileNumber,
    /// Where the clock stood when its files were made.
    from: u64,
    /// Up to the last commit.
    counted: RowCounts,
    /// Behind it.
    since: RowCounts,
}

impl Watched {
    fn of(file: FileNumber, from: u64) -> Self {
        Self {
            file,
            from,
            counted: RowCounts::default(),
            since: RowCounts::default(),
        }
    }

    /// What was seen since the last commit, which now ends.
    fn settle(&mut self) -> RowCounts {
        std::mem::take(&mut self.since)
    }

    fn counts(self, micros: u64) -> RowCounts {
        RowCounts {
            micros: micros - self.from,
            ..self.counted
        }
    }
}

impl RowCounts {
    fn add(&mut self, rows: RowsWritten) {
        match rows {
            RowsWritten::Inserted(rows) => self.inserted += u64::from(rows),
            RowsWritten::Deleted => self.deleted += 1,
            RowsWritten::Updated { is_hot } => {
                self.updated += 1;
                self.hot_updated += u64::from(is_hot);
            }
        }
    }

    fn join(&mut self, other: Self) {
        self.inserted += other.inserted;
        self.updated += other.updated;
        self.hot_updated += other.hot_updated;
        self.deleted += other.deleted;
    }
}

impl fmt::Display for Writing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Writing::Counted(rates) => write!(f, "written: {rates}"),
            Writing::Unknown { why } => write!(f, "written: not known, as {why}"),
        }
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commits = self.commits_a_second();
        let commits = match commits >= 10.0 {
            true => format!("{commits:.0}"),
            false => told(commits),
        };
        let created = self.relations_created_a_second();
        let created = created.filter(|created| *created > 0.0);
        let created = created.map(|created| format!(" and {} relations created", told(created)));
        write!(
            f,
            "{}; {commits} commits{} a second, over {} of WAL",
            self.table,
            created.unwrap_or_default(),
            span(self.micros)
        )?;
        if self.aborts > 0 {
            let aborts = self.aborts;
            write!(
                f,
                "; with the rows of {aborts} transactions that were rolled back"
            )?;
        }
        self.notes.iter().try_for_each(|note| write!(f, "; {note}"))
    }
}

impl fmt::Display for RowCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = |rows: u64| a_second(rows, self.micros).map(told);
        let (Some(inserted), Some(updated), Some(deleted)) =
            (each(self.inserted), each(self.updated), each(self.deleted))
        else {
            return f
                .write_str("its rows are not known, as its files are as new as the last commit");
        };
        let hot = 100.0 * self.hot_updated as f64 / self.updated.max(1) as f64;
        let hot = match self.updated {
            0 => String::new(),
            _ => format!(" ({hot:.0} % HOT)"),
        };
        write!(
            f,
            "{inserted} rows a second inserted, {updated} updated{hot}, {deleted} deleted"
        )
    }
}

/// A rate with one decimal, or with as many as it takes to tell it from nothing.
pub(crate) fn told(rate: f64) -> String {
    let tells = |&decimals: &usize| {
        format!("{rate:.decimals$}")
            .bytes()
            .any(|b| (b'1'..=b'9').contains(&b))
    };
    match (1..9).find(tells) {
        Some(decimals) => format!("{rate:.decimals$}"),
        None => "0".to_owned(),
    }
}

/// A span of time in its largest unit of which there are two: `14 min`.
fn span(micros: u64) -> String {
    let seconds = micros as f64 / 1e6;
    match seconds {
        seconds if seconds < 10.0 => format!("{seconds:.1} s"),
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds if seconds < 7_200.0 => format!("{:.0} min", seconds / 60.0),
        seconds if seconds < 172_800.0 => format!("{:.0} h", seconds / 3_600.0),
        seconds => format!("{:.0} days", seconds / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: FileNumber = FileNumber {
        tablespace: 1663,
        database: 5,
        filenode: 16_384,
    };
    const CLASSES: FileNumber = FileNumber {
        filenode: 1_259,
        ..TABLE
    };
    const SECOND: i64 = 1_000_000;

    fn counting() -> Counting {
        Counting::of(TABLE, CLASSES)
    }

    /// The rates after commits at these times.
    fn after(times: &[i64]) -> Result<Rates, String> {
        let mut counting = counting();
        times.iter().for_each(|at| counting.commit(*at));
        counting.rates(Vec::new())
    }

    #[test]
    fn rows_count_between_the_first_commit_and_the_last() {
        let mut counting = counting();
        counting.rows(TABLE, RowsWritten::Inserted(1_000));
        counting.ended(Outcome::Aborted, Some(0));
        counting.commit(SECOND);
        counting.rows(TABLE, RowsWritten::Inserted(30));
        counting.rows(CLASSES, RowsWritten::Inserted(1));
        counting.ended(Outcome::Aborted, Some(2 * SECOND));
        counting.rows(TABLE, RowsWritten::Updated { is_hot: true });
        counting.rows(TABLE, RowsWritten::Updated { is_hot: false });
        counting.ended(Outcome::Prepared, None);
        counting.commit(3 * SECOND);
        counting.rows(TABLE, RowsWritten::Deleted);
        let other = FileNumber {
            database: 6,
            ..TABLE
        };
        counting.rows(other, RowsWritten::Inserted(9));
        counting.commit(5 * SECOND);
        counting.rows(TABLE, RowsWritten::Inserted(500));
        counting.ended(Outcome::Aborted, Some(6 * SECOND));
        let rates = counting.rates(Vec::new()).expect("two commits");
        let table = RowCounts {
            micros: 4_000_000,
            inserted: 30,
            updated: 2,
            hot_updated: 1,
            deleted: 1,
        };
        assert_eq!((rates.table, rates.commits, rates.aborts), (table, 2, 1));
        assert_eq!(rates.rows_a_second(), Some(33.0 / 4.0));
        assert_eq!(rates.commits_a_second(), 0.5);
        assert_eq!(rates.relations_created_a_second(), Some(0.25));
    }

    #[test]
    fn fewer_than_two_commits_and_no_time_are_no_rate() {
        let why = |times: &[i64]| after(times).expect_err("no rate");
        assert_eq!(why(&[]), "the WAL in pg_wal holds no commit");
        let one = why(&[SECOND]);
        assert_eq!(
            one,
            "the WAL in pg_wal holds one commit, and a rate takes two"
        );
        let same = why(&[SECOND; 3]);
        assert_eq!(
            same,
            "no time passes between the commits of the WAL in pg_wal"
        );
    }

    #[test]
    fn a_clock_that_was_set_back_makes_no_rate_negative_or_infinite() {
        let hour = 3_600 * SECOND;
        let rates = after(&[hour, hour + 2 * SECOND, 0, 3 * SECOND]).expect("time passed");
        assert_eq!((rates.micros, rates.commits), (5_000_000, 3));
        assert_eq!(rates.commits_a_second(), 0.6);
        let [note] = rates.notes.as_slice() else {
            panic!("{:?}", rates.notes)
        };
        assert!(note.contains("was set back 1 time"), "{note}");
        let only_back = after(&[hour, 0]).expect_err("no time is known to have passed");
        assert!(only_back.contains("no time passes") && only_back.contains("set back 1 time"));
        let extremes = after(&[i64::MAX, i64::MIN, i64::MAX]).expect("very much time");
        assert!(extremes.commits_a_second() >= 0.0);
    }

    #[test]
    fn neighbours_out_of_order_add_no_time() {
        let rates = after(&[0, SECOND, SECOND - 900, SECOND + 100, 2 * SECOND]);
        let rates = rates.expect("time passed");
        assert_eq!((rates.micros, rates.notes.len()), (2_000_000, 0));
    }

    #[test]
    fn rows_of_files_that_were_made_meanwhile_count_from_then_on() {
        let mut counting = counting();
        counting.commit(0);
        counting.rows(TABLE, RowsWritten::Inserted(7));
        counting.commit(8 * SECOND);
        counting.rows(TABLE, RowsWritten::Deleted);
        counting.made(TABLE);
        counting.rows(TABLE, RowsWritten::Inserted(4));
        counting.commit(10 * SECOND);
        let rates = counting.rates(Vec::new()).expect("two commits");
        assert_eq!((rates.micros, rates.table.micros), (10_000_000, 2_000_000));
        assert_eq!((rates.table.inserted, rates.table.deleted), (4, 0));
        assert_eq!(rates.rows_a_second(), Some(2.0));
        assert!(rates.notes[0].contains("over the last 2.0 s only"));
    }

    #[test]
    fn one_sentence_says_it() {
        let mut rates = Rates {
            micros: 840_000_000,
            commits: 47_880,
            table: RowCounts {
                micros: 840_000_000,
                inserted: 34_608,
                updated: 10_080,
                hot_updated: 8_366,
                deleted: 84,
            },
            classes: RowCounts {
                micros: 840_000_000,
                ..RowCounts::default()
            },
            ..Rates::default()
        };
        assert_eq!(
            Writing::Counted(rates.clone()).to_string(),
            "written: 41.2 rows a second inserted, 12.0 updated (83 % HOT), 0.1 deleted; \
             57 commits a second, over 14 min of WAL"
        );
        rates.classes.inserted = 3;
        rates.aborts = 2;
        rates.table = RowCounts {
            micros: 840_000_000,
            ..RowCounts::default()
        };
        rates.notes = vec!["only its last 4 GiB were read".to_owned()];
        assert_eq!(
            rates.to_string(),
            "0 rows a second inserted, 0 updated, 0 deleted; 57 commits and 0.004 relations created a second, \
             over 14 min of WAL; with the rows of 2 transactions that were rolled back; only its last 4 GiB were read"
        );
        let unknown = Writing::Unknown {
            why: "pg_wal holds no WAL".to_owned(),
        };
        assert_eq!(
            unknown.to_string(),
            "written: not known, as pg_wal holds no WAL"
        );
    }

    #[test]
    fn it_comes_back_from_json_as_it_went_in() {
        let writing = [
            Writing::Counted(after(&[0, SECOND]).expect("two commits")),
            Writing::Unknown {
                why: "pg_wal holds no WAL".to_owned(),
            },
        ];
        let text = serde_json::to_string(&writing).expect("JSON");
        let read: [Writing; 2] = serde_json::from_str(&text).expect("the same");
        assert_eq!(read, writing);
    }
}
