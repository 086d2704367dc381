//! Intervals: microseconds `i64`, days `i32`, months `i32`; truth: `interval_out` in `timestamp.c`.

use super::date_time::print_seconds;
use super::interval_style::{self, Fields};
use super::printer::Printer;
use super::reader::Reader;
use super::style::IntervalStyle;
use super::undecodable::Undecodable;

/// The first major with infinite intervals.
const INFINITY_MAJOR: u16 = 17;
const MICROS_PER_MINUTE: u64 = 60_000_000;

pub(super) fn print(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let (time, days, months) = (reader.i64()?, reader.i32()?, reader.i32()?);
    reader.end()?;
    if printer.major() >= INFINITY_MAJOR {
        match (time, days, months) {
            (i64::MAX, i32::MAX, i32::MAX) => return printer.text("infinity"),
            (i64::MIN, i32::MIN, i32::MIN) => return printer.text("-infinity"),
            _ => {}
        }
    }
    let fields = Fields::of(time, days, months);
    match printer.style().intervals {
        IntervalStyle::Postgres => {}
        IntervalStyle::PostgresVerbose => return interval_style::print_verbose(printer, &fields),
        IntervalStyle::SqlStandard => return interval_style::print_standard(printer, &fields),
        IntervalStyle::Iso8601 => return interval_style::print_iso(printer, &fields),
    }
    let mut units = Units {
        is_first: true,
        after_negative: false,
    };
    units.print(printer, months / 12, "year")?;
    units.print(printer, months % 12, "mon")?;
    units.print(printer, days, "day")?;
    if time != 0 || units.is_first {
        units.print_time(printer, time)?;
    }
    Ok(())
}

/// What was printed so far: a positive part after a negative one needs its sign.
struct Units {
    is_first: bool,
    after_negative: bool,
}

impl Units {
    fn print(&mut self, printer: &mut Printer, count: i32, unit: &str) -> Result<(), Undecodable> {
        if count == 0 {
            return Ok(());
        }
        let space = if self.is_first { "" } else { " " };
        let sign = if self.after_negative && count > 0 {
            "+"
        } else {
            ""
        };
        let plural = if count == 1 { "" } else { "s" };
        self.is_first = false;
        self.after_negative = count < 0;
        printer.put(format_args!("{space}{sign}{count} {unit}{plural}"))
    }

    fn print_time(&self, printer: &mut Printer, time: i64) -> Result<(), Undecodable> {
        let space = if self.is_first { "" } else { " " };
        let sign = match time {
            ..0 => "-",
            _ if self.after_negative => "+",
            _ => "",
        };
        let size = time.unsigned_abs();
        let minutes = size / MICROS_PER_MINUTE;
        printer.put(format_args!(
            "{space}{sign}{:02}:{:02}:",
            minutes / 60,
            minutes % 60
        ))?;
        print_seconds(printer, size % MICROS_PER_MINUTE)
    }
}
