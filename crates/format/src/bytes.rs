//! Little-endian numbers out of a slice, or nothing.

use crate::types::{BlockNo, Tid};

#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A block number as two halves, the high one first (`BlockIdData`).
#[inline]
pub(crate) fn block_at(bytes: &[u8], at: usize) -> Option<BlockNo> {
    let (high, low) = (u16_at(bytes, at)?, u16_at(bytes, at.checked_add(2)?)?);
    Some(u32::from(high) << 16 | u32::from(low))
}

/// A row number (`ItemPointerData`).
#[inline]
pub(crate) fn tid_at(bytes: &[u8], at: usize) -> Option<Tid> {
    Some(Tid {
        block: block_at(bytes, at)?,
        offset: u16_at(bytes, at.checked_add(4)?)?,
    })
}

/// Rounds up to the next multiple of `align`, a power of two; saturates instead of wrapping.
#[inline]
pub(crate) fn align_up(at: usize, align: usize) -> usize {
    at.saturating_add(align - 1) & !(align - 1)
}
