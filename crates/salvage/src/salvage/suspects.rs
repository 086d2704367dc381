//! Rows that may not be what they say stand in a file of their own, so that the table's file loads:
//! CSV with the reason in front, whatever the format of the others.

use super::ordered_files::SuspectFile;
use crate::formats::{Csv, Form, csv_field};
use crate::shape::Table;
use crate::texts::Texts;
use crate::values::Row;

/// The first column.
const REASON: &str = "reason";

/// The file of the suspect rows of a table with this file.
pub(crate) fn suspect_file(file: &str, table: &Table) -> SuspectFile {
    let mut head = format!("{REASON},").into_bytes();
    Csv.head(table, &mut head);
    SuspectFile {
        name: suspect_name(file),
        head,
    }
}

/// `public.t.suspect.csv` beside `public.t.parquet`.
pub(super) fn suspect_name(file: &str) -> String {
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    format!("{stem}.suspect.csv")
}

/// A row with the reasons why it is one of them.
pub(super) fn suspect_row(
    reasons: &[String],
    (table, row): (&Table, &Row<'_>),
    texts: &mut Texts,
) -> Vec<u8> {
    let mut out = Vec::new();
    csv_field(reasons.join("; ").as_bytes(), false, &mut out);
    out.push(b',');
    Csv.row(table, row, texts, &mut out);
    // They were taken when the row was printed first.
    drop(texts.take_faults());
    out
}

#[cfg(test)]
mod tests {
    use super::suspect_name;

    #[test]
    fn the_name_is_that_of_the_table() {
        assert_eq!(
            suspect_name("shop/public.t.csv"),
            "shop/public.t.suspect.csv"
        );
        assert_eq!(
            suspect_name("a/b%2Ec.d~7.parquet"),
            "a/b%2Ec.d~7.suspect.csv"
        );
    }
}
