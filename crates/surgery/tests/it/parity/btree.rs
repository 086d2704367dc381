//! What `amcheck` finds on btree indexes that were hurt, each in another way, we find on the same
//! index and, where `amcheck` names blocks, at one of them. What it does not find at all is listed.

use crate::parity::indexes::Trial;

/// A table whose indexes have three levels; an index on each column for each injury. Equal values
/// of `amount` need not look alike, so that its indexes must not share entries.
const BTREE: Trial = Trial {
    prefix: "btree-",
    fill: "CREATE SCHEMA parity; CREATE TABLE parity.rows (id int, word text COLLATE \"C\", amount numeric); \
           INSERT INTO parity.rows SELECT i, 'word ' || i / 3, i / 2.0 FROM generate_series(1, 15000) i",
    indexes: &[
        (" id", "UNIQUE rows (id) WITH (fillfactor = 10)"),
        (" word", "rows (word) WITH (fillfactor = 10)"),
        (" amount", "rows (amount) WITH (fillfactor = 10)"),
    ],
    after: &["VACUUM parity.rows"],
    calls: &[
        ("bt_index_check", ", heapallindexed => false"),
        ("bt_index_check", ", heapallindexed => true"),
        (
            "bt_index_parent_check",
            ", heapallindexed => true, rootdescend => true",
        ),
    ],
    // Where a key is beyond all that lead to its page, `amcheck` names the page in front of the one
    // to which nothing leads.
    also_meant: |message, named| {
        let next = message.starts_with("child high key is greater");
        let named = named.iter().filter(|_| next);
        named.map(|block| block + 1).collect()
    },
};

const UNSEEN: &[&str] = &["btree-root-flag"];

#[test]
fn of_15() {
    BTREE.passes_on(15, UNSEEN);
}

#[test]
fn of_18() {
    BTREE.passes_on(18, UNSEEN);
}
