//! `inet` and `cidr`: the network first, then the length of its prefix, then the address.
//!
//! Truth: `network_cmp_internal` in `network.c`.

use std::cmp::Ordering;

struct Address<'a> {
    family: u8,
    bits: u8,
    bytes: &'a [u8],
}

/// Compares two payloads.
pub(super) fn compare(a: &[u8], b: &[u8]) -> Option<Ordering> {
    let (a, b) = (parse(a)?, parse(b)?);
    if a.family != b.family {
        return Some(a.family.cmp(&b.family));
    }
    let common = a.bits.min(b.bits);
    let networks = network(a.bytes, common)?.cmp(&network(b.bytes, common)?);
    Some(
        networks
            .then(a.bits.cmp(&b.bits))
            .then_with(|| a.bytes.cmp(b.bytes)),
    )
}

fn parse(value: &[u8]) -> Option<Address<'_>> {
    let (&[family, bits], bytes) = value.split_first_chunk()?;
    let length = match family {
        2 => 4,
        3 => 16,
        _ => return None,
    };
    let is_whole = bytes.len() == length && usize::from(bits) <= length * 8;
    is_whole.then_some(Address {
        family,
        bits,
        bytes,
    })
}

/// The whole bytes of a prefix, and what of the next byte belongs to it.
fn network(bytes: &[u8], bits: u8) -> Option<(&[u8], u8)> {
    let whole = usize::from(bits / 8);
    let next = bytes.get(whole).copied().unwrap_or(0);
    let mask = !(0xFF_u8 >> (bits % 8));
    Some((bytes.get(..whole)?, next & mask))
}
