//! Messages about posting lists and row numbers in an index.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct BtreePosting;

impl ServerMessage for BtreePosting {
    fn name(&self) -> &'static str {
        "btree-posting-list"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX002", "XX000"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "posting list tuple with {n} items cannot be split",
            "posting list tuple",
            "posting list contains misplaced tid in index {relation}",
            "table tid from new index tuple ({n},{n}) overlaps with invalid duplicate tuple at offset {item} of block {block} in index {relation}",
            "table tid from new index tuple",
            "heap tid from index tuple ({n},{n}) points past end of heap page line pointer array at offset {item} of block {block} in index {relation}",
            "heap tid from index tuple ({n},{n}) points to heap-only tuple at offset {item} of block {block} in index {relation}",
            "heap tid from index tuple ({n},{n}) points to unused heap page item at offset {item} of block {block} in index {relation}",
            "heap tid from index tuple",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
Since 13 a btree keeps equal keys as one tuple with a *posting list*: the row numbers (TIDs) of all rows \
with this key, in order and each once. An insert or a deletion of old versions met a list or a TID that \
cannot be: out of order, a row number that is there already, or one that points to a place in the table \
which holds no row.

The index and the table do not fit together. Either the index is damaged or older than the table, or the \
table lost something that the index still knows (a page zeroed or put back from an older day), and then \
new rows took the freed places.

The second case is the serious one: \"points past end of heap page line pointer array\" and \"duplicate \
tuple\" often show that **the table's page was replaced**. Look at the table's page first.

No rows are lost because of the index. Queries over it may give wrong rows.

It does **not** mean that deduplication is at fault, and turning it off does not mend anything.

**Never** just rebuild the index and close the case: the table page that is wrong stays wrong."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = vec![names.reindex()];
        steps.extend(names.look());
        steps
    }
}
