//! Enums: labels in the order of `enumsortorder`. Even OIDs were given out in that order and
//! compare as numbers; odd ones belong to labels that were added between others.
//!
//! Truth: `enum.c`, `pg_enum.c`, `compare_values_of_enum` in `typcache.c`.

use std::cmp::Ordering;

/// Label OIDs, rising, each with its place among the labels.
#[derive(Clone, Debug)]
pub(super) struct Labels(Box<[(u32, u32)]>);

impl Labels {
    /// From labels in their order.
    pub(super) fn new(labels: &[(u32, Vec<u8>)]) -> Self {
        let places = labels
            .iter()
            .zip(0..)
            .map(|((oid, _), place)| (*oid, place));
        let mut places: Vec<(u32, u32)> = places.collect();
        places.sort_unstable();
        Labels(places.into())
    }

    pub(super) fn compare(&self, a: &[u8], b: &[u8]) -> Option<Ordering> {
        let a = u32::from_le_bytes(a.try_into().ok()?);
        let b = u32::from_le_bytes(b.try_into().ok()?);
        if a == b || (a | b) & 1 == 0 {
            return Some(a.cmp(&b));
        }
        Some(self.place(a)?.cmp(&self.place(b)?))
    }

    fn place(&self, oid: u32) -> Option<u32> {
        let at = self.0.binary_search_by_key(&oid, |(of, _)| *of).ok()?;
        self.0.get(at).map(|(_, place)| *place)
    }
}
