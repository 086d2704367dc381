//! Dates and times since 2000-01-01 in days and microseconds; truth: `date.c`, `timestamp.c`.

use super::column::{digits, eight_digits};
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
    let micros = time.rem_euclid(MICROS_PER_DAY).unsigned_abs();
    match short_moment(&day, micros / MICROS_PER_SECOND.unsigned_abs()) {
        Some(text) => {
            out.extend_from_slice(&text);
            append_fraction(micros % MICROS_PER_SECOND.unsigned_abs(), out);
        }
        None => {
            append_day(&day, out);
            out.push(b' ');
            append_clock(micros, out);
        }
    }
    out.extend_from_slice(zone);
    append_era(&day, out);
    Ok(())
}

/// Day and second of the day, made at once; nothing for a year that has not four digits.
#[inline]
fn short_moment(day: &Civil, second: u64) -> Option<[u8; 19]> {
    let year = u32::try_from(day.year).ok()?;
    (1..10_000).contains(&year).then_some(())?;
    let (month, day) = (u32::try_from(day.month).ok()?, u32::try_from(day.day).ok()?);
    let second = u32::try_from(second).ok()?;
    let [a, b, c, d, e, f, g, h] = eight_digits(year * 10_000 + month * 100 + day);
    let clock = second / 3600 * 10_000 + second / 60 % 60 * 100 + second % 60;
    let [_, _, i, j, k, l, m, n] = eight_digits(clock);
    Some([
        a, b, c, d, b'-', e, f, b'-', g, h, b' ', i, j, b':', k, l, b':', m, n,
    ])
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
    digits(micros / per_second, 2, out);
    append_fraction(micros % per_second, out);
}

/// A point and millionths of a second without zeros at the end; nothing of none.
fn append_fraction(mut fraction: u64, out: &mut Vec<u8>) {
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
