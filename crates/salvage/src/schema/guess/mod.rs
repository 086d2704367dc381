//! Columns guessed from the rows of a file, where nothing else tells them: how many, how long, how
//! aligned, and which types their values would be plausible for.
//!
//! ```text
//! rows ─► number of columns ─► layouts column by column, the likelier ones kept ─► those that end where each row does ─► types
//! ```
//!
//! The confidence of a column is the share of all layouts that are left, weighed by how plausible
//! they are, in which it has the same type.

mod kinds;
mod search;

use pgclinic_format::HeapTuple;

use kinds::{GuessedType, Kinds};
use search::Way;

/// Rows that are looked at; more tell hardly more.
pub(crate) const ROWS_MAX: usize = 200;

/// A column as it may have been.
#[derive(Clone, PartialEq, Debug)]
pub struct GuessedColumn {
    /// Name of its type, as SQL has it.
    pub type_name: String,
    /// From 0 to 1; 0 where every row that was seen is null there.
    pub confidence: f64,
}

/// The columns of the rows; nothing where no layout fits them.
pub fn columns_of(rows: &[Vec<u8>]) -> Option<Vec<GuessedColumn>> {
    let tuples: Vec<HeapTuple<'_>> = rows
        .iter()
        .filter_map(|row| HeapTuple::parse(row))
        .collect();
    // Older rows have fewer columns: those with all of them tell.
    let count = tuples.iter().map(|tuple| tuple.attribute_count()).max()?;
    let full: Vec<HeapTuple<'_>> = tuples
        .into_iter()
        .filter(|tuple| tuple.attribute_count() == count)
        .take(ROWS_MAX)
        .collect();
    let mut kinds = Kinds::new();
    let ways = search::ways(&full, usize::from(count), &mut kinds);
    let best = ways.first()?;
    let weights = weights(&ways);
    let columns = best
        .kinds
        .iter()
        .enumerate()
        .map(|(at, kind)| GuessedColumn {
            type_name: kinds.type_name(*kind),
            confidence: if full.iter().all(|row| search::is_null(*row, at)) {
                0.0
            } else {
                agreeing(&ways, &weights, at, *kind)
            },
        });
    Some(columns.collect())
}

/// Of the guess as a whole: that of its least certain column.
pub fn confidence(columns: &[GuessedColumn]) -> f64 {
    let known = columns.iter().map(|column| column.confidence);
    known.filter(|known| *known > 0.0).fold(1.0, f64::min)
}

/// How much each way counts: all together 1.
fn weights(ways: &[Way]) -> Vec<f64> {
    let best = ways.first().map_or(0.0, |way| way.score);
    let raw: Vec<f64> = ways.iter().map(|way| (way.score - best).exp()).collect();
    let sum: f64 = raw.iter().sum();
    raw.into_iter().map(|weight| weight / sum).collect()
}

fn agreeing(ways: &[Way], weights: &[f64], at: usize, kind: GuessedType) -> f64 {
    let same = ways.iter().zip(weights);
    same.filter(|(way, _)| way.kinds.get(at) == Some(&kind))
        .map(|(_, weight)| weight)
        .sum()
}

/// The guess as a statement that `--schema` reads, with the confidence of each column.
pub fn statement(name: &str, columns: &[GuessedColumn]) -> String {
    let mut text = format!("CREATE TABLE {name} (\n");
    for (number, column) in (1..).zip(columns) {
        let comma = if number == columns.len() { "" } else { "," };
        let percent = (column.confidence * 100.0).floor();
        let told = if column.confidence > 0.0 {
            format!("confidence {percent} %")
        } else {
            "unknown: null in every row that was examined".into()
        };
        text += &format!("    c{number} {}{comma} -- {told}\n", column.type_name);
    }
    text + ");\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgclinic_format::build::TupleBuilder;

    fn short(text: &str) -> Vec<u8> {
        let header = u8::try_from((text.len() + 1) << 1 | 1).expect("short");
        [&[header], text.as_bytes()].concat()
    }

    #[test]
    fn plain_columns_are_guessed_from_a_few_rows() {
        let rows: Vec<Vec<u8>> = (1..60i32)
            .map(|number| {
                let mut data = number.to_le_bytes().to_vec();
                data.push(u8::from(number % 3 == 0));
                data.extend(short(&format!(
                    "word {}",
                    "x".repeat(usize::try_from(number % 13).unwrap_or(0))
                )));
                data.resize(data.len().next_multiple_of(8), 0);
                let moment = 700_000_000_000_000 + i64::from(number) * 86_400_123_456;
                data.extend(moment.to_le_bytes());
                TupleBuilder::new(4).data(&data).finish()
            })
            .collect();
        let columns = columns_of(&rows).expect("a guess");
        let types: Vec<&str> = columns
            .iter()
            .map(|column| column.type_name.as_str())
            .collect();
        assert_eq!(
            types,
            ["integer", "boolean", "text", "timestamp with time zone"]
        );
        assert!(
            columns.iter().all(|column| column.confidence > 0.5),
            "{columns:?}"
        );
        let statement = statement("t", &columns);
        assert!(
            statement.contains("c2 boolean, -- confidence"),
            "{statement}"
        );
    }
}
