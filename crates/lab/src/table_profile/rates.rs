//! How fast a table is written, as the WAL that lies beside its files tells.

use pgclinic_model::{plural, verb_of};
use std::fmt;

use serde::{Deserialize, Serialize};

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
    /// Microseconds between the two by the server's clock, without the steps in which it was set
    /// back; above 0.
    pub micros: u64,
    /// Commits behind the first, in all databases. Transactions that wrote nothing have no record.
    pub commits: u64,
    /// Transactions that were rolled back; their rows count.
    pub aborts: u64,
    /// Rows of the table.
    pub table: RowCounts,
    /// Rows of `pg_class` in the table's database: each that was inserted is a relation that was
    /// created.
    pub classes: RowCounts,
    /// What of the WAL does not count, as clauses without a full stop.
    pub notes: Vec<String>,
}

/// Rows of one table that were written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RowCounts {
    /// Microseconds of those of [`Rates`] in which the table had the files that it has now; rows of
    /// older files are not known.
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

    /// Rows of the table that were inserted, updated or deleted, a second; `None` where its files
    /// are as new as the last commit.
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

    /// Tables, indexes, TOAST tables, sequences and views that were created, a second; `None` where
    /// the files of `pg_class` are as new as the last commit.
    pub fn relations_created_a_second(&self) -> Option<f64> {
        a_second(self.classes.inserted, self.classes.micros)
    }
}

fn a_second(count: u64, micros: u64) -> Option<f64> {
    (micros > 0).then(|| count as f64 / (micros as f64 / 1e6))
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
        let commits = if commits >= 10.0 {
            format!("{commits:.0}")
        } else {
            told(commits)
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
                "; with the rows of {aborts} that {were} rolled back",
                aborts = plural(aborts, "transaction"),
                were = verb_of(aborts, "were")
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
pub(super) fn span(micros: u64) -> String {
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
            Writing::Counted(Rates {
                micros: 1_000_000,
                commits: 1,
                notes: vec!["only its last 4 GiB were read".to_owned()],
                ..Rates::default()
            }),
            Writing::Unknown {
                why: "pg_wal holds no WAL".to_owned(),
            },
        ];
        let text = serde_json::to_string(&writing).expect("JSON");
        let read: [Writing; 2] = serde_json::from_str(&text).expect("the same");
        assert_eq!(read, writing);
    }
}
