//! Dates and times since 2000-01-01 in days and microseconds; truth: `date.c`, `timestamp.c`.

use super::column::digits;
use super::date_style::{append_era, append_offset, append_year, print_day, print_moment};
use super::printer::Printer;
use super::reader::{Reader, exact};
use super::undecodable::Undecodable;
use crate::calendar::{Civil, civil};

pub(super) const MICROS_PER_SECOND: i64 = 1_000_000;
pub(super) const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// 4714-11-24 BC, in days since 2000-01-01.
const DAY_MIN: i64 = -2_451_545;
/// The day after the last date, 5874897-12-31.
const DATE_END: i64 = 2_147_483_494 - 2_451_545;
/// The moment after the last timestamp, 294276-12-31 23:59:59.999999.
const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;
/// A time zone is at most this far from UTC, in seconds.
const ZONE_MAX: i32 = 16 * 3600;

pub(super) fn print_date(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let is_plain = printer.style().has_plain_dates();
    match i32::from_le_bytes(exact(value)?) {
        day if !is_plain && (DAY_MIN..DATE_END).contains(&i64::from(day)) => {
            print_day(printer, i64::from(day))
        }
        _ => printer.appended(|out| append_date(value, out)),
    }
}

pub(super) fn print_time(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    clock_in_range(printer, i64::from_le_bytes(exact(value)?))
}

/// Twelve bytes: the time, then seconds west of UTC.
pub(super) fn print_timetz(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let (time, west) = (reader.i64()?, reader.i32()?);
    reader.end()?;
    clock_in_range(printer, time)?;
    if !(-ZONE_MAX..=ZONE_MAX).contains(&west) {
        return Err(Undecodable::damaged(
            "time zone displacement out of range",
            8,
        ));
    }
    printer.appended(|out| {
        append_offset(-west, out);
        Ok(())
    })
}

pub(super) fn print_timestamp(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    if let Some(time) = styled_moment(printer, value) {
        return print_moment(printer, time, false);
    }
    printer.appended(|out| append_timestamp(value, out))
}

pub(super) fn print_timestamptz(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    if let Some(time) = styled_moment(printer, value) {
        return print_moment(printer, time, true);
    }
    printer.appended(|out| append_timestamptz(value, out))
}

/// A moment of the calendar that is not printed in the plain way.
fn styled_moment(printer: &Printer, value: &[u8]) -> Option<i64> {
    let time = i64::from_le_bytes(exact(value).ok()?);
    let in_range = (DAY_MIN * MICROS_PER_DAY..TIMESTAMP_END).contains(&time);
    (in_range && !printer.style().has_plain_dates()).then_some(time)
}

fn clock_in_range(printer: &mut Printer, time: i64) -> Result<(), Undecodable> {
    if !(0..=MICROS_PER_DAY).contains(&time) {
        return Err(Undecodable::damaged("time out of range", 0));
    }
    printer.appended(|out| {
        append_clock(time.unsigned_abs(), out);
        Ok(())
    })
}

/// `SS[.ffffff]` without zeros at the end.
pub(super) fn print_seconds(printer: &mut Printer, micros: u64) -> Result<(), Undecodable> {
    printer.appended(|out| {
        append_seconds(micros, out);
        Ok(())
    })
}

pub(super) fn append_date(value: &[u8], out: &mut Vec<u8>) -> Result<(), Undecodable> {
    match i32::from_le_bytes(exact(value)?) {
        i32::MAX => out.extend_from_slice(b"infinity"),
        i32::MIN => out.extend_from_slice(b"-infinity"),
        day if !(DAY_MIN..DATE_END).contains(&i64::from(day)) => {
            return Err(Undecodable::damaged("date out of range", 0));
        }
        day => {
            let day = civil(i64::from(day));
            append_day(&day, out);
            append_era(&day, out);
        }
    }
    Ok(())
}

pub(super) fn append_timestamp(value: &[u8], out: &mut Vec<u8>) -> Result<(), Undecodable> {
    append_moment(value, b"", out)
}

pub(super) fn append_timestamptz(value: &[u8], out: &mut Vec<u8>) -> Result<(), Undecodable> {
    append_moment(value, b"+00", out)
}

fn append_moment(value: &[u8], zone: &[u8], out: &mut Vec<u8>) -> Result<(), Undecodable> {
    let time = i64::from_le_bytes(exact(value)?);
    if time == i64::MAX || time == i64::MIN {
        out.extend_from_slice(if time > 0 { b"infinity" } else { b"-infinity" });
        return Ok(());
    }
    if !(DAY_MIN * MICROS_PER_DAY..TIMESTAMP_END).contains(&time) {
        return Err(Undecodable::damaged("timestamp out of range", 0));
    }
    let day = civil(time.div_euclid(MICROS_PER_DAY));
    append_day(&day, out);
    out.push(b' ');
    append_clock(time.rem_euclid(MICROS_PER_DAY).unsigned_abs(), out);
    out.extend_from_slice(zone);
    append_era(&day, out);
    Ok(())
}

fn append_day(day: &Civil, out: &mut Vec<u8>) {
    append_year(day, out);
    out.push(b'-');
    digits(day.month.unsigned_abs(), 2, out);
    out.push(b'-');
    digits(day.day.unsigned_abs(), 2, out);
}

pub(super) fn append_clock(micros: u64, out: &mut Vec<u8>) {
    let per_minute = 60 * MICROS_PER_SECOND.unsigned_abs();
    digits(micros / per_minute / 60, 2, out);
    out.push(b':');
    digits(micros / per_minute % 60, 2, out);
    out.push(b':');
    append_seconds(micros % per_minute, out);
}

fn append_seconds(micros: u64, out: &mut Vec<u8>) {
    let per_second = MICROS_PER_SECOND.unsigned_abs();
    let (seconds, mut fraction) = (micros / per_second, micros % per_second);
    digits(seconds, 2, out);
    if fraction == 0 {
        return;
    }
    let mut places = 6;
    while fraction.is_multiple_of(10) {
        fraction /= 10;
        places -= 1;
    }
    out.push(b'.');
    digits(fraction, places, out);
}
