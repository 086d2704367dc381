//! Little-endian numbers out of a slice, or nothing.

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Rounds up to the next multiple of `align`, a power of two; saturates instead of wrapping.
pub(crate) fn align_up(at: usize, align: usize) -> usize {
    at.saturating_add(align - 1) & !(align - 1)
}
