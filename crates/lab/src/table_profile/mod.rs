//! The shape of a person's own table, read from its files, and SQL for a bounded copy of that
//! shape.
//!
//! What is taken: the share of nulls, the sizes of values, how far they can be compressed, whether
//! neighbours rise, how many rows there are, and how fast they are written, by the WAL beside them.
//! What is not: the values themselves. Nothing that was in the table stands in the copy, so that a
//! copy may be kept and shown.

mod copy;
mod counting;
mod look;
mod rates;
mod sample;
mod wal;

use pgclinic_model::plural;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use copy::statements;
pub(crate) use copy::{Parts, SEED};
pub use look::look;
pub(crate) use rates::told;
pub use rates::{Rates, RowCounts, Writing};

/// Smallest, quarter, half, three quarters, largest.
pub type Quartiles = [u64; 5];

/// A column's shape.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ColumnShape {
    /// Its name.
    pub name: String,
    /// `pg_type.typname`.
    pub type_name: String,
    /// The type has values of any length.
    pub is_long: bool,
    /// Share of nulls.
    pub nulls: f64,
    /// Bytes of a value before compression, without header.
    pub bytes: Quartiles,
    /// Share of its bytes that a value keeps when it is compressed: 1 cannot be compressed.
    pub kept: f64,
    /// Share of values that stand in TOAST.
    pub elsewhere: f64,
    /// Share of neighbours of which the later one is larger; nothing where values have no order
    /// that files show.
    pub rises: Option<f64>,
}

impl ColumnShape {
    /// What the column adds to a row on average: sizes spread evenly between quartiles, as the copy
    /// has them, and nothing where it is null.
    fn bytes_a_row(&self) -> u64 {
        let [least, quarter, half, three_quarters, most] = self.bytes.map(|bytes| bytes as f64);
        let mean = ((least + most) / 2.0 + quarter + half + three_quarters) / 4.0;
        pgclinic_model::whole(mean * (1.0 - self.nulls))
    }
}

/// A table's shape.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TableShape {
    /// `pgclinic.lab-shape/1`.
    pub schema: String,
    /// `public.docs`.
    pub table: String,
    /// Pages of the table.
    pub blocks: u64,
    /// Pages that were looked at, evenly spread.
    pub blocks_seen: u64,
    /// Pages among them that could not be read.
    pub blocks_unreadable: u64,
    /// Rows that were looked at.
    pub rows_seen: u64,
    /// Rows of the table, by those that were seen.
    pub rows: u64,
    /// Columns that are not dropped, in order.
    pub columns: Vec<ColumnShape>,
    /// How fast it is written; absent in folders of versions that did not look for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writing: Option<Writing>,
}

impl TableShape {
    /// How fast it is written, or why that is not known.
    pub(crate) fn rates(&self) -> Result<&Rates, String> {
        match &self.writing {
            Some(Writing::Counted(rates)) => Ok(rates),
            Some(Writing::Unknown { why }) => Err(why.clone()),
            None => Err("it was learned by a version that did not look for it".to_owned()),
        }
    }

    /// The same with the columns called c1, c2 and so on, so that none is called as a column of an
    /// experiment.
    pub(crate) fn renamed(&self) -> Self {
        let mut renamed = self.clone();
        for (number, column) in (1..).zip(&mut renamed.columns) {
            column.name = format!("c{number}");
        }
        renamed
    }

    /// Bytes of a row of the copy on average, long values unpacked.
    pub(crate) fn row_bytes(&self) -> u64 {
        28 + self
            .columns
            .iter()
            .map(ColumnShape::bytes_a_row)
            .sum::<u64>()
    }

    /// Share of its bytes that a row keeps when it is compressed; values of one length count as
    /// kept whole.
    pub(crate) fn kept(&self) -> f64 {
        let bytes = |column: &ColumnShape| column.bytes_a_row() as f64;
        let kept = |column: &ColumnShape| {
            if column.is_long {
                bytes(column) * column.kept
            } else {
                bytes(column)
            }
        };
        let all: f64 = self.columns.iter().map(bytes).sum();
        self.columns.iter().map(kept).sum::<f64>() / all.max(1.0)
    }

    /// Large objects and bytes of each on average, where this is the shape of their table: rows are
    /// chunks, and the number of the object rises where another one begins.
    pub(crate) fn large_objects(&self) -> Option<(u64, u64)> {
        let named = |name: &str| self.columns.iter().find(|column| column.name == name);
        let (number, data) = (named("loid")?, named("data")?);
        let objects = (self.rows as f64 * number.rises?).round().max(1.0);
        let bytes = self.rows as f64 * data.bytes_a_row() as f64 / objects;
        let is_theirs = self.table == "pg_catalog.pg_largeobject";
        is_theirs.then_some((
            pgclinic_model::whole(objects),
            pgclinic_model::whole(bytes.round()),
        ))
    }

    /// The column of any length that takes most of the table.
    pub(crate) fn longest(&self) -> Option<(usize, &ColumnShape)> {
        let long = self
            .columns
            .iter()
            .enumerate()
            .filter(|(_, column)| column.is_long);
        long.max_by_key(|(_, column)| column.bytes_a_row())
    }
}

impl fmt::Display for TableShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: about {} in {}; {} of {} were examined, {} could not be read",
            self.table,
            plural(self.rows, "row"),
            plural(self.blocks, "page"),
            plural(self.rows_seen, "row"),
            plural(self.blocks_seen, "page"),
            plural(self.blocks_unreadable, "page")
        )?;
        writeln!(
            f,
            "{:<24} {:<12} {:>7} {:>30} {:>6} {:>9} {:>6}",
            "column",
            "type",
            "null %",
            "bytes: least 1/4 1/2 3/4 most",
            "kept %",
            "toasted %",
            "rise %"
        )?;
        let percent = |share: f64| format!("{:.0}", share * 100.0);
        for column in &self.columns {
            let bytes = column.bytes.map(|bytes| bytes.to_string()).join(" ");
            let kept = if column.is_long {
                percent(column.kept)
            } else {
                String::new()
            };
            writeln!(
                f,
                "{:<24} {:<12} {:>7} {:>30} {:>6} {:>9} {:>6}",
                column.name.escape_debug().to_string(),
                column.type_name.escape_debug().to_string(),
                percent(column.nulls),
                bytes,
                kept,
                percent(column.elsewhere),
                column.rises.map(percent).unwrap_or_default()
            )?;
        }
        if let Some(writing) = &self.writing {
            writeln!(f, "{writing}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, nulls: f64, bytes: Quartiles) -> ColumnShape {
        ColumnShape {
            name: name.to_owned(),
            type_name: "text".to_owned(),
            is_long: true,
            nulls,
            bytes,
            kept: 1.0,
            elsewhere: 0.0,
            rises: None,
        }
    }

    #[test]
    fn the_longest_column_is_the_one_that_takes_most_of_the_table() {
        let shape = TableShape {
            schema: "pgclinic.lab-shape/1".to_owned(),
            table: "public.own".to_owned(),
            blocks: 1,
            blocks_seen: 1,
            blocks_unreadable: 0,
            rows_seen: 1,
            rows: 1,
            columns: vec![
                column("rarely_there", 0.99, [9_000; 5]),
                column("body", 0.0, [10, 20, 600, 4_000, 8_000]),
                column("steady", 0.0, [700; 5]),
            ],
            writing: None,
        };
        let longest = shape
            .longest()
            .map(|(at, column)| (at, column.name.as_str()));
        assert_eq!(longest, Some((1, "body")));
        assert_eq!(shape.row_bytes(), 28 + 90 + 2_156 + 700);
    }
}
