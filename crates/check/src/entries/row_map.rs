//! What each line pointer of a stretch of heap is to an index: two bits each. Blocks whose sums
//! tell all have none.

use pgclinic_format::types::Tid;

/// Blocks of one part of the map, each made by one thread.
pub(crate) const PART_BLOCKS: u32 = 4096;

/// What an index may say of a line pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// No entry may name it: unused, or beyond the last one.
    Nothing,
    /// An entry may name it: dead, or of unknown state.
    Allowed,
    /// A live row, or the root of a chain with one: every index names it.
    Live,
    /// A later version in a chain: entries name the chain's root.
    HeapOnly,
}

impl Standing {
    fn bits(self) -> u64 {
        match self {
            Standing::Nothing => 0,
            Standing::Allowed => 1,
            Standing::Live => 2,
            Standing::HeapOnly => 3,
        }
    }

    fn of(bits: u64) -> Self {
        match bits & 3 {
            0 => Standing::Nothing,
            1 => Standing::Allowed,
            2 => Standing::Live,
            _ => Standing::HeapOnly,
        }
    }
}

/// The line pointers of up to [`PART_BLOCKS`] blocks in a row.
#[derive(Default, Debug)]
pub(crate) struct Part {
    /// Number of the first line pointer of each block, and of the one after the last.
    starts: Vec<u32>,
    standings: Vec<u64>,
}

impl Part {
    pub(crate) fn new() -> Self {
        Part {
            starts: vec![0],
            standings: Vec::new(),
        }
    }

    /// Adds the next block.
    pub(crate) fn push_block(&mut self, standings: &[Standing]) {
        let start = self.starts.last().copied().unwrap_or(0);
        let end = start as usize + standings.len();
        self.standings.resize(end.div_ceil(32), 0);
        for (at, standing) in (start as usize..).zip(standings) {
            if let Some(word) = self.standings.get_mut(at / 32) {
                *word |= standing.bits() << (at % 32 * 2);
            }
        }
        let added = u32::try_from(standings.len()).unwrap_or(0);
        self.starts.push(start + added);
    }

    /// Number of a line pointer within the part.
    #[inline]
    fn number(&self, block: usize, offset: u16) -> Option<u32> {
        let start = *self.starts.get(block)?;
        let number = start + u32::from(offset.checked_sub(1)?);
        (number < *self.starts.get(block + 1)?).then_some(number)
    }

    #[inline]
    fn standing(&self, number: u32) -> Standing {
        let word = self.standings.get(number as usize / 32).copied();
        Standing::of(word.unwrap_or(0) >> (number % 32 * 2))
    }

    fn blocks(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    fn items(&self) -> usize {
        self.starts.last().copied().unwrap_or(0) as usize
    }

    /// Bytes that it holds, and that one thread needs to note the rows that it sees.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let own = self.starts.capacity() * 4 + self.standings.capacity() * 8;
        (own as u64, self.items() as u64 / 8 + 8)
    }
}

/// The map of a range of blocks.
#[derive(Debug)]
pub(crate) struct RowMap {
    first_block: u32,
    parts: Vec<Part>,
}

/// Where a row stands in the map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub(crate) part: usize,
    pub(crate) number: u32,
}

impl RowMap {
    /// Parts in order, all but the last of full size.
    pub(crate) fn new(first_block: u32, parts: Vec<Part>) -> Self {
        RowMap { first_block, parts }
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The part and the block in it; nothing outside the range.
    #[inline]
    pub(crate) fn place(&self, block: u32) -> Option<(usize, usize)> {
        let within = block.checked_sub(self.first_block)?;
        let part = (within / PART_BLOCKS) as usize;
        let block = (within % PART_BLOCKS) as usize;
        (block < self.parts.get(part)?.blocks()).then_some((part, block))
    }

    /// The line pointer that an entry names; `None` where the block has none of that number.
    #[inline]
    pub(crate) fn find(&self, tid: Tid) -> Option<(Spot, Standing)> {
        let (part, block) = self.place(tid.block)?;
        let own = self.parts.get(part)?;
        let number = own.number(block, tid.offset)?;
        let spot = Spot { part, number };
        Some((spot, own.standing(number)))
    }

    /// Every live row that is not among `seen`, in order.
    pub(crate) fn live_unseen<'a>(
        &'a self,
        seen: &'a [PartSeen],
    ) -> impl Iterator<Item = Tid> + 'a {
        let parts = self.parts.iter().zip(seen).zip(0u32..);
        parts.flat_map(move |((part, seen), index)| {
            let first = self.first_block + index * PART_BLOCKS;
            let blocks = part.starts.windows(2).zip(first..);
            blocks.flat_map(move |(range, block)| {
                let (&[start, end] | &[start, .., end]) = range else {
                    return unseen(part, seen, 0, 0, block);
                };
                unseen(part, seen, start, end, block)
            })
        })
    }
}

/// Live rows of one block that were not seen.
fn unseen<'a>(
    part: &'a Part,
    seen: &'a PartSeen,
    start: u32,
    end: u32,
    block: u32,
) -> impl Iterator<Item = Tid> + use<'a> {
    let missing =
        move |number: &u32| part.standing(*number) == Standing::Live && !seen.has(*number);
    (start..end).filter(missing).map(move |number| Tid {
        block,
        offset: u16::try_from(number - start + 1).unwrap_or(u16::MAX),
    })
}

/// The rows of one part that the entries of an index name.
#[derive(Clone, Debug)]
pub(crate) struct PartSeen {
    seen: Vec<u64>,
}

impl PartSeen {
    pub(crate) fn new(part: &Part) -> Self {
        PartSeen {
            seen: vec![0; part.items().div_ceil(64)],
        }
    }

    /// Notes a row; `false` when it was noted before.
    #[inline]
    pub(crate) fn add(&mut self, number: u32) -> bool {
        let bit = 1u64 << (number % 64);
        let Some(word) = self.seen.get_mut(number as usize / 64) else {
            return true;
        };
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    fn has(&self, number: u32) -> bool {
        let word = self.seen.get(number as usize / 64).copied().unwrap_or(0);
        word & (1 << (number % 64)) != 0
    }

    /// Adds what another thread saw; gives how many rows both saw.
    pub(crate) fn absorb(&mut self, other: &PartSeen) -> u64 {
        let mut both = 0;
        for (ours, theirs) in self.seen.iter_mut().zip(&other.seen) {
            both += u64::from((*ours & theirs).count_ones());
            *ours |= theirs;
        }
        both
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tid(block: u32, offset: u16) -> Tid {
        Tid { block, offset }
    }

    #[test]
    fn a_row_is_found_by_its_block_and_number() {
        let mut part = Part::new();
        part.push_block(&[Standing::Live, Standing::Nothing, Standing::HeapOnly]);
        part.push_block(&[]);
        part.push_block(&[Standing::Allowed; 40]);
        let map = RowMap::new(100, vec![part]);
        let standing = |tid| map.find(tid).map(|(_, standing)| standing);
        assert_eq!(standing(tid(100, 1)), Some(Standing::Live));
        assert_eq!(standing(tid(100, 3)), Some(Standing::HeapOnly));
        assert_eq!(standing(tid(100, 4)), None);
        assert_eq!(standing(tid(101, 1)), None);
        assert_eq!(standing(tid(102, 40)), Some(Standing::Allowed));
        assert_eq!(standing(tid(102, 0)), None);
        assert_eq!(standing(tid(99, 1)), None);
    }

    #[test]
    fn live_rows_that_nobody_saw_come_in_order() {
        let mut part = Part::new();
        part.push_block(&[Standing::Live, Standing::Live]);
        part.push_block(&[Standing::Allowed, Standing::Live]);
        let map = RowMap::new(0, vec![part]);
        let mut seen = vec![PartSeen::new(&map.parts()[0])];
        let (spot, _) = map.find(tid(0, 2)).expect("a row");
        assert!(seen[0].add(spot.number) && !seen[0].add(spot.number));
        let missing: Vec<_> = map.live_unseen(&seen).collect();
        assert_eq!(missing, [tid(0, 1), tid(1, 2)]);
    }
}
