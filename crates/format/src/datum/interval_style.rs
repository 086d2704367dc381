//! Intervals as `IntervalStyle` has them, but for its default; truth: `EncodeInterval` in
//! `datetime.c`.

use super::date_time::{MICROS_PER_SECOND, print_seconds};
use super::printer::Printer;
use super::undecodable::Undecodable;

/// The parts of an interval; those of the time have one sign.
pub(super) struct Fields {
    years: i64,
    months: i64,
    days: i64,
    hours: i64,
    minutes: i64,
    /// Microseconds below a minute.
    micros: i64,
}

impl Fields {
    pub(super) fn of(time: i64, days: i32, months: i32) -> Self {
        let minutes = time / (60 * MICROS_PER_SECOND);
        Fields {
            years: i64::from(months / 12),
            months: i64::from(months % 12),
            days: i64::from(days),
            hours: minutes / 60,
            minutes: minutes % 60,
            micros: time % (60 * MICROS_PER_SECOND),
        }
    }

    fn all(&self) -> [i64; 6] {
        let Fields {
            years,
            months,
            days,
            hours,
            minutes,
            micros,
        } = *self;
        [years, months, days, hours, minutes, micros]
    }

    fn has_time(&self) -> bool {
        self.all().iter().skip(3).any(|part| *part != 0)
    }
}

/// `1-2`, `3 4:05:06`, or `+1-2 -3 +4:05:06` where the standard has no way to say it.
pub(super) fn print_standard(printer: &mut Printer, fields: &Fields) -> Result<(), Undecodable> {
    let all = fields.all();
    let has_negative = all.iter().any(|part| *part < 0);
    let has_positive = all.iter().any(|part| *part > 0);
    let has_months = fields.years != 0 || fields.months != 0;
    let has_days = fields.days != 0 || fields.has_time();
    let (years, months) = (fields.years.abs(), fields.months.abs());
    let (days, hours, minutes) = (fields.days.abs(), fields.hours.abs(), fields.minutes.abs());
    if !has_negative && !has_positive {
        return printer.text("0");
    }
    let sign = |is_negative: bool| if is_negative { '-' } else { '+' };
    if (has_negative && has_positive) || (has_months && has_days) {
        let of_months = sign(fields.years < 0 || fields.months < 0);
        let of_days = sign(fields.days < 0);
        let of_time = sign(all.iter().skip(3).any(|part| *part < 0));
        printer.put(format_args!(
            "{of_months}{years}-{months} {of_days}{days} {of_time}{hours}:{minutes:02}:"
        ))?;
        return print_seconds(printer, fields.micros.unsigned_abs());
    }
    printer.text(if has_negative { "-" } else { "" })?;
    if has_months {
        return printer.put(format_args!("{years}-{months}"));
    }
    if fields.days != 0 {
        printer.put(format_args!("{days} "))?;
    }
    printer.put(format_args!("{hours}:{minutes:02}:"))?;
    print_seconds(printer, fields.micros.unsigned_abs())
}

/// `P1Y2M3DT4H5M6.7S`
pub(super) fn print_iso(printer: &mut Printer, fields: &Fields) -> Result<(), Undecodable> {
    if fields.all() == [0; 6] {
        return printer.text("PT0S");
    }
    printer.byte(b'P')?;
    let part = |printer: &mut Printer, count: i64, unit: char| match count {
        0 => Ok(()),
        _ => printer.put(format_args!("{count}{unit}")),
    };
    part(printer, fields.years, 'Y')?;
    part(printer, fields.months, 'M')?;
    part(printer, fields.days, 'D')?;
    if fields.has_time() {
        printer.byte(b'T')?;
    }
    part(printer, fields.hours, 'H')?;
    part(printer, fields.minutes, 'M')?;
    if fields.micros != 0 {
        printer.text(if fields.micros < 0 { "-" } else { "" })?;
        short_seconds(printer, fields.micros)?;
        printer.byte(b'S')?;
    }
    Ok(())
}

/// `@ 1 year 2 mons -3 days 4 hours 5 mins 6.7 secs ago`
pub(super) fn print_verbose(printer: &mut Printer, fields: &Fields) -> Result<(), Undecodable> {
    printer.byte(b'@')?;
    // The first part that is there says whether all count backwards.
    let first = fields.all().into_iter().find(|part| *part != 0);
    let is_before = first.is_some_and(|first| first < 0);
    let units = ["year", "mon", "day", "hour", "min"];
    for (count, unit) in fields.all().into_iter().zip(units) {
        let count = if is_before { -count } else { count };
        let plural = if count == 1 { "" } else { "s" };
        if count != 0 {
            printer.put(format_args!(" {count} {unit}{plural}"))?;
        }
    }
    if fields.micros != 0 {
        let is_against = (fields.micros < 0) != is_before;
        printer.text(if is_against { " -" } else { " " })?;
        short_seconds(printer, fields.micros)?;
        let is_one = fields.micros.abs() == MICROS_PER_SECOND;
        printer.text(if is_one { " sec" } else { " secs" })?;
    }
    printer.text(match first {
        None => " 0",
        Some(_) if is_before => " ago",
        Some(_) => "",
    })
}

/// Seconds without a zero in front.
fn short_seconds(printer: &mut Printer, micros: i64) -> Result<(), Undecodable> {
    let micros = micros.unsigned_abs();
    let per_second = MICROS_PER_SECOND.unsigned_abs();
    printer.put(format_args!("{}", micros / per_second))?;
    match micros % per_second {
        0 => Ok(()),
        fraction => {
            let digits = format!("{fraction:06}");
            printer.put(format_args!(".{}", digits.trim_end_matches('0')))
        }
    }
}
