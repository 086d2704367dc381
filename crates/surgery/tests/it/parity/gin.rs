//! What `gin_index_check` of 18 finds on GIN indexes that were hurt, each in another way, we find
//! on the same index and, where it names blocks, at one of them. The others it does not find.

use std::collections::BTreeSet;

use pgclinic_surgery::injuries;

use crate::parity::indexes::Trial;

/// A table with values of one row, of some and of all, so that the indexes have posting trees; and
/// entries that still wait.
const GIN: Trial = Trial {
    prefix: "gin-",
    fill: "CREATE SCHEMA parity; CREATE TABLE parity.lists (list int[]); \
           INSERT INTO parity.lists SELECT ARRAY[i % 7, 1, 1000 + i] FROM generate_series(1, 20000) i",
    indexes: &[("", "lists USING gin (list)")],
    after: &[
        "VACUUM parity.lists",
        "INSERT INTO parity.lists SELECT ARRAY[i] FROM generate_series(1, 1000) i",
    ],
    calls: &[("gin_index_check", "")],
    also_meant: |_, _| BTreeSet::new(),
};

/// All that it finds.
const SEEN: &[&str] = &["gin-entry-count", "gin-keys-swapped"];

#[test]
fn of_18() {
    let names = injuries().iter().map(|injury| injury.name);
    let unseen: Vec<&str> = names
        .filter(|name| name.starts_with(GIN.prefix) && !SEEN.contains(name))
        .collect();
    GIN.passes_on(18, &unseen);
}
