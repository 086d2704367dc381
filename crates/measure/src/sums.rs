//! What a measure adds up over the pages of a relation, in any order and on any thread.

use std::collections::BTreeMap;

/// Sums, lowest and highest values and spreads, each by the number that its measure gave it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sums {
    sums: Vec<u64>,
    lowest: Vec<Option<u64>>,
    highest: Vec<Option<u64>>,
    spreads: Vec<Counts>,
}

/// Values below this are counted in an array.
const SMALL: usize = 256;

/// How often each value occurs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Counts {
    /// Of small values, by the value; empty or of length [`SMALL`].
    small: Vec<u64>,
    large: BTreeMap<u64, u64>,
}

impl Counts {
    #[inline]
    fn note(&mut self, value: u64, often: u64) {
        if value >= SMALL as u64 {
            *self.large.entry(value).or_default() += often;
            return;
        }
        if self.small.is_empty() {
            self.small.resize(SMALL, 0);
        }
        if let Some(count) = self.small.get_mut(value as usize) {
            *count += often;
        }
    }

    fn all(&self) -> impl Iterator<Item = (u64, u64)> {
        let small = (0u64..).zip(self.small.iter().copied());
        let large = self.large.iter().map(|(value, often)| (*value, *often));
        small.filter(|(_, often)| *often > 0).chain(large)
    }
}

impl Sums {
    /// Adds to a sum.
    #[inline]
    pub fn add(&mut self, slot: u8, amount: u64) {
        let sum = slot_of(&mut self.sums, slot);
        *sum = sum.saturating_add(amount);
    }

    /// Keeps the lowest value.
    pub fn lower(&mut self, slot: u8, value: u64) {
        let lowest = slot_of(&mut self.lowest, slot);
        *lowest = Some(lowest.map_or(value, |known| known.min(value)));
    }

    /// Keeps the highest value.
    pub fn raise(&mut self, slot: u8, value: u64) {
        let highest = slot_of(&mut self.highest, slot);
        *highest = (*highest).max(Some(value));
    }

    /// Counts a value.
    #[inline]
    pub fn note(&mut self, slot: u8, value: u64) {
        self.note_often(slot, value, 1);
    }

    /// Counts a value so many times.
    #[inline]
    pub fn note_often(&mut self, slot: u8, value: u64, often: u64) {
        slot_of(&mut self.spreads, slot).note(value, often);
    }

    /// A sum.
    pub fn sum(&self, slot: u8) -> u64 {
        self.sums.get(usize::from(slot)).copied().unwrap_or(0)
    }

    /// The lowest value, if any was given.
    pub fn lowest(&self, slot: u8) -> Option<u64> {
        self.lowest.get(usize::from(slot)).copied().flatten()
    }

    /// The highest value, if any was given.
    pub fn highest(&self, slot: u8) -> Option<u64> {
        self.highest.get(usize::from(slot)).copied().flatten()
    }

    /// How often each value was counted.
    pub fn spread(&self, slot: u8) -> Option<BTreeMap<u64, u64>> {
        self.spreads
            .get(usize::from(slot))
            .map(|counts| counts.all().collect())
    }

    /// As if so many times as much had been seen: sums and spreads grow, lowest and highest values stay.
    pub fn scaled(&self, times: f64) -> Sums {
        let grown = |amount: u64| (amount as f64 * times).round() as u64;
        let spread = |counts: &Counts| {
            let mut all = Counts::default();
            counts
                .all()
                .for_each(|(value, often)| all.note(value, grown(often)));
            all
        };
        Sums {
            sums: self.sums.iter().copied().map(grown).collect(),
            lowest: self.lowest.clone(),
            highest: self.highest.clone(),
            spreads: self.spreads.iter().map(spread).collect(),
        }
    }

    /// Takes over what another has added up.
    pub fn absorb(&mut self, other: &Sums) {
        for (slot, amount) in (0u8..).zip(&other.sums) {
            self.add(slot, *amount);
        }
        for (slot, value) in (0u8..).zip(&other.lowest) {
            value.iter().for_each(|value| self.lower(slot, *value));
        }
        for (slot, value) in (0u8..).zip(&other.highest) {
            value.iter().for_each(|value| self.raise(slot, *value));
        }
        for (slot, counts) in (0u8..).zip(&other.spreads) {
            for (value, often) in counts.all() {
                self.note_often(slot, value, often);
            }
        }
    }
}

#[inline]
fn slot_of<T: Clone + Default>(slots: &mut Vec<T>, slot: u8) -> &mut T {
    let at = usize::from(slot);
    if slots.len() <= at {
        slots.resize(at + 1, T::default());
    }
    // Just made long enough.
    &mut slots[at]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_threads_add_up_is_what_one_would() {
        let mut one = Sums::default();
        let mut other = Sums::default();
        for (sums, value) in [(&mut one, 3), (&mut other, 9)] {
            sums.add(2, value);
            sums.lower(0, value);
            sums.raise(1, value);
            sums.note(4, 7);
        }
        one.absorb(&other);
        assert_eq!((one.sum(2), one.sum(0), one.sum(99)), (12, 0, 0));
        assert_eq!(
            (one.lowest(0), one.highest(1), one.highest(0)),
            (Some(3), Some(9), None)
        );
        assert_eq!(one.spread(4), Some(BTreeMap::from([(7, 2)])));
    }
}
