//! Many OIDs in little memory: two bytes each while they are few in their range, a bit each when
//! they are many.

use std::collections::HashMap;

use pgclinic_format::Oid;

/// OIDs of one range of 65536 beyond which bits are smaller.
const FEW_MAX: usize = 4096;

/// The low halves of OIDs that share their high half.
enum Range {
    /// Sorted.
    Few(Vec<u16>),
    Many(Box<[u64; 1024]>),
}

/// A set of OIDs. Memory: at most 8 kB for each 65536 OIDs between which one is.
#[derive(Default)]
pub(crate) struct OidSet(HashMap<u16, Range>);

fn halves(oid: Oid) -> (u16, u16) {
    let [a, b, c, d] = oid.to_le_bytes();
    (u16::from_le_bytes([c, d]), u16::from_le_bytes([a, b]))
}

impl OidSet {
    /// Adds one; false when it was there.
    pub(crate) fn insert(&mut self, oid: Oid) -> bool {
        let (high, low) = halves(oid);
        let range = self.0.entry(high).or_insert(Range::Few(Vec::new()));
        if let Range::Few(few) = range
            && few.len() == FEW_MAX
        {
            let mut many = Box::new([0u64; 1024]);
            for low in few.iter() {
                set(&mut many, *low);
            }
            *range = Range::Many(many);
        }
        match range {
            Range::Many(many) => set(many, low),
            Range::Few(few) => match few.binary_search(&low) {
                Ok(_) => false,
                Err(at) => {
                    few.insert(at, low);
                    true
                }
            },
        }
    }

    /// Whether it is there.
    pub(crate) fn contains(&self, oid: Oid) -> bool {
        let (high, low) = halves(oid);
        match self.0.get(&high) {
            None => false,
            Some(Range::Few(few)) => few.binary_search(&low).is_ok(),
            Some(Range::Many(many)) => {
                let word = many.get(usize::from(low / 64));
                word.is_some_and(|word| word & (1 << (low % 64)) != 0)
            }
        }
    }
}

fn set(many: &mut [u64; 1024], low: u16) -> bool {
    let Some(word) = many.get_mut(usize::from(low / 64)) else {
        return false;
    };
    let mask = 1 << (low % 64);
    let new = *word & mask == 0;
    *word |= mask;
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_are_found_again() {
        let mut set = OidSet::default();
        for oid in (0..30_000).step_by(3) {
            assert!(set.insert(oid) && !set.insert(oid));
        }
        assert!(set.insert(u32::MAX) && set.contains(u32::MAX));
        assert!((0..30_000).all(|oid| set.contains(oid) == (oid % 3 == 0)));
        assert!(!set.contains(70_000));
    }
}
