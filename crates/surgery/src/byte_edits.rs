//! Small edits of bytes that injuries share, beside those of [`pgclinic_format::build`].

use pgclinic_format::BlockNo;
use pgclinic_format::build::put_u16;

/// Overwrites the bytes at `at`; nothing happens where the page ends before them.
pub(crate) fn put_bytes(page: &mut [u8], at: usize, bytes: &[u8]) {
    let room = page
        .get_mut(at..)
        .and_then(|rest| rest.get_mut(..bytes.len()));
    room.into_iter()
        .for_each(|room| room.copy_from_slice(bytes));
}

/// Overwrites the byte at `at`; nothing happens where the page ends before it.
pub(crate) fn put_u8(page: &mut [u8], at: usize, value: u8) {
    put_bytes(page, at, &[value]);
}

/// Writes a block number as the two halves of a `BlockIdData`, the high one first.
pub(crate) fn put_block(page: &mut [u8], at: usize, block: BlockNo) {
    put_u16(page, at, (block >> 16) as u16);
    put_u16(page, at + 2, (block & 0xFFFF) as u16);
}

/// Changes one bit of the byte at `at`.
pub(crate) fn flip(bytes: &mut [u8], at: usize) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 0x10;
    }
}
