//! Rows inserted, deleted, updated and locked.
//!
//! ```text
//! insert        | offnum u16 | flags u8 |                     data: | infomask2 | infomask | hoff u8 | row behind its header |
//! multi insert  | flags u8 | - | ntuples u16 | offnum u16 … |  data: | len u16 | infomask2 | infomask | hoff u8 | row … | …
//! delete        | xmax u32 | offnum u16 | infobits u8 | flags u8 |
//! update        | old xmax u32 | old offnum u16 | old infobits u8 | flags u8 | new xmax u32 | new offnum u16 |
//!               data: | [prefix u16] | [suffix u16] | as insert |
//! lock          | xmax u32 | offnum u16 | infobits u8 | flags u8 |
//! ```
//!
//! Truth: `src/include/access/heapam_xlog.h`.

use super::{OldRow, RedoBlock, RedoFault, page, tuple};
use crate::bytes::{u16_at, u32_at};
use crate::heap_tuple::{HEADER_BYTES, HeapTuple};
use crate::types::Tid;
use crate::wal::record::Record;

const INSERT_VISIBLE_CLEARED: u8 = 1;
const INSERT_FROZEN_SET: u8 = 1 << 5;
const DELETE_VISIBLE_CLEARED: u8 = 1;
pub(crate) const DELETE_SUPER: u8 = 1 << 3;
const DELETE_PARTITION_MOVE: u8 = 1 << 4;
const UPDATE_OLD_VISIBLE_CLEARED: u8 = 1;
const UPDATE_NEW_VISIBLE_CLEARED: u8 = 1 << 1;
const UPDATE_PREFIX: u8 = 1 << 5;
const UPDATE_SUFFIX: u8 = 1 << 6;
/// Infomask2, infomask and `t_hoff` before the bytes of a row.
const ROW_HEAD_BYTES: usize = 5;

fn u8_of(bytes: &[u8], at: usize) -> Result<u8, RedoFault> {
    bytes.get(at).copied().ok_or(RedoFault::Short)
}

fn u16_of(bytes: &[u8], at: usize) -> Result<u16, RedoFault> {
    u16_at(bytes, at).ok_or(RedoFault::Short)
}

fn u32_of(bytes: &[u8], at: usize) -> Result<u32, RedoFault> {
    u32_at(bytes, at).ok_or(RedoFault::Short)
}

/// A row with the header that records leave out.
fn new_row(
    head: &[u8],
    parts: &[&[u8]],
    xmin: u32,
    xmax: u32,
    place: Tid,
) -> Result<Vec<u8>, RedoFault> {
    let mut row = vec![0; HEADER_BYTES];
    tuple::set_masks(&mut row, u16_of(head, 0)?, u16_of(head, 2)?);
    if let Some(hoff) = row.get_mut(22) {
        *hoff = u8_of(head, 4)?;
    }
    for part in parts {
        row.extend_from_slice(part);
    }
    tuple::set_xmin(&mut row, xmin);
    tuple::set_xmax(&mut row, xmax);
    tuple::set_ctid(&mut row, place);
    Ok(row)
}

pub(crate) fn insert(
    record: &Record<'_>,
    is_new: bool,
    target: &mut RedoBlock<'_>,
) -> Result<(), RedoFault> {
    let (number, flags) = (u16_of(record.main, 0)?, u8_of(record.main, 2)?);
    if is_new {
        page::init(target.page, 0);
    }
    let rest = target.data.get(ROW_HEAD_BYTES..).ok_or(RedoFault::Short)?;
    let place = Tid {
        block: target.block,
        offset: number,
    };
    let row = new_row(target.data, &[rest], record.header.xid.0, 0, place)?;
    page::add_item(target.page, &row, number)?;
    inserted(target.page, flags);
    Ok(())
}

fn inserted(page: &mut [u8], flags: u8) {
    if flags & INSERT_VISIBLE_CLEARED != 0 {
        page::clear_all_visible(page);
    }
    if flags & INSERT_FROZEN_SET != 0 {
        page::set_all_visible(page);
    }
}

pub(crate) fn multi_insert(
    record: &Record<'_>,
    is_new: bool,
    target: &mut RedoBlock<'_>,
) -> Result<(), RedoFault> {
    const HEAD_BYTES: usize = 7;
    let (flags, count) = (u8_of(record.main, 0)?, u16_of(record.main, 2)?);
    if is_new {
        page::init(target.page, 0);
    }
    let mut at = 0usize;
    for index in 0..count {
        let number = if is_new {
            index + 1
        } else {
            u16_of(record.main, 4 + usize::from(index) * 2)?
        };
        at = at.next_multiple_of(2);
        let len = usize::from(u16_of(target.data, at)?);
        let head = target.data.get(at + 2..).ok_or(RedoFault::Short)?;
        let start = at + HEAD_BYTES;
        let row = target
            .data
            .get(start..start + len)
            .ok_or(RedoFault::Short)?;
        let place = Tid {
            block: target.block,
            offset: number,
        };
        let row = new_row(head, &[row], record.header.xid.0, 0, place)?;
        page::add_item(target.page, &row, number)?;
        at = start + len;
    }
    inserted(target.page, flags);
    Ok(())
}

pub(crate) fn delete(record: &Record<'_>, target: &mut RedoBlock<'_>) -> Result<(), RedoFault> {
    let (xmax, number) = (u32_of(record.main, 0)?, u16_of(record.main, 4)?);
    let (bits, flags) = (u8_of(record.main, 6)?, u8_of(record.main, 7)?);
    let place = Tid {
        block: target.block,
        offset: number,
    };
    let row = page::row(target.page, number)?;
    tuple::replace_xmax_bits(row, bits);
    tuple::set_hot_updated(row, false);
    match flags & DELETE_SUPER {
        0 => tuple::set_xmax(row, xmax),
        _ => tuple::set_xmin(row, 0),
    }
    tuple::set_first_command(row);
    match flags & DELETE_PARTITION_MOVE {
        0 => tuple::set_ctid(row, place),
        _ => tuple::set_moved(row),
    }
    page::set_prunable(target.page, record.header.xid);
    if flags & DELETE_VISIBLE_CLEARED != 0 {
        page::clear_all_visible(target.page);
    }
    Ok(())
}

#[expect(clippy::fn_params_excessive_bools, reason = "two bits of the record")]
pub(crate) fn update(
    record: &Record<'_>,
    is_hot: bool,
    is_new: bool,
    id: u8,
    target: &mut RedoBlock<'_>,
    old: &mut OldRow,
) -> Result<(), RedoFault> {
    let one_page = !record.blocks.iter().any(|block| block.id == 1);
    if id == 1 || one_page {
        leave_old(record, is_hot, target, old)?;
    }
    if id == 0 {
        put_new(record, is_new, target, old)?;
    }
    Ok(())
}

fn leave_old(
    record: &Record<'_>,
    is_hot: bool,
    target: &mut RedoBlock<'_>,
    old: &mut OldRow,
) -> Result<(), RedoFault> {
    let main = record.main;
    let (xmax, number, bits) = (u32_of(main, 0)?, u16_of(main, 4)?, u8_of(main, 6)?);
    let (flags, new_number) = (u8_of(main, 7)?, u16_of(main, 12)?);
    let new_block = record.blocks.iter().find(|block| block.id == 0);
    let place = Tid {
        block: new_block.ok_or(RedoFault::Short)?.block,
        offset: new_number,
    };
    let row = page::row(target.page, number)?;
    tuple::replace_xmax_bits(row, bits);
    tuple::set_hot_updated(row, is_hot);
    tuple::set_xmax(row, xmax);
    tuple::set_first_command(row);
    tuple::set_ctid(row, place);
    old.bytes = row.to_vec();
    page::set_prunable(target.page, record.header.xid);
    if flags & UPDATE_OLD_VISIBLE_CLEARED != 0 {
        page::clear_all_visible(target.page);
    }
    Ok(())
}

fn put_new(
    record: &Record<'_>,
    is_new: bool,
    target: &mut RedoBlock<'_>,
    old: &OldRow,
) -> Result<(), RedoFault> {
    let (flags, xmax) = (u8_of(record.main, 7)?, u32_of(record.main, 8)?);
    let number = u16_of(record.main, 12)?;
    if is_new {
        page::init(target.page, 0);
    }
    let mut data = target.data;
    let mut size = |flag: u8| -> Result<usize, RedoFault> {
        if flags & flag == 0 {
            return Ok(0);
        }
        let size = u16_of(data, 0)?;
        data = data.get(2..).ok_or(RedoFault::Short)?;
        Ok(usize::from(size))
    };
    let (prefix, suffix) = (size(UPDATE_PREFIX)?, size(UPDATE_SUFFIX)?);
    let rest = data.get(ROW_HEAD_BYTES..).ok_or(RedoFault::Short)?;
    let hoff = usize::from(u8_of(data, 4)?);
    let bitmap = hoff.checked_sub(HEADER_BYTES).ok_or(RedoFault::Short)?;
    let (head, tail) = match prefix {
        0 => (rest, &[][..]),
        _ => rest.split_at_checked(bitmap).ok_or(RedoFault::Short)?,
    };
    let old_hoff = HeapTuple::parse(&old.bytes).map_or(0, |old| usize::from(old.t_hoff()));
    let before = old
        .bytes
        .get(old_hoff..old_hoff + prefix)
        .ok_or(RedoFault::Page)?;
    let behind = old
        .bytes
        .len()
        .checked_sub(suffix)
        .and_then(|start| old.bytes.get(start..))
        .ok_or(RedoFault::Page)?;
    let place = Tid {
        block: target.block,
        offset: number,
    };
    let parts = [head, before, tail, behind];
    let row = new_row(data, &parts, record.header.xid.0, xmax, place)?;
    page::add_item(target.page, &row, number)?;
    if flags & UPDATE_NEW_VISIBLE_CLEARED != 0 {
        page::clear_all_visible(target.page);
    }
    Ok(())
}

pub(crate) fn confirm(record: &Record<'_>, target: &mut RedoBlock<'_>) -> Result<(), RedoFault> {
    let number = u16_of(record.main, 0)?;
    let place = Tid {
        block: target.block,
        offset: number,
    };
    tuple::set_ctid(page::row(target.page, number)?, place);
    Ok(())
}

/// Which of the two records of a lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lock {
    /// Of the newest version.
    Newest,
    /// Of a version further on in the chain, which keeps its place in it.
    Updated,
}

pub(crate) fn lock(
    record: &Record<'_>,
    which: Lock,
    target: &mut RedoBlock<'_>,
) -> Result<(), RedoFault> {
    let (xmax, number) = (u32_of(record.main, 0)?, u16_of(record.main, 4)?);
    let bits = u8_of(record.main, 6)?;
    let place = Tid {
        block: target.block,
        offset: number,
    };
    let row = page::row(target.page, number)?;
    tuple::replace_xmax_bits(row, bits);
    let only_locked = HeapTuple::parse(row).is_some_and(HeapTuple::xmax_is_locked_only);
    if which == Lock::Newest && only_locked {
        tuple::set_hot_updated(row, false);
        tuple::set_ctid(row, place);
    }
    tuple::set_xmax(row, xmax);
    if which == Lock::Newest {
        tuple::set_first_command(row);
    }
    Ok(())
}

pub(crate) fn in_place(record: &Record<'_>, target: &mut RedoBlock<'_>) -> Result<(), RedoFault> {
    let row = page::row(target.page, u16_of(record.main, 0)?)?;
    let hoff = HeapTuple::parse(row).map_or(0, |tuple| usize::from(tuple.t_hoff()));
    let values = row.get_mut(hoff..).ok_or(RedoFault::Page)?;
    (values.len() == target.data.len())
        .then_some(())
        .ok_or(RedoFault::Page)?;
    values.copy_from_slice(target.data);
    Ok(())
}
