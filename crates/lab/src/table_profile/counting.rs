//! What is counted while records of WAL go by.
//!
//! ```text
//! rows | commit | rows | abort | rows | commit | rows
//!               └────────── counted ──────────┘
//! ```
//!
//! Records of commits say when they were made, records of heaps whose rows they write. What stands
//! before the first commit was written in a time of which nothing is known, and what stands behind
//! the last has not ended: neither counts. Rows of transactions that were rolled back were written
//! like any others, and count.

use pgclinic_format::Fork;
use pgclinic_format::wal::{Event, FileNumber, Outcome, Record, RowsWritten};

use super::rates::{Rates, RowCounts, span};

/// A transaction takes its time before its place in WAL, so that neighbours may be out of order by
/// a little. A clock that is further back than this was set; in microseconds.
const JITTER_MICROS: i64 = 1_000_000;

/// What is counted while records go by.
#[derive(Clone, Debug)]
pub(super) struct Counting {
    clock: Clock,
    commits: u64,
    aborts: u64,
    /// Behind the last commit.
    aborts_since: u64,
    table: Watched,
    classes: Watched,
}

impl Counting {
    pub(super) fn of(table: FileNumber, classes: FileNumber) -> Self {
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
    pub(super) fn anew(&self) -> Self {
        Self::of(self.table.file, self.classes.file)
    }

    pub(super) fn record(&mut self, record: &Record<'_>, major: u16) {
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
    pub(super) fn rates(self, mut notes: Vec<String>) -> Result<Rates, String> {
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
}
