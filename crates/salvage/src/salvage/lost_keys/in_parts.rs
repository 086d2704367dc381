//! Every lost key of a table, also where they are too many for memory: a part of them after the
//! other, each with a look at the index and at the damaged pages of its own.

use std::hash::{DefaultHasher, Hash, Hasher};

use pgclinic_cluster::Pieces;
use pgclinic_model::document::TableAccount;

use super::{Damaged, Search};
use crate::formats::form_named;
use crate::salvage::Rows;
use crate::shape::Table;

/// Parts that are not divided further: a key each would fit then.
const PARTS_MAX: u64 = 1 << 16;

/// A part of all keys, by their hashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct KeyPart {
    parts: u64,
    number: u64,
}

impl KeyPart {
    pub(super) const ALL: KeyPart = KeyPart {
        parts: 1,
        number: 0,
    };

    pub(super) fn holds(self, key: &[u8]) -> bool {
        if self.parts == 1 {
            return true;
        }
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        hasher.finish() % self.parts == self.number
    }

    /// Smaller parts of it, about as many as asked for.
    fn divided(self, by: u64) -> Vec<KeyPart> {
        let times = by.clamp(2, PARTS_MAX);
        let parts = self.parts.saturating_mul(times);
        let numbers = (0..times).map(|at| self.number + at * self.parts);
        numbers.map(|number| KeyPart { parts, number }).collect()
    }
}

impl Search<'_> {
    /// Gives each key of a lost row of a table in the first of its unique indexes that has all
    /// rows, once.
    pub(in crate::salvage) fn each_lost_key(
        &self,
        account: &TableAccount,
        each: &mut dyn FnMut(&[u8]),
    ) {
        let Some(relation) = self.catalog.relations.get(&account.oid) else {
            return;
        };
        let mut options = self.options.clone();
        options.form = form_named("copy").expect("a form of the register");
        options.rows = Rows::Live;
        let choice = options.column_choice();
        let Ok(table) = Table::of(self.files, self.catalog, relation, choice) else {
            return;
        };
        let damaged = Damaged {
            blocks: &account.pages.damaged,
            vacant: &account.pages.vacant,
            items: &account.pages.lost_items,
            pieces: Pieces::of(&table.files, self.cluster.build),
        };
        let indexes = self.unique_indexes(relation, &table);
        let Some(index) = indexes.iter().find(|index| index.has_all()) else {
            return;
        };
        let mut parts = vec![KeyPart::ALL];
        while let Some(part) = parts.pop() {
            let mut keys = self.entries(index, &damaged, part);
            if keys.omitted > 0 && part.parts < PARTS_MAX && !self.progress.is_interrupted() {
                let more = keys.omitted / (keys.kept + 1) + 2;
                parts.extend(part.divided(more));
                continue;
            }
            if !keys.lines.is_empty() {
                self.leave_out_found(&table, index, &damaged, &options, relation, &mut keys);
            }
            keys.lines.keys().for_each(|key| each(key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_in_one_of_the_parts() {
        let parts = KeyPart::ALL.divided(3);
        let smaller = parts.iter().flat_map(|part| part.divided(2));
        let smaller: Vec<KeyPart> = smaller.collect();
        assert_eq!(smaller.len(), 6);
        for number in 0..1000_u32 {
            let key = number.to_be_bytes();
            let of = |parts: &[KeyPart]| parts.iter().filter(|part| part.holds(&key)).count();
            assert_eq!((of(&parts), of(&smaller)), (1, 1));
        }
    }
}
