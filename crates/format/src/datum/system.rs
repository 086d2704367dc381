//! Types that the catalogs and the server's own views are full of; truth: `tid.c`, `pg_lsn.c`,
//! `uuid.c`, `acl.c`, `src/backend/statistics/`.

use super::object;
use super::printer::Printer;
use super::reader::{Reader, exact};
use super::undecodable::Undecodable;

/// `ItemPointerData`: the block as high and low half, then the line pointer number.
pub(super) fn print_tid(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let (high, low, offset) = (reader.u16()?, reader.u16()?, reader.u16()?);
    reader.end()?;
    printer.put(format_args!(
        "({},{offset})",
        u32::from(high) << 16 | u32::from(low)
    ))
}

pub(super) fn print_lsn(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let lsn = u64::from_le_bytes(exact(value)?);
    printer.put(format_args!("{:X}/{:X}", lsn >> 32, lsn & 0xFFFF_FFFF))
}

pub(super) fn print_uuid(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let bytes: [u8; 16] = exact(value)?;
    for (place, byte) in bytes.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            printer.byte(b'-')?;
        }
        printer.put(format_args!("{byte:02x}"))?;
    }
    Ok(())
}

/// The letter of each privilege, by its bit.
const PRIVILEGES: &str = "arwdDxtXUCTcsAm";

/// `AclItem`: grantee, grantor, privileges and, as many bits above them, grant options; the
/// masks have 16 bits each before 16 (12 bytes) and 32 bits since (16 bytes).
pub(super) fn print_aclitem(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let (grantee, grantor) = (reader.u32()?, reader.u32()?);
    let (granted, grantable) = match value.len() {
        12 => {
            let masks = u64::from(reader.u32()?);
            (masks & 0xFFFF, masks >> 16)
        }
        _ => {
            let masks = reader.u64()?;
            (masks & 0xFFFF_FFFF, masks >> 32)
        }
    };
    reader.end()?;
    if grantee != 0 {
        role(printer, grantee)?;
    }
    printer.byte(b'=')?;
    for (bit, letter) in PRIVILEGES.bytes().enumerate() {
        if granted >> bit & 1 != 0 {
            printer.byte(letter)?;
        }
        if grantable >> bit & 1 != 0 {
            printer.byte(b'*')?;
        }
    }
    printer.byte(b'/')?;
    role(printer, grantor)
}

/// A role as `putid` writes it: its name, quoted where it is more than letters, digits and
/// underscores.
fn role(printer: &mut Printer, oid: u32) -> Result<(), Undecodable> {
    let Some(name) = object::name(printer, object::ROLE, oid) else {
        return printer.put(format_args!("{oid}"));
    };
    // Names of roles stand there as they are quoted in SQL.
    let bare = name
        .strip_prefix(b"\"")
        .and_then(|name| name.strip_suffix(b"\""));
    let bare = bare.unwrap_or(&name);
    let is_safe = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    if !bare.is_empty() && bare.iter().all(is_safe) {
        printer.raw(bare)
    } else {
        printer.raw(&name)
    }
}

const NDISTINCT_MAGIC: u32 = 0xA352_BFA4;
const DEPENDENCIES_MAGIC: u32 = 0xB454_9A2C;

/// Magic, type 1 and a count: the head of extended statistics.
fn statistics(reader: &mut Reader<'_>, magic: u32) -> Result<u32, Undecodable> {
    if reader.u32()? != magic || reader.u32()? != 1 {
        return Err(Undecodable::damaged(
            "extended statistics have the wrong magic or type",
            0,
        ));
    }
    reader.u32()
}

/// `pg_ndistinct`: for each item a double, a count and so many attribute numbers.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the cast keeps to the limits"
)]
pub(super) fn print_ndistinct(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let items = statistics(&mut reader, NDISTINCT_MAGIC)?;
    printer.byte(b'{')?;
    for item in 0..items {
        let distinct = reader.f64()?;
        let attributes = reader.count("the count of attributes is negative")?;
        printer.text(if item > 0 { ", \"" } else { "\"" })?;
        for place in 0..attributes {
            let separator = if place > 0 { ", " } else { "" };
            printer.put(format_args!("{separator}{}", reader.i16()?))?;
        }
        // The server casts to an integer here; Rust's cast keeps to the limits instead of wrapping.
        printer.put(format_args!("\": {}", distinct as i32))?;
    }
    reader.end()?;
    printer.byte(b'}')
}

/// `pg_dependencies`: for each item a double, a count and so many attribute numbers, the last
/// of which depends on the others.
pub(super) fn print_dependencies(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let items = statistics(&mut reader, DEPENDENCIES_MAGIC)?;
    printer.byte(b'{')?;
    for item in 0..items {
        let degree = reader.f64()?;
        let attributes = reader.u16()?;
        printer.text(if item > 0 { ", \"" } else { "\"" })?;
        for place in 0..attributes {
            let separator = match place {
                0 => "",
                _ if place + 1 == attributes => " => ",
                _ => ", ",
            };
            printer.put(format_args!("{separator}{}", reader.i16()?))?;
        }
        printer.put(format_args!("\": {degree:.6}"))?;
    }
    reader.end()?;
    printer.byte(b'}')
}
