//! Whether a page is what its block should hold, by its header and checksum, and by what its rows
//! say.
//!
//! Row versions that were never updated name their own place in `t_ctid`. An update of a whole page
//! that was rolled back looks alike, so the other block must hold the same bytes, or a page that
//! belongs here.

use pgclinic_format::checksum::page_checksum;
use pgclinic_format::heap_tuple::HEAP_XMAX_INVALID;
use pgclinic_format::{BlockNo, HeapTuple, LpFlags, Lsn, Page, Xid};

use crate::cluster::Cluster;

impl Cluster {
    /// Its header makes sense, and its checksum, where there are any, is right.
    pub fn page_is_sound(&self, page: Page<'_>, block: BlockNo) -> bool {
        let is_denied = self.checksums() == Some(true)
            && page.pd_checksum() != page_checksum(page.bytes(), block);
        page.header_is_sane_to_the_server() && !is_denied
    }
}

/// How a page came to stand on another block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misplaced {
    /// That block holds the same bytes.
    Copy,
    /// That block holds the page that belongs here.
    Swapped,
}

/// The one other block that all row versions without a successor name as their own.
pub fn block_by_rows(page: Page<'_>, own: BlockNo) -> Option<BlockNo> {
    let mut named = None;
    let mut rows = 0;
    let normal = page
        .line_pointers()
        .filter(|(_, pointer)| pointer.flags() == LpFlags::Normal);
    for (number, pointer) in normal {
        let Some(tuple) = page.item(pointer).and_then(HeapTuple::parse) else {
            continue;
        };
        let ctid = tuple.t_ctid();
        let never_updated = tuple.t_xmax() == Xid::INVALID || tuple.has(HEAP_XMAX_INVALID);
        if !never_updated || ctid.offset != number {
            continue;
        }
        if ctid.block == own || named.is_some_and(|block| block != ctid.block) {
            return None;
        }
        named = Some(ctid.block);
        rows += 1;
    }
    // An LSN that two pages share is a second witness where there is only one row.
    named.filter(|_| rows > 1 || page.pd_lsn() != Lsn(0))
}

/// Whether the page on the other block, which this one names, bears it out.
pub fn misplaced(page: Page<'_>, own: BlockNo, other: &[u8], block: BlockNo) -> Option<Misplaced> {
    if holds_the_same(page, other) {
        return Some(Misplaced::Copy);
    }
    let other = Page::parse(other)?;
    (block_by_rows(other, block) == Some(own)).then_some(Misplaced::Swapped)
}

/// But for the checksum, which counts the place in.
fn holds_the_same(page: Page<'_>, other: &[u8]) -> bool {
    const PD_CHECKSUM: std::ops::Range<usize> = 8..10;
    let ours = page.bytes();
    other.get(..PD_CHECKSUM.start) == ours.get(..PD_CHECKSUM.start)
        && other.get(PD_CHECKSUM.end..) == ours.get(PD_CHECKSUM.end..)
}
