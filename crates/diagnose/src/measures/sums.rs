//! What a measure adds up over the pages of a relation, in any order and on any thread.

use std::collections::BTreeMap;

/// Sums, highest values and spreads, each by the number that its measure gave it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sums {
    sums: BTreeMap<u8, u64>,
    highest: BTreeMap<u8, u64>,
    spreads: BTreeMap<u8, BTreeMap<u64, u64>>,
}

impl Sums {
    /// Adds to a sum.
    pub fn add(&mut self, slot: u8, amount: u64) {
        let sum = self.sums.entry(slot).or_default();
        *sum = sum.saturating_add(amount);
    }

    /// Keeps the highest value.
    pub fn raise(&mut self, slot: u8, value: u64) {
        let highest = self.highest.entry(slot).or_default();
        *highest = (*highest).max(value);
    }

    /// Counts a value.
    pub fn note(&mut self, slot: u8, value: u64) {
        let spread = self.spreads.entry(slot).or_default();
        *spread.entry(value).or_default() += 1;
    }

    /// A sum.
    pub fn sum(&self, slot: u8) -> u64 {
        self.sums.get(&slot).copied().unwrap_or(0)
    }

    /// The highest value, if any was given.
    pub fn highest(&self, slot: u8) -> Option<u64> {
        self.highest.get(&slot).copied()
    }

    /// How often each value was counted.
    pub fn spread(&self, slot: u8) -> Option<&BTreeMap<u64, u64>> {
        self.spreads.get(&slot)
    }

    /// Takes over what another has added up.
    pub fn absorb(&mut self, other: Sums) {
        for (slot, amount) in other.sums {
            self.add(slot, amount);
        }
        for (slot, value) in other.highest {
            self.raise(slot, value);
        }
        for (slot, spread) in other.spreads {
            let own = self.spreads.entry(slot).or_default();
            for (value, often) in spread {
                *own.entry(value).or_default() += often;
            }
        }
    }
}
