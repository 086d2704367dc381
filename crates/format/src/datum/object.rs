//! Values that are the OID of an object and are printed as its name; truth: `regproc.c`.

use super::printer::Printer;
use super::reader::exact;
use super::undecodable::Undecodable;

/// OID of `regrole`.
pub(super) const ROLE: u32 = 4096;

/// A value of the type with this OID; 0 is no object.
pub(super) fn print<const TYPE: u32>(
    printer: &mut Printer,
    value: &[u8],
) -> Result<(), Undecodable> {
    match u32::from_le_bytes(exact(value)?) {
        0 => printer.byte(b'-'),
        oid => print_name(printer, TYPE, oid),
    }
}

/// The same, but no operator is a 0, as `-` is one.
pub(super) fn print_operator<const TYPE: u32>(
    printer: &mut Printer,
    value: &[u8],
) -> Result<(), Undecodable> {
    print_name(printer, TYPE, u32::from_le_bytes(exact(value)?))
}

fn print_name(printer: &mut Printer, ty: u32, oid: u32) -> Result<(), Undecodable> {
    match name(printer, ty, oid) {
        Some(name) => printer.raw(&name),
        None => printer.put(format_args!("{oid}")),
    }
}

/// The name of an object, if the catalogs gave one.
pub(super) fn name(printer: &Printer, ty: u32, oid: u32) -> Option<Vec<u8>> {
    printer.style().names.get(&ty)?.get(&oid).cloned()
}
