//! A set of the blocks of a range: one bit each.

use std::ops::Range;

use pgclinic_format::BlockNo;

/// Blocks from `first` on.
#[derive(Clone, Default, Debug)]
pub(crate) struct BlockSet {
    first: u64,
    words: Vec<u64>,
}

impl BlockSet {
    /// None of the blocks of this range.
    pub(crate) fn none_of(range: &Range<u64>) -> Self {
        let words = range.end.saturating_sub(range.start).div_ceil(64);
        BlockSet {
            first: range.start,
            words: vec![0; usize::try_from(words).unwrap_or(0)],
        }
    }

    /// Adds a block of the range.
    pub(crate) fn add(&mut self, block: u64) {
        let place = block.checked_sub(self.first).map(|at| (at / 64, at % 64));
        let slot = place.and_then(|(word, bit)| {
            let word = self.words.get_mut(usize::try_from(word).ok()?)?;
            Some((word, bit))
        });
        if let Some((word, bit)) = slot {
            *word |= 1 << bit;
        }
    }

    /// The block is one of them.
    #[inline]
    pub(crate) fn has(&self, block: BlockNo) -> bool {
        let Some(at) = u64::from(block).checked_sub(self.first) else {
            return false;
        };
        let word = usize::try_from(at / 64)
            .ok()
            .and_then(|word| self.words.get(word));
        word.is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Adds those of a set of a part of the range, which begins a multiple of 64 blocks behind it.
    pub(crate) fn append(&mut self, part: &BlockSet) {
        let behind = part.first.saturating_sub(self.first) / 64;
        let from = usize::try_from(behind).unwrap_or(usize::MAX);
        let ours = self.words.get_mut(from..).unwrap_or_default();
        for (ours, theirs) in ours.iter_mut().zip(&part.words) {
            *ours |= theirs;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_outside_the_range_are_in_no_set() {
        let mut set = BlockSet::none_of(&(100..165));
        for block in [100, 164, 99, 500] {
            set.add(block);
        }
        let found: Vec<BlockNo> = (0..600).filter(|block| set.has(*block)).collect();
        assert_eq!(found, [100, 164]);
    }

    #[test]
    fn sets_of_parts_become_one() {
        let mut set = BlockSet::none_of(&(100..300));
        for (range, block) in [(100..228, 101), (228..300, 299)] {
            let mut part = BlockSet::none_of(&range);
            part.add(block);
            set.append(&part);
        }
        assert!(set.has(101) && set.has(299) && !set.has(229));
    }
}
