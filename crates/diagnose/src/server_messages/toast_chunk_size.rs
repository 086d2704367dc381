//! `unexpected chunk size`: a piece of a long value has the wrong length.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct ToastChunkSize;

impl ServerMessage for ToastChunkSize {
    fn name(&self) -> &'static str {
        "toast-chunk-size"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX001"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "unexpected chunk size {n} (expected {n}) in chunk {n} of {n} for toast value {toast_value} in {toast_relation}",
            "unexpected chunk size {n} (expected {n}) in final chunk {n} for toast value {toast_value} in {toast_relation}",
            "unexpected chunk size {n} (expected {n}) for toast value {toast_value} in {toast_relation}",
            "unexpected chunk size",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
A long value stands in a TOAST relation in chunks of one size, only the last one is shorter. How many \
there are and how long the last one is follows from the pointer in the row. The server met a chunk of \
another length.

Either the chunk's own tuple is damaged (its length word), or the pointer in the table's row is \
(`va_extsize`), or the pointer leads to the chunks of another value. A cluster whose files were copied \
into a server that was built with another chunk size gives it for every value.

At risk is this one value; the rest of the row and of the table can be read.

It does **not** mean that all chunks are lost. As long as they are there, most of the value can be put \
together by hand: `SELECT chunk_seq, length(chunk_data) FROM pg_toast.pg_toast_N WHERE chunk_id = …`. A \
compressed value ends at its first wrong byte.

**Never** overwrite the column before the chunks have been saved: the update deletes them."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = names.look();
        steps.extend([
            names.restore(),
            "Read the other columns and rows: leave the long column out".to_owned(),
        ]);
        steps
    }
}
