//! Values of variable length: their four kinds of header.
//!
//! ```text
//! xxxxxxx1            1-byte header, length with the header in the upper 7 bits
//! 00000001 tag …      pointer; tag 18 is a value in TOAST, others never reach a disk
//! xxxxxx00 … 4 bytes  plain, length with the header in the upper 30 bits
//! xxxxxx10 … 4 bytes  compressed, then 4 bytes of raw size and method
//! ```
//!
//! Truth: `src/include/varatt.h` (`postgres.h` before 16).

use std::borrow::Cow;

use crate::bytes::u32_at;
use crate::datum::{DecompressError, decompress};
use crate::toast::ToastPointer;

/// `VARTAG_ONDISK`.
pub const VARTAG_ONDISK: u8 = 18;
/// Bytes of a pointer to TOAST with its header and tag.
pub const TOAST_POINTER_BYTES: usize = 18;

/// One value, by kind; slices are payload without header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Varlena<'a> {
    /// With a 1-byte header.
    Short(&'a [u8]),
    /// With a 4-byte header.
    Plain(&'a [u8]),
    /// Compressed in place.
    Compressed(Compressed<'a>),
    /// In the TOAST relation.
    External(ToastPointer),
}

/// A value that is compressed where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compressed<'a> {
    /// Bytes after decompression, without a header; 30 bits.
    pub raw_size: u32,
    /// 0 pglz, 1 lz4 (14+; always 0 before), 2 and 3 unknown.
    pub method: u8,
    /// The compressed bytes.
    pub data: &'a [u8],
}

impl<'a> Varlena<'a> {
    /// The payload of a value that stands here as it is, neither compressed nor in TOAST.
    #[inline]
    pub fn as_it_is(self) -> Option<&'a [u8]> {
        match self {
            Varlena::Short(payload) | Varlena::Plain(payload) => Some(payload),
            Varlena::Compressed(_) | Varlena::External(_) => None,
        }
    }

    /// The payload of a value that stands here, unpacked where it is compressed. Nothing for one in
    /// TOAST, for one that does not decompress, and for one of more than `bytes_max` bytes then.
    pub fn unpacked(self, bytes_max: u32) -> Option<Cow<'a, [u8]>> {
        match self {
            Varlena::Compressed(packed) if packed.raw_size <= bytes_max => {
                packed.unpack().ok().map(Cow::Owned)
            }
            _ => self.as_it_is().map(Cow::Borrowed),
        }
    }
}

impl Compressed<'_> {
    /// The value, of exactly `raw_size` bytes, which the caller limits.
    pub fn unpack(self) -> Result<Vec<u8>, DecompressError> {
        let raw_size = usize::try_from(self.raw_size).unwrap_or(usize::MAX);
        decompress(self.method, self.data, raw_size)
    }
}

/// What the bytes of one attribute say: without the header of a varlena, unpacked; without the zero
/// that ends a C string; a value of fixed length as it is. Nothing where [`Varlena::unpacked`] has
/// nothing.
pub fn payload(attlen: i16, bytes: &[u8], bytes_max: u32) -> Option<Cow<'_, [u8]>> {
    match attlen {
        -1 => parse(bytes).ok()?.0.unpacked(bytes_max),
        -2 => Some(Cow::Borrowed(bytes.strip_suffix(&[0]).unwrap_or(bytes))),
        _ => Some(Cow::Borrowed(bytes)),
    }
}

/// Why the bytes are no varlena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VarlenaFault {
    /// Nothing is there to read.
    Empty,
    /// The header claims more bytes than there are.
    Beyond {
        /// Bytes the header claims, with the header.
        claimed: usize,
        /// Bytes there are.
        available: usize,
    },
    /// The header claims fewer bytes than a header has.
    Short {
        /// Bytes the header claims, with the header.
        claimed: usize,
    },
    /// A pointer with a tag that never reaches a disk.
    Tag {
        /// The tag found.
        tag: u8,
    },
}

/// Reads the varlena at the start of `bytes`; with it, the bytes it occupies, header included.
#[inline]
pub fn parse(bytes: &[u8]) -> Result<(Varlena<'_>, usize), VarlenaFault> {
    let first = *bytes.first().ok_or(VarlenaFault::Empty)?;
    match first {
        0x01 => parse_external(bytes),
        _ if first & 1 == 1 => {
            let total = usize::from(first >> 1);
            let payload = bytes.get(1..total).ok_or(beyond(total, bytes))?;
            Ok((Varlena::Short(payload), total))
        }
        _ => parse_long(bytes),
    }
}

/// Bytes that the varlena at the start of `bytes` occupies, header included: the quick form of
/// [`parse`] for walkers, with the same faults.
#[inline]
pub fn total_len(bytes: &[u8]) -> Result<usize, VarlenaFault> {
    let first = *bytes.first().ok_or(VarlenaFault::Empty)?;
    if first & 1 == 1 && first != 1 {
        let total = usize::from(first >> 1);
        return if total <= bytes.len() {
            Ok(total)
        } else {
            Err(beyond(total, bytes))
        };
    }
    parse(bytes).map(|(_, total)| total)
}

fn beyond(claimed: usize, bytes: &[u8]) -> VarlenaFault {
    VarlenaFault::Beyond {
        claimed,
        available: bytes.len(),
    }
}

fn parse_external(bytes: &[u8]) -> Result<(Varlena<'_>, usize), VarlenaFault> {
    let tag = *bytes.get(1).ok_or(beyond(2, bytes))?;
    if tag != VARTAG_ONDISK {
        return Err(VarlenaFault::Tag { tag });
    }
    let raw = bytes
        .get(2..TOAST_POINTER_BYTES)
        .ok_or(beyond(TOAST_POINTER_BYTES, bytes))?;
    let pointer = ToastPointer::parse(raw).ok_or(beyond(TOAST_POINTER_BYTES, bytes))?;
    Ok((Varlena::External(pointer), TOAST_POINTER_BYTES))
}

fn parse_long(bytes: &[u8]) -> Result<(Varlena<'_>, usize), VarlenaFault> {
    let word = u32_at(bytes, 0).ok_or(beyond(4, bytes))?;
    let total = (word >> 2) as usize;
    let header = if word & 2 == 0 { 4 } else { 8 };
    if total < header {
        return Err(VarlenaFault::Short { claimed: total });
    }
    let payload = bytes.get(header..total).ok_or(beyond(total, bytes))?;
    if header == 4 {
        return Ok((Varlena::Plain(payload), total));
    }
    let info = u32_at(bytes, 4).ok_or(beyond(8, bytes))?;
    let (raw_size, method) = size_and_method(info);
    Ok((
        Varlena::Compressed(Compressed {
            raw_size,
            method,
            data: payload,
        }),
        total,
    ))
}

/// Splits the word that holds a size in its low 30 bits and a compression method above.
pub fn size_and_method(word: u32) -> (u32, u8) {
    (word & 0x3FFF_FFFF, (word >> 30) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_header() {
        assert_eq!(
            parse(&[0x07, b'a', b'b', 0]),
            Ok((Varlena::Short(b"ab"), 3))
        );
        assert_eq!(
            parse(&[24, 0, 0, 0, b'x', b'y']),
            Ok((Varlena::Plain(b"xy"), 6))
        );
        let compressed = [0x2A, 0, 0, 0, 5, 0, 0, 0x40, 1, 2];
        let expected = Compressed {
            raw_size: 5,
            method: 1,
            data: &[1, 2],
        };
        assert_eq!(parse(&compressed), Ok((Varlena::Compressed(expected), 10)));
    }

    #[test]
    fn lying_lengths_are_faults() {
        assert_eq!(
            parse(&[0xFF, 1]),
            Err(VarlenaFault::Beyond {
                claimed: 127,
                available: 2
            })
        );
        assert_eq!(
            parse(&[0, 0, 0, 0]),
            Err(VarlenaFault::Short { claimed: 0 })
        );
        assert_eq!(parse(&[1, 3, 0]), Err(VarlenaFault::Tag { tag: 3 }));
        assert_eq!(parse(&[]), Err(VarlenaFault::Empty));
    }
}
