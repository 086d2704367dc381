//! `pg_snapshot`: count, xmin, xmax, then the transactions in progress; truth: `xid8funcs.c`.

use super::printer::Printer;
use super::reader::Reader;
use super::undecodable::Undecodable;

pub(super) fn print(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let (count, xmin, xmax) = (reader.u32()?, reader.u64()?, reader.u64()?);
    printer.put(format_args!("{xmin}:{xmax}:"))?;
    for place in 0..count {
        let separator = if place > 0 { "," } else { "" };
        printer.put(format_args!("{separator}{}", reader.u64()?))?;
    }
    reader.end()
}
