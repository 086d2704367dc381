//! Geometric types, all made of doubles; truth: `geo_ops.c`.

use super::float::f64_text;
use super::printer::Printer;
use super::reader::Reader;
use super::undecodable::Undecodable;

pub(super) fn print_point(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    point(printer, &mut reader)?;
    reader.end()
}

pub(super) fn print_lseg(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    printer.byte(b'[')?;
    points(printer, &mut reader, 2)?;
    printer.byte(b']')?;
    reader.end()
}

pub(super) fn print_box(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    points(printer, &mut reader, 2)?;
    reader.end()
}

/// Count of points, closed or not, four bytes of nothing, the points.
pub(super) fn print_path(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let count = reader.count("the count of points is negative")?;
    let (open, close) = if reader.i32()? != 0 {
        (b'(', b')')
    } else {
        (b'[', b']')
    };
    reader.u32()?;
    printer.byte(open)?;
    points(printer, &mut reader, count)?;
    printer.byte(close)?;
    reader.end()
}

/// Count of points, the box around them, the points.
pub(super) fn print_polygon(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let count = reader.count("the count of points is negative")?;
    reader.bytes(32)?;
    printer.byte(b'(')?;
    points(printer, &mut reader, count)?;
    printer.byte(b')')?;
    reader.end()
}

pub(super) fn print_line(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    printer.byte(b'{')?;
    numbers(printer, &mut reader, 3)?;
    printer.byte(b'}')?;
    reader.end()
}

pub(super) fn print_circle(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    printer.byte(b'<')?;
    point(printer, &mut reader)?;
    printer.byte(b',')?;
    f64_text(printer, reader.f64()?)?;
    printer.byte(b'>')?;
    reader.end()
}

fn points(printer: &mut Printer, reader: &mut Reader<'_>, count: usize) -> Result<(), Undecodable> {
    for place in 0..count {
        if place > 0 {
            printer.byte(b',')?;
        }
        point(printer, reader)?;
    }
    Ok(())
}

fn point(printer: &mut Printer, reader: &mut Reader<'_>) -> Result<(), Undecodable> {
    printer.byte(b'(')?;
    numbers(printer, reader, 2)?;
    printer.byte(b')')
}

fn numbers(
    printer: &mut Printer,
    reader: &mut Reader<'_>,
    count: usize,
) -> Result<(), Undecodable> {
    for place in 0..count {
        if place > 0 {
            printer.byte(b',')?;
        }
        f64_text(printer, reader.f64()?)?;
    }
    Ok(())
}
