//! Numbers of blocks, a bit each.

use std::ops::Range;

use pgclinic_format::BlockNo;

/// A set of block numbers, one bit for each.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BlockSet(Vec<u64>);

impl BlockSet {
    /// Takes it in.
    pub fn insert(&mut self, block: BlockNo) {
        let word = usize::try_from(block / 64).unwrap_or(usize::MAX);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        if let Some(word) = self.0.get_mut(word) {
            *word |= 1 << (block % 64);
        }
    }

    /// It is in.
    #[inline]
    pub fn holds(&self, block: BlockNo) -> bool {
        let word = usize::try_from(block / 64).unwrap_or(usize::MAX);
        let word = self.0.get(word).copied().unwrap_or(0);
        word & (1 << (block % 64)) != 0
    }

    /// All of the other's are in.
    pub fn hold_all(&self, other: &BlockSet) -> bool {
        let own = self.0.iter().copied().chain(std::iter::repeat(0));
        other
            .0
            .iter()
            .zip(own)
            .all(|(other, own)| other & !own == 0)
    }

    /// All of them, in order.
    pub fn blocks(&self) -> impl Iterator<Item = BlockNo> {
        self.0
            .iter()
            .zip((0..=BlockNo::MAX).step_by(64))
            .flat_map(|(word, first)| {
                let bits = (0..64).filter(move |bit| word & (1 << bit) != 0);
                bits.map(move |bit| first + bit)
            })
    }

    /// Neighbours together.
    pub fn ranges(&self) -> Vec<Range<BlockNo>> {
        let mut ranges: Vec<Range<BlockNo>> = Vec::new();
        for block in self.blocks() {
            match ranges.last_mut() {
                Some(last) if last.end == block => last.end = block.saturating_add(1),
                _ => ranges.push(block..block.saturating_add(1)),
            }
        }
        ranges
    }
}

impl FromIterator<BlockNo> for BlockSet {
    fn from_iter<T: IntoIterator<Item = BlockNo>>(blocks: T) -> Self {
        let mut set = BlockSet::default();
        blocks.into_iter().for_each(|block| set.insert(block));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_range() {
        assert_eq!(BlockSet::default().ranges(), []);
        let set: BlockSet = [200, 63, 64, 65, 7].into_iter().collect();
        assert_eq!(set.ranges(), [7..8, 63..66, 200..201]);
        assert!(set.holds(64) && !set.holds(66) && !set.holds(BlockNo::MAX));
    }
}
