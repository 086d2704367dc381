//! Dates and times since 2000-01-01 in days and microseconds; truth: `date.c`, `timestamp.c`.

use super::printer::Printer;
use super::reader::{Reader, exact};
use super::undecodable::Undecodable;

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// 4714-11-24 BC, in days since 2000-01-01.
const DAY_MIN: i64 = -2_451_545;
/// The day after the last date, 5874897-12-31.
const DATE_END: i64 = 2_147_483_494 - 2_451_545;
/// The moment after the last timestamp, 294276-12-31 23:59:59.999999.
const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;
/// A time zone is at most this far from UTC, in seconds.
const ZONE_MAX: i32 = 16 * 3600;

pub(super) fn print_date(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    match i32::from_le_bytes(exact(value)?) {
        i32::MAX => printer.text("infinity"),
        i32::MIN => printer.text("-infinity"),
        day if !(DAY_MIN..DATE_END).contains(&i64::from(day)) => {
            Err(Undecodable::damaged("date out of range", 0))
        }
        day => {
            let day = civil(i64::from(day));
            print_day(printer, &day)?;
            print_era(printer, &day)
        }
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
    let (sign, size) = (if west <= 0 { '+' } else { '-' }, west.unsigned_abs());
    printer.put(format_args!("{sign}{:02}", size / 3600))?;
    if size % 3600 != 0 {
        printer.put(format_args!(":{:02}", size / 60 % 60))?;
    }
    if size % 60 != 0 {
        printer.put(format_args!(":{:02}", size % 60))?;
    }
    Ok(())
}

pub(super) fn print_timestamp(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    timestamp(printer, value, "")
}

pub(super) fn print_timestamptz(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    timestamp(printer, value, "+00")
}

fn timestamp(printer: &mut Printer, value: &[u8], zone: &str) -> Result<(), Undecodable> {
    match i64::from_le_bytes(exact(value)?) {
        i64::MAX => printer.text("infinity"),
        i64::MIN => printer.text("-infinity"),
        time if !(DAY_MIN * MICROS_PER_DAY..TIMESTAMP_END).contains(&time) => {
            Err(Undecodable::damaged("timestamp out of range", 0))
        }
        time => {
            let day = civil(time.div_euclid(MICROS_PER_DAY));
            print_day(printer, &day)?;
            printer.byte(b' ')?;
            clock(printer, time.rem_euclid(MICROS_PER_DAY))?;
            printer.text(zone)?;
            print_era(printer, &day)
        }
    }
}

/// A day of the Gregorian calendar; year 0 is 1 BC.
struct Civil {
    year: i64,
    month: i64,
    day: i64,
}

/// The calendar day of a day number since 2000-01-01, by counting from March in eras of 400 years.
fn civil(day: i64) -> Civil {
    const ERA_DAYS: i64 = 146_097;
    // 2000-03-01 begins an era.
    let since = day - 60;
    let in_era = since.rem_euclid(ERA_DAYS);
    let year_in_era = (in_era - in_era / 1460 + in_era / 36_524 - in_era / (ERA_DAYS - 1)) / 365;
    let in_year = in_era - (365 * year_in_era + year_in_era / 4 - year_in_era / 100);
    let march_month = (5 * in_year + 2) / 153;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = 2000 + since.div_euclid(ERA_DAYS) * 400 + year_in_era + i64::from(month <= 2);
    Civil {
        year,
        month,
        day: in_year - (153 * march_month + 2) / 5 + 1,
    }
}

fn print_day(printer: &mut Printer, day: &Civil) -> Result<(), Undecodable> {
    let year = if day.year > 0 { day.year } else { 1 - day.year };
    printer.put(format_args!("{year:04}-{:02}-{:02}", day.month, day.day))
}

fn print_era(printer: &mut Printer, day: &Civil) -> Result<(), Undecodable> {
    if day.year > 0 {
        Ok(())
    } else {
        printer.text(" BC")
    }
}

fn clock_in_range(printer: &mut Printer, time: i64) -> Result<(), Undecodable> {
    if !(0..=MICROS_PER_DAY).contains(&time) {
        return Err(Undecodable::damaged("time out of range", 0));
    }
    clock(printer, time)
}

fn clock(printer: &mut Printer, micros: i64) -> Result<(), Undecodable> {
    let seconds = micros / MICROS_PER_SECOND;
    printer.put(format_args!(
        "{:02}:{:02}:",
        seconds / 3600,
        seconds / 60 % 60
    ))?;
    print_seconds(
        printer,
        micros.unsigned_abs() % (60 * MICROS_PER_SECOND.unsigned_abs()),
    )
}

/// `SS[.ffffff]` without zeros at the end.
pub(super) fn print_seconds(printer: &mut Printer, micros: u64) -> Result<(), Undecodable> {
    let per_second = MICROS_PER_SECOND.unsigned_abs();
    let (seconds, fraction) = (micros / per_second, micros % per_second);
    printer.put(format_args!("{seconds:02}"))?;
    if fraction == 0 {
        return Ok(());
    }
    let fraction = format!("{fraction:06}");
    printer.put(format_args!(".{}", fraction.trim_end_matches('0')))
}
