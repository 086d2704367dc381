//! One stored value inside another: an element of an array, a bound of a range, a field of a
//! record. Varlenas bring their own header of one or four bytes and may be compressed in place.
//!
//! Truth: `src/include/access/tupmacs.h`, `src/include/varatt.h` (`postgres.h` before 16).

use std::borrow::Cow;

use super::decompress::decompress;
use super::reader::Reader;
use super::types::TypeInfo;
use super::undecodable::Undecodable;

/// What compressed values may still unpack to.
#[derive(Clone, Copy)]
pub(crate) struct Unpacking {
    /// Bytes.
    pub(crate) left: usize,
}

impl Unpacking {
    fn spend(&mut self, bytes: usize) -> Result<(), Undecodable> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or(Undecodable::limit(
            "the value unpacks to more than the limit",
        ))?;
        Ok(())
    }
}

/// How the place of the next value is found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placing {
    /// At the next multiple of the alignment (arrays).
    Aligned,
    /// A varlena that does not begin with a zero byte stands where it is (tuples, ranges).
    Packed,
    /// Here.
    Here,
}

/// Reads the next value of a type; the payload, for a varlena. Alignment counts from `shift`
/// bytes before the reader's data.
pub(crate) fn read<'a>(
    unpacking: &mut Unpacking,
    reader: &mut Reader<'a>,
    ty: &TypeInfo,
    placing: Placing,
    shift: usize,
) -> Result<Cow<'a, [u8]>, Undecodable> {
    let is_packed = placing == Placing::Packed && ty.len == -1 && reader.peek().first() != Some(&0);
    if placing != Placing::Here && !is_packed {
        reader.align(ty.align, shift);
    }
    match ty.len {
        -1 => varlena(unpacking, reader),
        -2 => {
            let length = reader.peek().iter().position(|&byte| byte == 0);
            let length = length.ok_or_else(|| reader.damaged("a string has no end"))?;
            let text = reader.bytes(length)?;
            reader.bytes(1)?;
            Ok(Cow::Borrowed(text))
        }
        len => match usize::try_from(len) {
            Ok(len @ 1..) => reader.bytes(len).map(Cow::Borrowed),
            _ => Err(Undecodable::unsupported(
                "the type has an impossible length",
            )),
        },
    }
}

/// The payload of the varlena that begins here.
pub(crate) fn varlena<'a>(
    unpacking: &mut Unpacking,
    reader: &mut Reader<'a>,
) -> Result<Cow<'a, [u8]>, Undecodable> {
    match reader.peek().first() {
        Some(1) => Err(reader.damaged("a pointer out of the value stands inside it")),
        Some(header) if header & 1 == 1 => {
            let size = usize::from(reader.u8()? >> 1);
            let payload = reader.bytes(size.saturating_sub(1))?;
            Ok(Cow::Borrowed(payload))
        }
        _ => long(unpacking, reader),
    }
}

/// A four-byte header: 30 bits of size, itself included, above two bits of kind.
fn long<'a>(
    unpacking: &mut Unpacking,
    reader: &mut Reader<'a>,
) -> Result<Cow<'a, [u8]>, Undecodable> {
    let at = reader.at();
    let header = reader.u32()?;
    let size = usize::try_from(header >> 2).unwrap_or(usize::MAX);
    let size = size.checked_sub(4);
    let size = size.ok_or(Undecodable::damaged(
        "a varlena is shorter than its header",
        at,
    ))?;
    let payload = reader.bytes(size)?;
    if header & 3 == 0 {
        return Ok(Cow::Borrowed(payload));
    }
    let mut packed = Reader::new(payload);
    let info = packed
        .u32()
        .map_err(|_| Undecodable::damaged("a compressed value has no size", at))?;
    let raw_size = usize::try_from(info & 0x3FFF_FFFF).unwrap_or(usize::MAX);
    unpacking.spend(raw_size)?;
    // Two bits.
    let method = (info >> 30) as u8;
    let raw = decompress(method, packed.rest(), raw_size);
    raw.map(Cow::Owned)
        .map_err(|_| Undecodable::damaged("a compressed value does not decompress", at))
}
