//! Line pointers that entries of an index may name, beside those that they do name.
//!
//! ```text
//! pass over the table ─► per unit of blocks, the sum of the hashes of its roots      ┐
//! leaves of an index  ─► the same of the rows that entries name, killed ones too     ┴─┬─ equal: each entry has its line pointer
//!                                                                                      └─ not: the unit is read again, entry by entry
//! ```
//!
//! A root is a line pointer that VACUUM has not freed and that begins a chain of versions: a row
//! that is no heap-only tuple, a redirect, a dead one. VACUUM frees it after it removed the entries
//! that name it, so that an entry always leads to one. Sums differ on healthy tables too: of a row
//! whose insert failed there is no entry, and a killed entry may be gone before its row.
//!
//! An entry that has no root proves that one is lost only where the index is not older than the
//! table, as one that was restored by itself is: a page of the index that was written after the
//! page of the table had its last change would not have the entry any more. What is overwritten
//! proves it too: of a row whose line pointer VACUUM freed no byte is left among the others.

use pgclinic_cluster::{Cluster, Pieces};
use pgclinic_format::heap_tuple::HEAP_ONLY_TUPLE;
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, HeapTuple, LpFlags, Lsn, Page};
use pgclinic_model::document::ROOT_BLOCKS;

use crate::carve::{PageState, is_filled};

/// What a unit that is read again takes at most: two numbers and five words a block.
const UNIT_BYTES: u64 = ROOT_BLOCKS as u64 * 64;
/// Fewer are not worth a walk over the index.
const UNITS_MIN: u64 = 16;

/// What a root adds to the sum of its unit. Any two sets of roots have the same sum once in 2^64.
#[inline]
fn hash_of(tid: Tid) -> u64 {
    let place = u64::from(tid.block) << 16 | u64::from(tid.offset);
    let mixed = (place ^ 0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ mixed >> 29).wrapping_mul(0x94D0_49BB_1331_11EB)
}

/// The sum of the roots of a sound page.
pub(super) fn sum_of_roots(page: Page<'_>, block: BlockNo) -> u64 {
    let is_root = |pointer| {
        let tuple = page.item(pointer).and_then(HeapTuple::parse);
        tuple.is_none_or(|tuple| tuple.t_infomask2() & HEAP_ONLY_TUPLE == 0)
    };
    page.line_pointers()
        .filter(|(_, pointer)| match pointer.flags() {
            LpFlags::Unused => false,
            LpFlags::Normal => is_root(*pointer),
            LpFlags::Redirect | LpFlags::Dead => true,
        })
        .fold(0, |sum, (offset, _)| {
            sum.wrapping_add(hash_of(Tid { block, offset }))
        })
}

/// The sums of what entries name, by unit.
pub(super) struct EntrySums(Vec<u64>);

impl EntrySums {
    /// Of a table of so many blocks.
    pub(super) fn new(blocks: u64) -> Self {
        let units = blocks.div_ceil(u64::from(ROOT_BLOCKS));
        EntrySums(vec![0; usize::try_from(units).unwrap_or(0)])
    }

    /// An entry names the row; beyond the end of the table that is no matter of line pointers.
    #[inline]
    pub(super) fn take(&mut self, tid: Tid) {
        let unit = usize::try_from(tid.block / ROOT_BLOCKS).unwrap_or(usize::MAX);
        if let Some(sum) = self.0.get_mut(unit) {
            *sum = sum.wrapping_add(hash_of(tid));
        }
    }

    /// The units of which the table says another sum.
    pub(super) fn differing(&self, roots: &[(BlockNo, u64)]) -> Vec<BlockNo> {
        let mut of_table = vec![0u64; self.0.len()];
        for (unit, sum) in roots {
            let unit = usize::try_from(*unit).unwrap_or(usize::MAX);
            if let Some(known) = of_table.get_mut(unit) {
                *known = known.wrapping_add(*sum);
            }
        }
        let both = self.0.iter().zip(of_table).zip(0..);
        let differing = both.filter(|((entries, roots), _)| **entries != *roots);
        differing.map(|(_, unit)| unit).collect()
    }
}

/// Units whose line pointers this much memory has room for.
pub(super) fn units_within(bytes: u64) -> usize {
    usize::try_from((bytes / UNIT_BYTES).max(UNITS_MIN)).unwrap_or(usize::MAX)
}

/// Which line pointers of some units are in use.
pub(super) struct UsedItems {
    /// By unit, from that number on.
    first_unit: BlockNo,
    units: Vec<Option<UnitItems>>,
}

/// The line pointers of one unit.
#[derive(Default)]
struct UnitItems {
    /// By block; none of a page that tells nothing.
    blocks: Vec<Option<PageItems>>,
    bits: Vec<u64>,
}

/// The line pointers of one page.
struct PageItems {
    /// Where their bits begin, and how many there are.
    start: u32,
    count: u16,
    /// Entries on pages of an index that were written before it may be of rows that VACUUM has
    /// taken since.
    proven_from: Lsn,
}

/// What an entry proves that leads to no line pointer of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lack {
    /// The row is lost.
    Proven,
    /// The row is lost, or the index is older than the page.
    Doubtful,
}

/// A table whose line pointers are looked up, and what of it is.
pub(super) struct RootPages<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) pieces: &'a Pieces,
    /// Blocks whose line pointers are those that the index was made for.
    pub(super) tells: &'a dyn Fn(BlockNo) -> bool,
    /// Pages that were written later do not tell.
    pub(super) moment: Option<Lsn>,
}

impl UsedItems {
    /// Of these units, which rise.
    pub(super) fn read(units: &[BlockNo], pages: &RootPages<'_>) -> Self {
        let first_unit = units.first().copied().unwrap_or(0);
        let mut found = UsedItems {
            first_unit,
            units: Vec::new(),
        };
        for unit in units {
            let at = usize::try_from(unit - first_unit).unwrap_or(0);
            found.units.resize_with(at, || None);
            found.units.push(Some(UnitItems::read(*unit, pages)));
        }
        found
    }

    /// The page tells its line pointers, and this one is not in use: what an entry proves that
    /// stands on a page of an index with this LSN.
    #[inline]
    pub(super) fn lack(&self, tid: Tid, entry_lsn: Lsn) -> Option<Lack> {
        let unit = (tid.block / ROOT_BLOCKS).checked_sub(self.first_unit)?;
        let unit = self.units.get(usize::try_from(unit).ok()?)?.as_ref()?;
        let proven_from = unit.lacks(tid)?;
        // Pages of unlogged relations have no LSN, and nothing tells which was written later.
        Some(if entry_lsn >= proven_from && entry_lsn != Lsn(0) {
            Lack::Proven
        } else {
            Lack::Doubtful
        })
    }
}

impl UnitItems {
    fn read(unit: BlockNo, pages: &RootPages<'_>) -> Self {
        let page_bytes = usize::try_from(pages.cluster.build.block_size).unwrap_or(8192);
        let first = unit.saturating_mul(ROOT_BLOCKS);
        let end = first.saturating_add(ROOT_BLOCKS);
        let mut found = UnitItems::default();
        let mut block = first;
        while block < end {
            let blocks = usize::try_from(end - block).unwrap_or(0);
            let bytes = read_from(pages, block, blocks * page_bytes);
            let whole = bytes.chunks_exact(page_bytes);
            // A segment may end within the unit.
            for page in whole.map(Page::parse) {
                found.push(page.filter(|page| pages.tell(*page, block)));
                block += 1;
            }
            if bytes.len() < page_bytes {
                found.push(None);
                block += 1;
            }
        }
        found
    }

    fn push(&mut self, page: Option<Page<'_>>) {
        let Some(page) = page else {
            return self.blocks.push(None);
        };
        let start = u32::try_from(self.bits.len()).unwrap_or(0);
        let count = page.line_pointer_count();
        let words = self.bits.len() + usize::from(count).div_ceil(64);
        self.bits.resize(words, 0);
        for (item, pointer) in page.line_pointers() {
            let Some(at) = item
                .checked_sub(1)
                .filter(|_| pointer.flags() != LpFlags::Unused)
            else {
                continue;
            };
            let word = usize::try_from(start).unwrap_or(0) + usize::from(at / 64);
            if let Some(word) = self.bits.get_mut(word) {
                *word |= 1 << (at % 64);
            }
        }
        let proven_from = if is_filled(page) {
            page.pd_lsn()
        } else {
            Lsn::default()
        };
        self.blocks.push(Some(PageItems {
            start,
            count,
            proven_from,
        }));
    }

    /// The line pointer is not in use: from which LSN on an entry proves that it was.
    fn lacks(&self, tid: Tid) -> Option<Lsn> {
        let block = usize::try_from(tid.block % ROOT_BLOCKS).unwrap_or(usize::MAX);
        let page = self.blocks.get(block)?.as_ref()?;
        let Some(at) = tid.offset.checked_sub(1).filter(|at| *at < page.count) else {
            return Some(page.proven_from);
        };
        let word = usize::try_from(page.start).unwrap_or(0) + usize::from(at / 64);
        let word = self.bits.get(word).copied().unwrap_or(0);
        (word & (1 << (at % 64)) == 0).then_some(page.proven_from)
    }
}

/// What can be read from this block on, at most so many bytes.
fn read_from(pages: &RootPages<'_>, block: BlockNo, bytes: usize) -> Vec<u8> {
    let Some((path, offset)) = pages.pieces.place_of(block) else {
        return Vec::new();
    };
    let mut buffer = vec![0; bytes];
    let read = pages.cluster.source().read_at(&path, offset, &mut buffer);
    buffer.truncate(read.unwrap_or(0));
    buffer
}

impl RootPages<'_> {
    /// What stands on the page is what the index was made for.
    pub(super) fn tell(&self, page: Page<'_>, block: BlockNo) -> bool {
        let is_later = self.moment.is_some_and(|moment| page.pd_lsn() > moment);
        let state = PageState::of_major(page, self.cluster.layout.major);
        state == PageState::Sound && !is_later && (self.tells)(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tid(block: BlockNo, offset: u16) -> Tid {
        Tid { block, offset }
    }

    #[test]
    fn sums_are_equal_whatever_the_order_and_differ_by_one_entry() {
        let named = [tid(0, 1), tid(130, 7), tid(0, 2), tid(131, 1)];
        let mut entries = EntrySums::new(256);
        named.iter().for_each(|tid| entries.take(*tid));
        let sum = |tids: &[Tid]| {
            let hashes = tids.iter().map(|tid| hash_of(*tid));
            hashes.fold(0, u64::wrapping_add)
        };
        let first = (0, sum(&[tid(0, 2), tid(0, 1)]));
        let parts = [first, (1, sum(&[tid(131, 1)])), (1, sum(&[tid(130, 7)]))];
        assert!(entries.differing(&parts).is_empty());
        assert_eq!(entries.differing(&[first]), [1]);
        entries.take(tid(3, 1));
        entries.take(tid(256, 1));
        assert_eq!(entries.differing(&parts), [0]);
    }

    #[test]
    fn a_line_pointer_that_is_free_or_past_the_last_one_is_lacked() {
        let page = |start, count| PageItems {
            start,
            count,
            proven_from: Lsn(9),
        };
        let unit = UnitItems {
            blocks: vec![None, Some(page(0, 70)), Some(page(2, 0))],
            bits: vec![0b101, 1],
        };
        let used = UsedItems {
            first_unit: 3,
            units: vec![Some(unit), None],
        };
        let by = |block, offset, lsn| used.lack(tid(3 * ROOT_BLOCKS + block, offset), Lsn(lsn));
        let lack = |block, offset| by(block, offset, 9).is_some();
        assert!(!lack(1, 1) && lack(1, 2) && !lack(1, 3) && !lack(1, 65) && lack(1, 66));
        assert!(lack(1, 71) && lack(1, 0) && lack(2, 1));
        // A page that tells nothing, and units that were not read.
        assert!(!lack(0, 9) && !lack(3, 1) && !lack(ROOT_BLOCKS, 1));
        assert_eq!(used.lack(tid(0, 1), Lsn(9)), None);
        // The index is older than the page of the table.
        assert_eq!(by(1, 2, 9), Some(Lack::Proven));
        assert_eq!(by(1, 2, 8), Some(Lack::Doubtful));
        assert_eq!(by(1, 2, 0), Some(Lack::Doubtful));
    }
}
