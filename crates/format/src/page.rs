//! The standard page: a 24-byte header, line pointers, free space, items, special space.
//!
//! ```text
//! 0        8     10    12    14    16    18    20       24
//! | pd_lsn | sum | flg | low | upp | spe | s|v | prune  | line pointers → … ← items | special |
//! ```
//!
//! Truth: `src/include/storage/bufpage.h`, `PageIsVerified` in
//! `src/backend/storage/page/bufpage.c`.

use crate::bytes::{u16_at, u32_at};
use crate::heap_tuple::HeapTuple;
use crate::line_pointer::{LinePointer, LpFlags};
use crate::types::{Lsn, Xid};

/// Bytes of the page header, where the line pointers begin (`SizeOfPageHeaderData`).
pub const HEADER_BYTES: usize = 24;

/// These bytes behind the last whole page of a file are room for a page that nobody has begun: a
/// full disk stopped the server within its zeros. The first bytes of another page may be zeros, its
/// whole header is not.
pub fn is_never_begun(rest: &[u8]) -> bool {
    rest.len() >= HEADER_BYTES && rest.iter().all(|byte| *byte == 0)
}
/// What the smallest row takes with its line pointer (`MaxHeapTuplesPerPage`).
const ROW_BYTES_MIN: usize = 24 + LinePointer::SIZE;
/// `PG_PAGE_LAYOUT_VERSION` of every PostgreSQL since 8.3.
pub const LAYOUT_VERSION: u8 = 4;
/// `PD_HAS_FREE_LINES`.
pub const PD_HAS_FREE_LINES: u16 = 0x0001;
/// `PD_PAGE_FULL`.
pub const PD_PAGE_FULL: u16 = 0x0002;
/// `PD_ALL_VISIBLE`.
pub const PD_ALL_VISIBLE: u16 = 0x0004;
/// `PD_VALID_FLAG_BITS`.
pub const PD_VALID_FLAG_BITS: u16 = 0x0007;

/// From this major on VACUUM frees all line pointers of a page at once where its table has no index
/// (`HEAP_PAGE_PRUNE_MARK_UNUSED_NOW`), and leaves the bytes of rows where they lay. Before, a line
/// pointer that is free stays, the first one at least.
pub const VACUUM_TAKES_ALL_POINTERS: u16 = 17;

/// A view of one page. Promised: its length is a block size that PostgreSQL can be built with.
/// Not promised: anything about what its fields say.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    header: &'a [u8; HEADER_BYTES],
    bytes: &'a [u8],
}

impl<'a> Page<'a> {
    /// A page of 1, 2, 4, 8, 16 or 32 kB; any other length is no page.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let len = bytes.len();
        let header = bytes.first_chunk()?;
        ((1024..=32768).contains(&len) && len.is_power_of_two()).then_some(Page { header, bytes })
    }

    /// All bytes.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Bytes of the page, BLCKSZ.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> usize {
        self.bytes.len()
    }

    #[inline]
    fn u16(self, at: usize) -> u16 {
        u16_at(self.header, at).unwrap_or_default()
    }

    #[inline]
    fn u32(self, at: usize) -> u32 {
        u32_at(self.header, at).unwrap_or_default()
    }

    /// Position in the WAL after the last change, high half first on disk.
    #[inline]
    pub fn pd_lsn(self) -> Lsn {
        Lsn(u64::from(self.u32(0)) << 32 | u64::from(self.u32(4)))
    }

    /// The stored checksum; 0 when none was written.
    #[inline]
    pub fn pd_checksum(self) -> u16 {
        self.u16(8)
    }

    /// Flag bits, valid up to [`PD_VALID_FLAG_BITS`].
    #[inline]
    pub fn pd_flags(self) -> u16 {
        self.u16(10)
    }

    /// Offset of the first free byte, after the line pointers.
    #[inline]
    pub fn pd_lower(self) -> u16 {
        self.u16(12)
    }

    /// Offset of the byte after the free space.
    #[inline]
    pub fn pd_upper(self) -> u16 {
        self.u16(14)
    }

    /// Offset of the special space.
    #[inline]
    pub fn pd_special(self) -> u16 {
        self.u16(16)
    }

    /// Page size in the high byte (it is a multiple of 256), layout version in the low one.
    #[inline]
    pub fn pd_pagesize_version(self) -> u16 {
        self.u16(18)
    }

    /// The page size the header claims, in bytes.
    #[inline]
    pub fn page_size(self) -> u16 {
        self.pd_pagesize_version() & 0xFF00
    }

    /// The layout version the header claims.
    #[inline]
    pub fn layout_version(self) -> u8 {
        (self.pd_pagesize_version() & 0x00FF) as u8
    }

    /// Oldest transaction whose removal may be worth a pruning, or 0.
    #[inline]
    pub fn pd_prune_xid(self) -> Xid {
        Xid(self.u32(20))
    }

    /// `PageIsNew`: `pd_upper` is 0.
    #[inline]
    pub fn is_new(self) -> bool {
        self.pd_upper() == 0
    }

    /// Every byte is zero: a page that was allocated and never written. Legal anywhere.
    pub fn is_zeroed(self) -> bool {
        let (words, rest) = self.bytes.as_chunks::<8>();
        words.iter().all(|word| *word == [0; 8]) && rest.iter().all(|byte| *byte == 0)
    }

    /// The server's own test of a header: flags, order of the three offsets, alignment.
    #[inline]
    pub fn header_is_sane_to_the_server(self) -> bool {
        let (lower, upper, special) = (self.pd_lower(), self.pd_upper(), self.pd_special());
        self.pd_flags() & !PD_VALID_FLAG_BITS == 0
            && lower <= upper
            && upper <= special
            && usize::from(special) <= self.len()
            && special % 8 == 0
    }

    /// How many line pointers `pd_lower` leaves room for, never more than the page holds.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "no page holds 65,536 line pointers"
    )]
    pub fn line_pointer_count(self) -> u16 {
        let end = usize::from(self.pd_lower()).min(self.len());
        (end.saturating_sub(HEADER_BYTES) / LinePointer::SIZE) as u16
    }

    /// It has no line pointer, and more than zeros lies where rows would. A page that begins is all
    /// zeros.
    ///
    /// Truth: `PageInit` and `PageTruncateLinePointerArray` in
    /// `src/backend/storage/page/bufpage.c`.
    pub fn has_bytes_without_pointers(self) -> bool {
        let free = usize::from(self.pd_lower())..usize::from(self.pd_special());
        let free = self.bytes.get(free).unwrap_or_default();
        self.line_pointer_count() == 0 && free.iter().any(|byte| *byte != 0)
    }

    /// Line pointer `number`, from 1.
    #[inline]
    pub fn line_pointer(self, number: u16) -> Option<LinePointer> {
        let index = usize::from(number).checked_sub(1)?;
        (number <= self.line_pointer_count()).then_some(())?;
        u32_at(self.bytes, HEADER_BYTES + index * LinePointer::SIZE).map(LinePointer)
    }

    /// All line pointers with their numbers from 1.
    #[inline]
    pub fn line_pointers(self) -> impl Iterator<Item = (u16, LinePointer)> + 'a {
        let end = usize::from(self.pd_lower()).min(self.len());
        let array = self.bytes.get(HEADER_BYTES..end).unwrap_or_default();
        let pointers = array.as_chunks::<4>().0.iter();
        pointers
            .zip(1..)
            .map(|(raw, number)| (number, LinePointer(u32::from_le_bytes(*raw))))
    }

    /// Rows of a page whose `pd_lower` says that it holds none: the line pointers still stand after
    /// the header, up to the first that names no tuple of the page. Nothing where there are none.
    pub fn rows_despite_lower(self) -> Option<u64> {
        let (upper, special) = (usize::from(self.pd_upper()), usize::from(self.pd_special()));
        let array = self.bytes().get(HEADER_BYTES..upper)?;
        let (pointers, _) = array.as_chunks::<4>();
        let names_a_tuple = |pointer: LinePointer| {
            let range = pointer.range();
            range.is_some_and(|range| {
                range.start >= upper && range.end <= special && !range.is_empty()
            })
        };
        let mut rows = 0u64;
        for pointer in pointers
            .iter()
            .map(|raw| LinePointer(u32::from_le_bytes(*raw)))
        {
            match pointer.flags() {
                LpFlags::Normal if names_a_tuple(pointer) => rows += 1,
                LpFlags::Normal => break,
                LpFlags::Unused | LpFlags::Redirect | LpFlags::Dead => {}
            }
        }
        // A page without any is empty to nobody who trusts its header.
        (rows > 0).then_some(rows)
    }

    /// Line pointers of a heap page that stand behind `pd_lower` and name rows which no other line
    /// pointer touches, with the numbers that they had. A server leaves none: it clears a line
    /// pointer before it gives up its place (`ItemIdSetUnused`), and what it puts into the free
    /// space of a page without bytes of its own are zeros.
    ///
    /// Truth: `PageRepairFragmentation` and `PageTruncateLinePointerArray` in
    /// `src/backend/storage/page/bufpage.c`.
    pub fn line_pointers_cut_off(self) -> Vec<(u16, LinePointer)> {
        let count = self.line_pointer_count();
        let start = HEADER_BYTES + usize::from(count) * LinePointer::SIZE;
        let free = self.bytes.get(start..usize::from(self.pd_upper()));
        let free = free.unwrap_or_default();
        let most = (self.bytes.len() / ROW_BYTES_MIN).saturating_sub(count.into());
        let free = free.get(..most * LinePointer::SIZE).unwrap_or(free);
        let mut found = Vec::new();
        // Most pages have zeros here; all of them at once take a tenth of the time.
        if free.iter().fold(0, |bits, byte| bits | byte) == 0 {
            return found;
        }
        let (words, _) = free.as_chunks::<{ LinePointer::SIZE }>();
        for (word, number) in words.iter().zip(count.saturating_add(1)..) {
            let pointer = LinePointer(u32::from_le_bytes(*word));
            match pointer.flags() {
                LpFlags::Normal if self.names_a_row_alone(pointer, &found) => {
                    found.push((number, pointer));
                }
                LpFlags::Normal => break,
                _ if pointer.lp_len() > 0 => break,
                LpFlags::Unused | LpFlags::Redirect | LpFlags::Dead => {}
            }
        }
        found
    }

    fn names_a_row_alone(self, pointer: LinePointer, more: &[(u16, LinePointer)]) -> bool {
        let rows = usize::from(self.pd_upper())..=usize::from(self.pd_special());
        let Some(range) = pointer.range() else {
            return false;
        };
        let is_free_of = |other: LinePointer| {
            other
                .range()
                .is_none_or(|other| other.end <= range.start || range.end <= other.start)
        };
        let is_row = || {
            let tuple = self.item(pointer).and_then(HeapTuple::parse);
            tuple.is_some_and(|tuple| usize::from(tuple.t_hoff()) == tuple.expected_hoff())
        };
        range.start.is_multiple_of(8)
            && rows.contains(&range.start)
            && rows.contains(&range.end)
            && is_row()
            && self.line_pointers().all(|(_, other)| is_free_of(other))
            && more.iter().all(|(_, other)| is_free_of(*other))
    }

    /// The bytes a line pointer names, if they lie on the page.
    #[inline]
    pub fn item(self, pointer: LinePointer) -> Option<&'a [u8]> {
        self.bytes.get(pointer.range()?)
    }

    /// The special space, if `pd_special` lies on the page.
    #[inline]
    pub fn special(self) -> Option<&'a [u8]> {
        self.bytes
            .get(usize::from(self.pd_special()).max(HEADER_BYTES)..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_block_sizes_are_pages() {
        assert!(Page::parse(&[0; 8192]).is_some());
        assert!(Page::parse(&[0; 8191]).is_none());
        assert!(Page::parse(&[0; 512]).is_none());
        assert!(Page::parse(&[0; 65536]).is_none());
    }

    #[test]
    fn a_page_of_ones_is_read_without_harm() {
        let page = Page::parse(&[0xFF; 1024]).expect("a block size");
        assert_eq!(page.line_pointer_count(), 250);
        assert_eq!(page.line_pointers().count(), 250);
        assert!(
            page.line_pointers()
                .all(|(_, pointer)| page.item(pointer).is_none())
        );
        assert_eq!(page.special(), None);
    }
}
