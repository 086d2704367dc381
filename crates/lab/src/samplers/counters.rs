//! Counters that only grow: what they grew by during a run.

use std::collections::BTreeMap;

/// The first and the last reading of each counter.
#[derive(Debug, Default)]
pub(super) struct Counters(BTreeMap<String, (f64, f64)>);

impl Counters {
    /// Takes a reading. A counter that was not there before began at this.
    pub(super) fn read(&mut self, name: impl Into<String>, value: f64) {
        let entry = self.0.entry(name.into()).or_insert((value, value));
        entry.1 = value;
    }

    /// What each grew by. One that was reset meanwhile says nothing and is left out.
    pub(super) fn growth(&self) -> impl Iterator<Item = (&str, f64)> {
        let growth = self.0.iter();
        growth
            .map(|(name, (first, last))| (name.as_str(), last - first))
            .filter(|(_, growth)| *growth >= 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_counter_says_nothing() {
        let mut counters = Counters::default();
        for (a, b) in [(5.0, 9.0), (7.0, 9.0), (8.0, 2.0)] {
            counters.read("a", a);
            counters.read("b", b);
        }
        assert_eq!(counters.growth().collect::<Vec<_>>(), [("a", 3.0)]);
    }
}
