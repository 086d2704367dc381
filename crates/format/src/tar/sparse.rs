//! Files with holes in tar archives: what is stored are islands, and a map tells where they stood.
//!
//! ```text
//! GNU of old (kind 'S'): 386 (offset 12, bytes 12)*4 | 482 more follows | 483 real size 12
//!                        blocks behind it: (offset 12, bytes 12)*21 | 504 more follows
//! pax 0.0: GNU.sparse.size, (GNU.sparse.offset, GNU.sparse.numbytes)*
//! pax 0.1: GNU.sparse.size, GNU.sparse.name, GNU.sparse.map=offset,bytes,…
//! pax 1.0: GNU.sparse.realsize, GNU.sparse.name; the content begins with lines: how many, (offset, bytes)*, filled up
//! ```
//!
//! Truth: "Storing Sparse Files" in the manual of GNU tar; `src/sparse.c` there.

use super::{BLOCK, digits, field, number};

/// Islands of one file that are followed: more than a segment of 1 GiB can have.
pub const ISLANDS_MAX: usize = 1 << 18;

/// The longest file with holes: no segment is longer, and zeros without end cost an archive
/// nothing.
pub const REAL_SIZE_MAX: u64 = 1 << 36;

/// Islands in the header of old, and in each block behind it.
const PAIRS_IN_HEADER: usize = 4;
const PAIRS_IN_BLOCK: usize = 21;
const PAIR_BYTES: usize = 24;

/// Where bytes that are stored stood in their file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Island {
    offset: u64,
    len: u64,
    /// Where they are in what is stored.
    stored_at: u64,
}

impl Island {
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.len)
    }
}

/// Bytes of a file that lie in one island or in one hole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Where they are in what is stored; `None` for a hole, which is of zeros.
    pub stored_at: Option<u64>,
    /// How many they are, at least one.
    pub len: u64,
}

/// The islands of a file, in order and apart from each other, and its length with all holes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SparseMap {
    islands: Vec<Island>,
    real_size: u64,
}

impl SparseMap {
    /// From offsets and lengths; `None` where they are out of order, lie in each other or beyond
    /// the end, or are too many.
    pub fn new(pairs: &[(u64, u64)], real_size: u64) -> Option<Self> {
        if real_size > REAL_SIZE_MAX || pairs.len() > ISLANDS_MAX {
            return None;
        }
        let (mut islands, mut end, mut stored_at) = (Vec::new(), 0u64, 0u64);
        for (offset, len) in pairs.iter().copied() {
            let behind = offset.checked_add(len)?;
            if offset < end || behind > real_size {
                return None;
            }
            // The last one is often empty and tells the length.
            if len > 0 {
                islands.push(Island {
                    offset,
                    len,
                    stored_at,
                });
            }
            stored_at = stored_at.checked_add(len)?;
            end = behind;
        }
        Some(SparseMap { islands, real_size })
    }

    /// Bytes of the file with its holes.
    pub fn real_size(&self) -> u64 {
        self.real_size
    }

    /// Bytes that are stored.
    pub fn stored_bytes(&self) -> u64 {
        self.islands
            .last()
            .map_or(0, |last| last.stored_at.saturating_add(last.len))
    }

    /// How many islands there are.
    pub fn islands(&self) -> usize {
        self.islands.len()
    }

    /// What stands at a place of the file, and how far; `None` at its end.
    pub fn run_at(&self, offset: u64) -> Option<Run> {
        let left = self
            .real_size
            .checked_sub(offset)
            .filter(|left| *left > 0)?;
        let next = self
            .islands
            .partition_point(|island| island.end() <= offset);
        let Some(island) = self.islands.get(next) else {
            return Some(Run {
                stored_at: None,
                len: left,
            });
        };
        Some(match offset.checked_sub(island.offset) {
            Some(within) => Run {
                stored_at: Some(island.stored_at.saturating_add(within)),
                len: island.len.saturating_sub(within),
            },
            None => Run {
                stored_at: None,
                len: island.offset.saturating_sub(offset),
            },
        })
    }

    /// Only so many stored bytes are there: the file ends with them.
    pub fn cut_to(&mut self, stored: u64) {
        if stored >= self.stored_bytes() {
            return;
        }
        let kept = self
            .islands
            .partition_point(|island| island.stored_at.saturating_add(island.len) <= stored);
        if let Some(island) = self.islands.get(kept) {
            let len = stored.saturating_sub(island.stored_at);
            self.real_size = island.offset.saturating_add(len);
        }
        let end = self.real_size;
        self.islands.truncate(kept.saturating_add(1));
        if let Some(island) = self.islands.last_mut() {
            island.len = island.len.min(end.saturating_sub(island.offset));
        }
        self.islands.retain(|island| island.len > 0);
    }
}

/// The map of old, which goes on in blocks behind the header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OldMap {
    pairs: Vec<(u64, u64)>,
    real_size: Option<u64>,
    goes_on: bool,
    blocks: usize,
    is_broken: bool,
}

impl OldMap {
    /// Begins with the member's header.
    pub fn begin(header: &[u8; BLOCK]) -> Self {
        let mut map = OldMap {
            pairs: Vec::new(),
            real_size: number(field(header, 483, 12)),
            goes_on: header.get(482).is_some_and(|flag| *flag != 0),
            blocks: 0,
            is_broken: false,
        };
        map.take(field(header, 386, PAIRS_IN_HEADER * PAIR_BYTES));
        map
    }

    /// The next block of the archive belongs to it as well. One that goes on for ever is given up.
    pub fn goes_on(&self) -> bool {
        self.goes_on && self.blocks <= ISLANDS_MAX / PAIRS_IN_BLOCK
    }

    /// Takes that block.
    pub fn go_on(&mut self, block: &[u8; BLOCK]) {
        self.blocks = self.blocks.saturating_add(1);
        self.goes_on = block.get(504).is_some_and(|flag| *flag != 0);
        self.take(field(block, 0, PAIRS_IN_BLOCK * PAIR_BYTES));
    }

    /// The map, if it is one.
    pub fn finish(self) -> Option<SparseMap> {
        if self.is_broken || self.goes_on {
            None
        } else {
            SparseMap::new(&self.pairs, self.real_size?)
        }
    }

    fn take(&mut self, pairs: &[u8]) {
        let (pairs, _) = pairs.as_chunks::<PAIR_BYTES>();
        for pair in pairs {
            let (offset, len) = pair.split_at(PAIR_BYTES / 2);
            if len.first() == Some(&0) {
                return;
            }
            match (number(offset), number(len)) {
                (Some(offset), Some(len)) => self.pairs.push((offset, len)),
                _ => self.is_broken = true,
            }
        }
    }
}

/// What a description says of a file with holes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PaxSparse {
    real_size: Option<u64>,
    pairs: Vec<(u64, u64)>,
    told_pairs: Option<u64>,
    offset: Option<u64>,
    is_in_content: bool,
    is_broken: bool,
}

impl PaxSparse {
    /// Takes what stands behind `GNU.sparse.` and `=`.
    pub(super) fn take(&mut self, key: &[u8], value: &[u8]) {
        let told = digits(value, 10).filter(|_| !value.is_empty());
        match key {
            b"major" => match told {
                Some(0) => {}
                Some(1) => self.is_in_content = true,
                _ => self.is_broken = true,
            },
            b"size" | b"realsize" => self.real_size = told,
            b"numblocks" => self.told_pairs = told,
            b"offset" => self.offset = told,
            b"numbytes" => match (self.offset.take(), told) {
                (Some(offset), Some(len)) => self.push(offset, len),
                _ => self.is_broken = true,
            },
            b"map" => {
                let mut numbers = value.split(|byte| *byte == b',');
                while let Some(offset) = numbers.next() {
                    let len = numbers.next().unwrap_or(b"?");
                    match (digits(offset, 10), digits(len, 10)) {
                        (Some(offset), Some(len)) => self.push(offset, len),
                        _ => self.is_broken = true,
                    }
                }
            }
            _ => {}
        }
    }

    fn push(&mut self, offset: u64, len: u64) {
        if self.pairs.len() < ISLANDS_MAX {
            self.pairs.push((offset, len))
        } else {
            self.is_broken = true
        }
    }

    /// The content begins with the map: [`MapInContent`] reads it.
    pub fn is_in_content(&self) -> bool {
        self.is_in_content
    }

    /// Bytes of the file with its holes, as told.
    pub fn real_size(&self) -> Option<u64> {
        self.real_size.filter(|_| !self.is_broken)
    }

    /// The map, if it is one and stands in the description.
    pub fn finish(self) -> Option<SparseMap> {
        let told = self
            .told_pairs
            .is_none_or(|told| told == self.pairs.len() as u64);
        if self.is_broken || self.is_in_content || !told {
            None
        } else {
            SparseMap::new(&self.pairs, self.real_size?)
        }
    }
}

/// The map at the begin of a content.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MapInContent {
    told_pairs: Option<u64>,
    offset: Option<u64>,
    digits: Option<u64>,
    pairs: Vec<(u64, u64)>,
}

impl MapInContent {
    /// Takes the next block; says whether it was the last. `None` where it is no map.
    pub fn take(&mut self, block: &[u8; BLOCK]) -> Option<bool> {
        for byte in block {
            if *byte == b'\n' {
                let number = self.digits.take()?;
                self.number(number)?;
                if self.told_pairs == Some(self.pairs.len() as u64) {
                    return Some(true);
                }
            } else {
                let digit = u64::from(char::from(*byte).to_digit(10)?);
                let value = self.digits.unwrap_or(0);
                self.digits = Some(value.checked_mul(10)?.checked_add(digit)?);
            }
        }
        Some(false)
    }

    fn number(&mut self, number: u64) -> Option<()> {
        match (self.told_pairs, self.offset.take()) {
            (None, _) => self.told_pairs = Some(number).filter(|told| *told <= ISLANDS_MAX as u64),
            (Some(_), None) => self.offset = Some(number),
            (Some(_), Some(offset)) => self.pairs.push((offset, number)),
        }
        self.told_pairs.map(|_| ())
    }

    /// The map, if it is one.
    pub fn finish(self, real_size: u64) -> Option<SparseMap> {
        SparseMap::new(&self.pairs, real_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tar::Description;

    fn map() -> SparseMap {
        SparseMap::new(&[(0, 10), (30, 5), (40, 0)], 40).expect("a map")
    }

    fn runs(map: &SparseMap) -> Vec<(u64, Option<u64>, u64)> {
        let (mut runs, mut offset) = (Vec::new(), 0);
        while let Some(run) = map.run_at(offset) {
            runs.push((offset, run.stored_at, run.len));
            offset += run.len;
        }
        assert_eq!(offset, map.real_size());
        runs
    }

    #[test]
    fn islands_and_holes_follow_each_other() {
        let expected = [
            (0, Some(0), 10),
            (10, None, 20),
            (30, Some(10), 5),
            (35, None, 5),
        ];
        assert_eq!(runs(&map()), expected);
        assert_eq!((map().stored_bytes(), map().islands()), (15, 2));
        let within = map().run_at(32).map(|run| (run.stored_at, run.len));
        assert_eq!(within, Some((Some(12), 3)));
        assert_eq!(map().run_at(u64::MAX), None);
        let hole = SparseMap::new(&[], 7).expect("a map");
        assert_eq!(runs(&hole), [(0, None, 7)]);
    }

    #[test]
    fn a_cut_ends_the_file_where_its_bytes_end() {
        let cut = |stored| {
            let mut map = map();
            map.cut_to(stored);
            runs(&map)
        };
        assert_eq!(cut(15), runs(&map()));
        assert_eq!(
            cut(12),
            [(0, Some(0), 10), (10, None, 20), (30, Some(10), 2)]
        );
        assert_eq!(cut(10), [(0, Some(0), 10), (10, None, 20)]);
        assert_eq!(cut(3), [(0, Some(0), 3)]);
        assert_eq!(cut(0), []);
    }

    #[test]
    fn maps_that_lie_are_none() {
        for pairs in [
            &[(10, 5), (0, 5)][..],
            &[(0, 10), (5, 10)],
            &[(90, 20)],
            &[(u64::MAX, 2)],
            &[(0, u64::MAX)],
        ] {
            assert_eq!(SparseMap::new(pairs, 100), None, "{pairs:?}");
        }
        assert_eq!(SparseMap::new(&[], REAL_SIZE_MAX + 1), None);
        assert_eq!(SparseMap::new(&vec![(0, 0); ISLANDS_MAX + 1], 1), None);
    }

    /// `(8192, 512)`, `(16384, 512)`, … as GNU tar writes them.
    fn put(block: &mut [u8; BLOCK], at: usize, numbers: std::ops::Range<u64>) {
        for (index, number) in numbers.enumerate() {
            let pair = format!("{:011o}\0{:011o}\0", number * 8192, 512);
            let at = at + index * PAIR_BYTES;
            block[at..at + PAIR_BYTES].copy_from_slice(pair.as_bytes());
        }
    }

    #[test]
    fn the_map_of_old_goes_on_behind_the_header() {
        let (mut header, mut next, mut last) = ([0; BLOCK], [0; BLOCK], [0; BLOCK]);
        put(&mut header, 386, 0..4);
        header[482] = 1;
        header[483..495].copy_from_slice(b"00001000000\0");
        put(&mut next, 0, 4..25);
        next[504] = 1;
        put(&mut last, 0, 25..27);
        let mut map = OldMap::begin(&header);
        for block in [&next, &last] {
            assert!(map.goes_on());
            map.go_on(block);
        }
        assert!(!map.goes_on());
        let map = map.finish().expect("a map");
        assert_eq!((map.islands(), map.real_size()), (27, 0o1_000_000));
        let run = map.run_at(26 * 8192 + 1).expect("an island");
        assert_eq!((run.stored_at, run.len), (Some(26 * 512 + 1), 511));

        let mut endless = OldMap::begin(&header);
        let blocks = (0..).take_while(|_| {
            endless.go_on(&next);
            endless.goes_on()
        });
        assert!(blocks.count() < ISLANDS_MAX, "it is given up");
        assert_eq!(endless.finish(), None);
    }

    #[test]
    fn maps_of_pax_are_read_in_every_version() {
        // None is as long that its length has three digits.
        let line = |text: &str| format!("{} {text}\n", text.len() + 4);
        let zero = [
            "GNU.sparse.size=40",
            "GNU.sparse.numblocks=2",
            "GNU.sparse.offset=0",
            "GNU.sparse.numbytes=10",
            "GNU.sparse.offset=30",
            "GNU.sparse.numbytes=5",
        ];
        let one = [
            "path=d/GNUSparseFile.7/x",
            "GNU.sparse.size=40",
            "GNU.sparse.name=d/x",
            "GNU.sparse.map=0,10,30,5,40,0",
        ];
        let read = |lines: &[&str]| {
            let text: String = lines.iter().map(|text| line(text)).collect();
            Description::parse(text.as_bytes())
        };
        let description = read(&zero);
        assert_eq!(description.sparse.and_then(PaxSparse::finish), Some(map()));
        assert_eq!(
            read(&zero[..4]).sparse.and_then(PaxSparse::finish),
            None,
            "cut"
        );
        let description = read(&one);
        assert_eq!(description.path.as_deref(), Some(&b"d/x"[..]));
        assert_eq!(description.sparse.and_then(PaxSparse::finish), Some(map()));
        let version = [
            "GNU.sparse.major=1",
            "GNU.sparse.minor=0",
            "GNU.sparse.realsize=40",
        ];
        let sparse = read(&version).sparse.expect("holes");
        assert!(sparse.is_in_content());
        assert_eq!(sparse.real_size(), Some(40));
        for wrong in [
            "GNU.sparse.map=0,10,30",
            "GNU.sparse.map=0,-1",
            "GNU.sparse.major=2",
        ] {
            let sparse = read(&["GNU.sparse.size=40", wrong]).sparse;
            assert_eq!(sparse.and_then(PaxSparse::finish), None, "{wrong}");
        }
    }

    #[test]
    fn the_map_in_a_content_may_be_cut_anywhere_by_blocks() {
        let lines: String = (0..100).map(|at| format!("{}\n5\n", at * 10)).collect();
        let mut text = format!("100\n{lines}").into_bytes();
        assert!(text.len() > BLOCK);
        text.resize(text.len().next_multiple_of(BLOCK), 0);
        let (blocks, _) = text.as_chunks::<BLOCK>();
        let mut map = MapInContent::default();
        let taken: Vec<_> = blocks.iter().map(|block| map.take(block)).collect();
        assert_eq!(taken, [Some(false), Some(true)]);
        let map = map.finish(1000).expect("a map");
        assert_eq!((map.islands(), map.stored_bytes()), (100, 500));
        for wrong in [
            &b"x\n"[..],
            b"\n",
            b"99999999\n",
            b"99999999999999999999999\n",
        ] {
            let mut block = [0; BLOCK];
            block[..wrong.len()].copy_from_slice(wrong);
            assert_eq!(MapInContent::default().take(&block), None, "{wrong:?}");
        }
    }
}
