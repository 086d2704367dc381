//! The header of a row as recovery writes it. Truth: `fix_infomask_from_infobits` in
//! `src/backend/access/heap/heapam.c`.

use crate::build::{put_u16, put_u32};
use crate::bytes::u16_at;
use crate::heap_tuple::{
    HEAP_HOT_UPDATED, HEAP_KEYS_UPDATED, HEAP_MOVED, HEAP_XMAX_COMMITTED, HEAP_XMAX_EXCL_LOCK,
    HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI, HEAP_XMAX_KEYSHR_LOCK, HEAP_XMAX_LOCK_ONLY,
    HEAP_XMAX_SHR_LOCK,
};
use crate::types::{BlockNo, Tid};

/// `HEAP_XMAX_BITS`.
const XMAX_BITS: u16 = HEAP_XMAX_COMMITTED
    | HEAP_XMAX_INVALID
    | HEAP_XMAX_IS_MULTI
    | HEAP_XMAX_SHR_LOCK
    | HEAP_XMAX_LOCK_ONLY;
/// `HEAP_COMBOCID`.
const COMBO: u16 = 0x0020;

const XMIN_AT: usize = 0;
const XMAX_AT: usize = 4;
const FIELD3_AT: usize = 8;
const CTID_AT: usize = 12;
const INFOMASK2_AT: usize = 18;
const INFOMASK_AT: usize = 20;

pub(crate) fn set_xmin(row: &mut [u8], xid: u32) {
    put_u32(row, XMIN_AT, xid);
}

pub(crate) fn set_xmax(row: &mut [u8], xid: u32) {
    put_u32(row, XMAX_AT, xid);
}

/// The field that once held a transaction of VACUUM FULL.
pub(crate) fn set_xvac(row: &mut [u8], xid: u32) {
    put_u32(row, FIELD3_AT, xid);
}

/// `HeapTupleHeaderSetCmax` with the first command.
pub(crate) fn set_first_command(row: &mut [u8]) {
    put_u32(row, FIELD3_AT, 0);
    change(row, INFOMASK_AT, |mask| mask & !COMBO);
}

pub(crate) fn set_ctid(row: &mut [u8], place: Tid) {
    put_u16(row, CTID_AT, (place.block >> 16) as u16);
    put_u16(row, CTID_AT + 2, (place.block & 0xFFFF) as u16);
    put_u16(row, CTID_AT + 4, place.offset);
}

/// `HeapTupleHeaderSetMovedPartitions`.
pub(crate) fn set_moved(row: &mut [u8]) {
    let nowhere = Tid {
        block: BlockNo::MAX,
        offset: crate::heap_tuple::MOVED_PARTITIONS_OFFSET,
    };
    set_ctid(row, nowhere);
}

pub(crate) fn set_masks(row: &mut [u8], infomask2: u16, infomask: u16) {
    put_u16(row, INFOMASK2_AT, infomask2);
    put_u16(row, INFOMASK_AT, infomask);
}

fn change(row: &mut [u8], at: usize, change: impl FnOnce(u16) -> u16) {
    let value = u16_at(row, at).unwrap_or_default();
    put_u16(row, at, change(value));
}

pub(crate) fn set_hot_updated(row: &mut [u8], on: bool) {
    change(row, INFOMASK2_AT, |mask| {
        if on {
            mask | HEAP_HOT_UPDATED
        } else {
            mask & !HEAP_HOT_UPDATED
        }
    });
}

/// Replaces all that is said of `xmax` by the bits of a record.
pub(crate) fn replace_xmax_bits(row: &mut [u8], bits: u8) {
    let pairs = [
        (0x01, HEAP_XMAX_IS_MULTI),
        (0x02, HEAP_XMAX_LOCK_ONLY),
        (0x04, HEAP_XMAX_EXCL_LOCK),
        (0x08, HEAP_XMAX_KEYSHR_LOCK),
    ];
    let set = pairs.iter().filter(|(bit, _)| bits & bit != 0);
    let set = set.fold(0, |mask, (_, flag)| mask | flag);
    change(row, INFOMASK_AT, |mask| {
        mask & !(XMAX_BITS | HEAP_MOVED) | set
    });
    let keys = if bits & 0x10 != 0 {
        HEAP_KEYS_UPDATED
    } else {
        0
    };
    change(row, INFOMASK2_AT, |mask| mask & !HEAP_KEYS_UPDATED | keys);
}
