//! Values of one piece: numbers, times, addresses, shapes.

use super::super::reader::Reader;
use super::super::types::TypeInfo;
use super::super::undecodable::Undecodable;
use super::Sender;

/// A number of one, two, four or eight bytes.
pub(super) fn turned(
    sender: &mut Sender<'_, '_>,
    ty: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    let width = usize::try_from(ty.len).unwrap_or(0);
    words_of(sender, value, &[width])
}

/// Numbers of these widths.
pub(super) fn words_of(
    sender: &mut Sender<'_, '_>,
    value: &[u8],
    widths: &[usize],
) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    for width in widths {
        let mut word = [0; 8];
        let bytes = reader.bytes(*width)?;
        for (slot, byte) in word.iter_mut().zip(bytes.iter().rev()) {
            *slot = *byte;
        }
        sender.raw(word.get(..*width).unwrap_or_default())?;
    }
    reader.end()
}

/// The block, then the line pointer.
pub(super) fn tid(
    sender: &mut Sender<'_, '_>,
    _: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    // The halves of the block stand in the order of big-endian numbers.
    words_of(sender, value, &[2, 2, 2])
}

/// As many doubles as there are.
pub(super) fn doubles(
    sender: &mut Sender<'_, '_>,
    ty: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    let count = usize::try_from(ty.len / 8).unwrap_or(0);
    let mut reader = Reader::new(value);
    numbers(sender, &mut reader, count)?;
    reader.end()
}

fn numbers(
    sender: &mut Sender<'_, '_>,
    reader: &mut Reader<'_>,
    count: usize,
) -> Result<(), Undecodable> {
    for _ in 0..count {
        let number = reader.f64()?;
        sender.raw(&number.to_be_bytes())?;
    }
    Ok(())
}

/// Closed or not, a count, the points.
pub(super) fn path(
    sender: &mut Sender<'_, '_>,
    _: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let count = reader.count("the count of points is negative")?;
    let is_closed = reader.i32()? != 0;
    reader.u32()?;
    sender.raw(&[u8::from(is_closed)])?;
    sender.count(count)?;
    numbers(sender, &mut reader, count.saturating_mul(2))?;
    reader.end()
}

/// A count, the points; the box around them is left out.
pub(super) fn polygon(
    sender: &mut Sender<'_, '_>,
    _: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let count = reader.count("the count of points is negative")?;
    reader.bytes(32)?;
    sender.count(count)?;
    numbers(sender, &mut reader, count.saturating_mul(2))?;
    reader.end()
}

/// Family, length of the prefix, whether it is a `cidr`, length of the address, the address.
pub(super) fn address(
    sender: &mut Sender<'_, '_>,
    ty: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    const CIDR: u32 = 650;
    let mut reader = Reader::new(value);
    let (family, bits) = (reader.u8()?, reader.u8()?);
    let length = match family {
        2 => 4,
        3 => 16,
        _ => {
            return Err(Undecodable::damaged(
                "the address family is neither 2 nor 3",
                0,
            ));
        }
    };
    sender.raw(&[family, bits, u8::from(ty.oid == CIDR), length])?;
    sender.raw(reader.bytes(usize::from(length))?)?;
    reader.end()
}

/// A count of bits, then the bits.
pub(super) fn bits(
    sender: &mut Sender<'_, '_>,
    _: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let bits = reader.count("the count of bits is negative")?;
    sender.count(bits)?;
    sender.raw(reader.bytes(bits.div_ceil(8))?)?;
    reader.end()
}

/// Count of digits to base 10000, weight, sign, display scale, the digits.
pub(super) fn numeric(
    sender: &mut Sender<'_, '_>,
    _: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let head = reader.u16()?;
    // Seven bits, the highest of them the sign; what is no number looks short too.
    let low = (head & 0x3F).cast_signed() - if head & 0x40 != 0 { 0x40 } else { 0 };
    let (sign, scale, weight) = match head & 0xC000 {
        0xC000 => (head & 0xF000, (head & 0x1F80) >> 7, low),
        0x8000 => ((head & 0x2000) << 1, (head & 0x1F80) >> 7, low),
        sign => (sign, head & 0x3FFF, reader.i16()?),
    };
    let digits = reader.rest();
    if !digits.len().is_multiple_of(2) {
        return Err(Undecodable::damaged(
            "a numeric ends in half a digit",
            value.len(),
        ));
    }
    let count = u16::try_from(digits.len() / 2)
        .map_err(|_| Undecodable::damaged("a numeric has too many digits", 0))?;
    for word in [count, weight.cast_unsigned(), sign, scale] {
        sender.u16(word)?;
    }
    for digit in digits.chunks_exact(2) {
        words_of(sender, digit, &[2])?;
    }
    Ok(())
}

/// Count, xmin, xmax, the transactions in progress.
pub(super) fn snapshot(
    sender: &mut Sender<'_, '_>,
    _: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let count = reader.u32()?;
    sender.u32(count)?;
    for _ in 0..u64::from(count) + 2 {
        let xid = reader.u64()?;
        sender.raw(&xid.to_be_bytes())?;
    }
    reader.end()
}

/// The head, then all coordinates.
pub(super) fn cube(
    sender: &mut Sender<'_, '_>,
    _: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let head = reader.u32()?;
    sender.u32(head)?;
    let corners = if head & 0x8000_0000 != 0 { 1 } else { 2 };
    let dimensions = usize::try_from(head & 0x7FFF_FFFF).unwrap_or(usize::MAX);
    numbers(sender, &mut reader, dimensions.saturating_mul(corners))?;
    reader.end()
}
