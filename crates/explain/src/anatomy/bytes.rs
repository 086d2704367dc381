//! Little-endian numbers out of a slice, or nothing.

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// At most `limit` bytes as hexadecimal digits, with points where more follow.
pub(super) fn hex(bytes: &[u8], limit: usize) -> String {
    let shown = bytes.iter().take(limit).map(|byte| format!("{byte:02x}"));
    let more = if bytes.len() > limit { "…" } else { "" };
    format!("\\x{}{more}", shown.collect::<String>())
}

/// The place in a `Tid` as it stands on disk: the block in two halves, then the line pointer.
pub(super) fn tid_at(bytes: &[u8], at: usize) -> Option<(u32, u16)> {
    let (high, low) = (u16_at(bytes, at)?, u16_at(bytes, at.checked_add(2)?)?);
    Some((
        u32::from(high) << 16 | u32::from(low),
        u16_at(bytes, at.checked_add(4)?)?,
    ))
}
