//! Booleans, integers and object identifiers; truth: `int.c`, `int8.c`, `bool.c`, `regproc.c`.

use super::printer::Printer;
use super::reader::exact;
use super::undecodable::Undecodable;

pub(super) fn print_bool(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    match exact(value)? {
        [0] => printer.byte(b'f'),
        [1] => printer.byte(b't'),
        _ => Err(Undecodable::damaged("a boolean is neither 0 nor 1", 0)),
    }
}

pub(super) fn print_i16(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    printer.put(format_args!("{}", i16::from_le_bytes(exact(value)?)))
}

pub(super) fn print_i32(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    printer.put(format_args!("{}", i32::from_le_bytes(exact(value)?)))
}

pub(super) fn print_i64(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    printer.put(format_args!("{}", i64::from_le_bytes(exact(value)?)))
}

pub(super) fn print_u32(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    printer.put(format_args!("{}", u32::from_le_bytes(exact(value)?)))
}

pub(super) fn print_u64(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    printer.put(format_args!("{}", u64::from_le_bytes(exact(value)?)))
}
