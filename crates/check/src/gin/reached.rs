//! Which pages of a GIN index are in use: those that the meta page and the root lead to.
//!
//! An insert that failed or a crash may leave pages behind that nothing leads to, with row numbers
//! that VACUUM never sees: only rows on pages that are reached count.

use pgclinic_format::BlockNo;

use crate::findings::Findings;
use crate::relation_check::RelationCx;

use super::level::Walk;

/// One bit a block.
#[derive(Clone, Debug, Default)]
pub struct Reached {
    words: Vec<u64>,
    blocks: u64,
}

impl Reached {
    /// None of so many blocks.
    pub(crate) fn none(blocks: u64) -> Self {
        let words = usize::try_from(blocks.div_ceil(64)).unwrap_or(0);
        Reached {
            words: vec![0; words],
            blocks,
        }
    }

    /// Notes a block; true when it was not noted before and is one of the index.
    pub(crate) fn note(&mut self, block: BlockNo) -> bool {
        let block = u64::from(block);
        if block >= self.blocks {
            return false;
        }
        let Some(word) = self
            .words
            .get_mut(usize::try_from(block / 64).unwrap_or(usize::MAX))
        else {
            return false;
        };
        let bit = 1 << (block % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Whether the block is in use.
    pub fn contains(&self, block: BlockNo) -> bool {
        let word = self
            .words
            .get(usize::try_from(block / 64).unwrap_or(usize::MAX));
        word.is_some_and(|word| word >> (block % 64) & 1 == 1)
    }
}

/// The pages in use of the GIN index that `relation` is. Costs one read of each of them.
pub fn reached(relation: &RelationCx<'_>) -> Reached {
    let mut ignored = Findings::default();
    let mut walk = Walk::new(relation);
    walk.all(&mut ignored);
    walk.into_reached()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_new_once() {
        let mut reached = Reached::none(65);
        assert!(reached.note(64) && !reached.note(64) && !reached.note(65));
        assert!(reached.contains(64) && !reached.contains(0));
    }
}
