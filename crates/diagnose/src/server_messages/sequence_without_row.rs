//! `query to get data of sequence … returned 0 rows`: the sequence is empty.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct SequenceWithoutRow;

impl ServerMessage for SequenceWithoutRow {
    fn name(&self) -> &'static str {
        "sequence-returned-no-row"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &[]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "query to get data of sequence {sequence} returned {n} row",
            "query to get data of sequence {sequence} returned 0 rows",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
This comes from `pg_dump`. A sequence is a relation of one page with exactly one row: last value, log \
count, whether it was called. `pg_dump` read it and got no row.

The page was zeroed (by a bad disk, or by `zero_damaged_pages`, which gives exactly this after `invalid \
page …; zeroing out page`), or the one tuple's header or line pointer is damaged so that the row is not \
visible.

At risk is one number: the last value given out. It can be found again: it is at least the highest value \
in the column that uses the sequence. Values that were given out and never stored cannot be known; a gap \
does no harm, so go higher rather than lower.

It does **not** mean that the table's rows are touched. But inserts fail now, or would collide if the \
sequence began at 1 again.

`pg_dump` stops at this: dump the other tables one by one, or leave the sequence out with \
`--exclude-table`.

**Never** restart the sequence below the highest value in use."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = names.look();
        steps.extend(["Find the highest number in use, `SELECT max(column) FROM table`, and make the sequence anew in the copy first: `SELECT setval('sequence', max, true);` does not work while its page is empty, `DROP` and `CREATE SEQUENCE … OWNED BY` (or `ALTER TABLE … ALTER … ADD GENERATED`) does".to_owned(), names.restore()]);
        steps
    }
}
