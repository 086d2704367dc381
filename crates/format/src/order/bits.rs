//! `bit` and `varbit`: the bytes first, then the count of bits.
//!
//! Truth: `bit_cmp` in `varbit.c`.

use std::cmp::Ordering;

use crate::bytes::u32_at;

/// Compares two payloads.
pub(super) fn compare(a: &[u8], b: &[u8]) -> Option<Ordering> {
    let (a_bits, a_bytes) = parse(a)?;
    let (b_bits, b_bytes) = parse(b)?;
    let common = a_bytes.len().min(b_bytes.len());
    let bytes = a_bytes.get(..common)?.cmp(b_bytes.get(..common)?);
    Some(bytes.then(a_bits.cmp(&b_bits)))
}

fn parse(value: &[u8]) -> Option<(u32, &[u8])> {
    let (bits, bytes) = (u32_at(value, 0)?, value.get(4..)?);
    let needed = usize::try_from(bits.div_ceil(8)).ok()?;
    (bytes.len() == needed).then_some((bits, bytes))
}
