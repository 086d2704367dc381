//! What the pages of an SP-GiST index hold, and which of its inner tuples were reached.
//!
//! A byte an inner tuple and a byte or two a block are kept. Inner tuples are few: each divides a
//! page of rows.

use std::collections::BTreeMap;

use pgclinic_format::spgist::{NULL_ROOT, ROOT, SpgistPage, State};
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, Page};

/// What a block holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holds {
    /// Nothing that can be read as a page of SP-GiST, or the meta page.
    Nothing,
    /// Inner tuples.
    Inner {
        /// Of the tree of nulls.
        nulls: bool,
    },
    /// Rows.
    Leaf {
        /// Of the tree of nulls.
        nulls: bool,
    },
}

/// What came of a visit to an inner tuple.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Visit {
    /// Nobody was there before.
    First,
    /// Somebody was.
    Again,
    /// No live inner tuple is there.
    NotLive,
}

const NOT_LIVE: u8 = 0;
const LIVE: u8 = 1;
const REACHED: u8 = 2;

/// The index as far as its inner tuples go.
pub(crate) struct SpgistTree {
    holds: Vec<Holds>,
    inner: BTreeMap<BlockNo, Vec<u8>>,
}

impl SpgistTree {
    /// Of so many blocks, none looked at.
    pub(crate) fn new(blocks: usize) -> Self {
        SpgistTree {
            holds: vec![Holds::Nothing; blocks],
            inner: BTreeMap::new(),
        }
    }

    /// Takes in a page.
    pub(crate) fn add(&mut self, block: BlockNo, page: Option<Page<'_>>) {
        let page = page.and_then(SpgistPage::parse);
        let Some(page) = page.filter(|page| !page.is_meta()) else {
            return;
        };
        let nulls = page.holds_nulls();
        let holds = if page.is_leaf() {
            Holds::Leaf { nulls }
        } else {
            Holds::Inner { nulls }
        };
        if let Some(slot) = self.holds.get_mut(index(block)) {
            *slot = holds;
        }
        if page.is_leaf() {
            return;
        }
        let mut states = vec![NOT_LIVE; usize::from(page.page().line_pointer_count())];
        for (number, tuple) in page.tuples() {
            let slot = states.get_mut(usize::from(number).saturating_sub(1));
            if let Some(slot) = slot.filter(|_| tuple.state() == State::Live) {
                *slot = LIVE;
            }
        }
        self.inner.insert(block, states);
    }

    /// Bytes of memory that are held.
    pub(crate) fn bytes(&self) -> u64 {
        let states: usize = self.inner.values().map(|states| states.len() + 64).sum();
        let blocks = self.holds.len().saturating_mul(size_of::<Holds>());
        u64::try_from(states.saturating_add(blocks)).unwrap_or(u64::MAX)
    }

    /// What a block holds.
    pub(crate) fn holds(&self, block: BlockNo) -> Holds {
        let held = self.holds.get(index(block));
        held.copied().unwrap_or(Holds::Nothing)
    }

    /// A node may lead to this block.
    pub(crate) fn is_target(&self, block: BlockNo) -> bool {
        block > NULL_ROOT && index(block) < self.holds.len()
    }

    /// Notes that an inner tuple was reached.
    pub(crate) fn visit(&mut self, at: Tid) -> Visit {
        let states = self.inner.get_mut(&at.block);
        let slot = states.and_then(|states| {
            let index = usize::from(at.offset).checked_sub(1)?;
            states.get_mut(index)
        });
        match slot {
            Some(state) if *state == LIVE => {
                *state = REACHED;
                Visit::First
            }
            Some(state) if *state == REACHED => Visit::Again,
            Some(_) | None => Visit::NotLive,
        }
    }

    /// Live inner tuples that were not reached, roots left out.
    pub(crate) fn lost(&self) -> impl Iterator<Item = (BlockNo, u16)> + '_ {
        let pages = self.inner.iter();
        let pages = pages.filter(|(block, _)| !matches!(**block, ROOT | NULL_ROOT));
        pages.flat_map(|(block, states)| {
            let numbers = (1_u16..).zip(states);
            let lost = numbers.filter(|(_, state)| **state == LIVE);
            lost.map(|(number, _)| (*block, number))
        })
    }
}

fn index(block: BlockNo) -> usize {
    usize::try_from(block).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgclinic_format::build::{PageBuilder, put_u16};
    use pgclinic_format::spgist::{PAGE_ID, SPGIST_LEAF};

    fn page(flags: u16, state: u8) -> Vec<u8> {
        let mut special = [0; 8];
        put_u16(&mut special, 0, flags);
        put_u16(&mut special, 6, PAGE_ID);
        let mut tuple = [0; 16];
        tuple[0] = state;
        PageBuilder::new(8192, &special).item(&tuple).finish(0)
    }

    #[test]
    fn inner_tuples_are_reached_once() {
        let mut tree = SpgistTree::new(6);
        for (block, bytes) in [
            (1, page(0, 0)),
            (3, page(SPGIST_LEAF, 0)),
            (4, page(0, 0)),
            (5, page(0, 3)),
        ] {
            tree.add(block, Page::parse(&bytes));
        }
        let at = |block, offset| Tid { block, offset };
        assert_eq!(tree.visit(at(1, 1)), Visit::First);
        assert_eq!(tree.lost().collect::<Vec<_>>(), [(4, 1)]);
        assert_eq!(tree.visit(at(4, 1)), Visit::First);
        assert_eq!(tree.visit(at(4, 1)), Visit::Again);
        assert_eq!(tree.visit(at(4, 2)), Visit::NotLive);
        assert_eq!(
            tree.visit(at(5, 1)),
            Visit::NotLive,
            "a placeholder is no inner tuple"
        );
        assert_eq!(tree.lost().count(), 0);
        assert_eq!(tree.holds(3), Holds::Leaf { nulls: false });
    }
}
