//! `unexpected chunk number` and `missing chunk number`: a long value has a gap.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct ToastChunkNumber;

impl ServerMessage for ToastChunkNumber {
    fn name(&self) -> &'static str {
        "toast-chunk-number"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX001"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "unexpected chunk number {n} (expected {n}) for toast value {toast_value} in {toast_relation}",
            "unexpected chunk number {n} (out of range {n}..{n}) for toast value {toast_value} in {toast_relation}",
            "unexpected chunk number {n} (expected {n}) in final chunk for toast value {toast_value} in {toast_relation}",
            "missing chunk number {n} for toast value {toast_value} in {toast_relation}",
            "unexpected chunk number",
            "missing chunk number",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
Long values are cut into chunks of about 2 kB and kept in a TOAST relation, `pg_toast_N`, where N is the \
OID of the table. Putting a value together the server found the chunks out of order, one too many, or \
one missing.

Causes, most frequent first: a page of the TOAST relation was zeroed or restored from another day; its \
index is damaged and does not lead to the chunk; a tuple of it is damaged (a wild number such as \
-556107646 says so: random bytes where `chunk_seq` should be); an old bug or a restored table whose \
pointer names another value.

At risk is that one value. The row's other columns are whole and can be read: leave the long column out. \
Other rows of the table are not touched.

It does **not** mean that the table is unreadable: `pg_dump` stops only because it wants every column.

**Never** update the row with its old value or set the column to NULL before the chunks have been saved: \
that deletes the chunks which are still there."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = names.look();
        steps.extend(["Rebuild the TOAST relation's index in the copy first and try again (`REINDEX TABLE pg_toast.pg_toast_N`): a damaged index hides chunks that are there".to_owned(), names.restore(), "Find the rows that are hit: read the long columns row by row, for instance `SELECT ctid, length(column) FROM …` in a loop that catches the error".to_owned()]);
        steps
    }
}
