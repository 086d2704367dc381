//! Pages of a cluster whose server is at work that are to be looked at again before anything is
//! said of them.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crate::run_state::{SavedSuspects, Spot};
use pgclinic_format::Lsn;

/// Pages that are kept; the rest is counted.
const PAGES_MAX: usize = 1 << 20;
/// Pages younger than the WAL that was known: those with the highest LSNs are kept. One with an LSN
/// that no WAL will reach is among them.
const YOUNG_MAX: usize = 1 << 14;

/// What was put aside.
#[derive(Default, Debug)]
pub(crate) struct Suspects {
    pages: BTreeSet<Spot>,
    young: BinaryHeap<Reverse<(Lsn, Spot)>>,
    omitted: u64,
}

impl Suspects {
    /// Something is wrong with the page as it was read.
    pub(crate) fn add(&mut self, spot: Spot) {
        if self.pages.len() < PAGES_MAX {
            self.pages.insert(spot);
        } else {
            self.omitted += 1;
        }
    }

    /// The page speaks only of what the WAL that was known did not tell yet.
    pub(crate) fn add_young(&mut self, spot: Spot, lsn: Lsn) {
        self.young.push(Reverse((lsn, spot)));
        if self.young.len() > YOUNG_MAX {
            self.young.pop();
        }
    }

    /// Joins what another thread put aside.
    pub(crate) fn absorb(&mut self, other: Suspects) {
        self.omitted += other.omitted;
        other.pages.into_iter().for_each(|spot| self.add(spot));
        for Reverse((lsn, spot)) in other.young {
            self.add_young(spot, lsn);
        }
    }

    /// All of them, as plain data.
    pub(crate) fn saved(&self) -> SavedSuspects {
        let young = self.young.iter().map(|Reverse(own)| *own);
        let mut young: Vec<_> = young.collect();
        young.sort_unstable();
        SavedSuspects {
            pages: self.pages.iter().copied().collect(),
            young,
            omitted: self.omitted,
        }
    }

    /// From what was saved.
    pub(crate) fn restored(saved: SavedSuspects) -> Self {
        Suspects {
            pages: saved.pages.into_iter().collect(),
            young: saved.young.into_iter().map(Reverse).collect(),
            omitted: saved.omitted,
        }
    }

    /// All of them in order, and how many more there were.
    pub(crate) fn take(&mut self) -> (Vec<Spot>, u64) {
        let mut pages = std::mem::take(&mut self.pages);
        let young = std::mem::take(&mut self.young);
        pages.extend(young.into_iter().map(|Reverse((_, spot))| spot));
        (
            pages.into_iter().collect(),
            std::mem::take(&mut self.omitted),
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::cast_possible_truncation,
        reason = "a test that panics has failed"
    )]

    use pgclinic_format::wal::FileNumber;
    use pgclinic_format::{BlockNo, Fork};

    use super::*;

    fn spot(block: BlockNo) -> Spot {
        let file = FileNumber {
            tablespace: pgclinic_format::oid::DEFAULT_TABLESPACE,
            database: 5,
            filenode: 16384,
        };
        Spot {
            file,
            fork: Fork::Main,
            block,
        }
    }

    #[test]
    fn of_the_young_the_highest_stay() {
        let mut suspects = Suspects::default();
        for block in 0..YOUNG_MAX as u32 + 3 {
            suspects.add_young(spot(block), Lsn(u64::from(block)));
        }
        let (pages, omitted) = suspects.take();
        assert_eq!(pages.len(), YOUNG_MAX);
        assert_eq!(pages.first(), Some(&spot(3)));
        assert_eq!(omitted, 0, "nothing is wrong with the others");
    }

    #[test]
    fn what_was_put_aside_comes_back_from_a_state() {
        let mut suspects = Suspects::default();
        suspects.add(spot(7));
        suspects.add_young(spot(9), Lsn(2));
        suspects.add_young(spot(8), Lsn(1));
        suspects.omitted = 4;
        let text = serde_json::to_string(&suspects.saved()).expect("plain data");
        let saved = serde_json::from_str(&text).expect("what was written");
        let mut restored = Suspects::restored(saved);
        assert_eq!(restored.take(), (vec![spot(7), spot(8), spot(9)], 4));
    }

    #[test]
    fn a_page_is_put_aside_once() {
        let mut suspects = Suspects::default();
        suspects.add(spot(7));
        suspects.add_young(spot(7), Lsn(1));
        let mut other = Suspects::default();
        other.add(spot(7));
        other.add(spot(2));
        suspects.absorb(other);
        assert_eq!(suspects.take(), (vec![spot(2), spot(7)], 0));
    }
}
