//! What a record of a heap or a sequence does to a page, as the server's recovery does it.
//!
//! A page is given as it lies there and changed in place; whether the record is newer than the page
//! is the caller's question. Truth: `heap_redo` and `heap2_redo` in
//! `src/backend/access/heap/heapam_xlog.c` (`heapam.c` before 18), `seq_redo` in
//! `src/backend/commands/sequence.c`.

mod heap;
mod page;
mod prune;
mod tuple;

use crate::types::BlockNo;
use crate::wal::record::Record;

pub(crate) use heap::DELETE_SUPER;

/// Managers whose records are applied here.
pub(crate) const HEAP2: u8 = 9;
pub(crate) const HEAP: u8 = 10;
const SEQUENCE: u8 = 15;

/// Operations, which share their info byte with the flag of a new page.
pub(crate) const OPERATION: u8 = 0x70;
const NEW_PAGE: u8 = 0x80;

/// Why a record could not be applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RedoFault {
    /// The record is too short for what it should say.
    Short,
    /// The page has no such row, or no room for a new one: it is not the page that was changed.
    Page,
    /// Records of this kind are not known here.
    Unknown,
}

/// What a record does to one of its blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RedoKind {
    /// It changes its rows.
    Rows,
    /// Nothing that matters for rows: an index, a map.
    Nothing,
}

/// What the record does to the block of this number beyond an image.
pub fn deed(record: &Record<'_>, id: u8) -> RedoKind {
    let header = record.header;
    match (header.manager, header.info & OPERATION) {
        (HEAP, 0x30) | (HEAP2, 0x00 | 0x70) => RedoKind::Nothing,
        // The first block is the visibility map's.
        (HEAP2, 0x40) if id == 0 => RedoKind::Nothing,
        // From 18 on blocks behind the rows' are the visibility map's.
        (HEAP, _) if id > 1 => RedoKind::Nothing,
        (HEAP, 0x20 | 0x40) | (HEAP2, 0x40) => RedoKind::Rows,
        (HEAP | HEAP2, _) if id > 0 => RedoKind::Nothing,
        (HEAP | HEAP2 | SEQUENCE, _) => RedoKind::Rows,
        _ => RedoKind::Nothing,
    }
}

/// Bytes that an update takes over from the old version.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OldRow {
    bytes: Vec<u8>,
}

/// Applies the record to its block number `id`, whose page is `page`. An update's old page comes
/// before its new one, and hands on the old version in `old`.
pub fn apply(
    record: &Record<'_>,
    major: u16,
    id: u8,
    page: &mut [u8],
    old: &mut OldRow,
) -> Result<(), RedoFault> {
    let header = record.header;
    let reference = record.blocks.iter().find(|block| block.id == id);
    let reference = reference.ok_or(RedoFault::Short)?;
    let mut target = RedoBlock {
        page,
        block: reference.block,
        data: reference.data,
    };
    let is_new = header.info & NEW_PAGE != 0;
    match (header.manager, header.info & OPERATION) {
        (SEQUENCE, _) => page::sequence(record, &mut target),
        (HEAP, 0x00) => heap::insert(record, is_new, &mut target),
        (HEAP, 0x10) => heap::delete(record, &mut target),
        (HEAP, operation @ (0x20 | 0x40)) => {
            heap::update(record, operation == 0x40, is_new, id, &mut target, old)
        }
        (HEAP, 0x50) => heap::confirm(record, &mut target),
        (HEAP, 0x60) => heap::lock(record, heap::Lock::Newest, &mut target),
        (HEAP, 0x70) => heap::in_place(record, &mut target),
        (HEAP2, 0x40) => {
            page::set_all_visible(target.page);
            Ok(())
        }
        (HEAP2, 0x50) => heap::multi_insert(record, is_new, &mut target),
        (HEAP2, 0x60) => heap::lock(record, heap::Lock::Updated, &mut target),
        (HEAP2, operation) => prune::apply(record, major, operation, &mut target),
        _ => Err(RedoFault::Unknown),
    }
}

/// A block that is changed.
pub(crate) struct RedoBlock<'a> {
    pub(crate) page: &'a mut [u8],
    pub(crate) block: BlockNo,
    pub(crate) data: &'a [u8],
}
