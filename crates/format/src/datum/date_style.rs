//! Dates and times as `DateStyle` and `TimeZone` have them; truth: `EncodeDateOnly`,
//! `EncodeDateTime` in `datetime.c`.

use super::column::digits;
use super::date_time::{MICROS_PER_DAY, MICROS_PER_SECOND, append_clock};
use super::printer::Printer;
use super::style::{DateOrder, DateStyle, Style};
use super::undecodable::Undecodable;
use crate::calendar::{Civil, civil};

/// 2000-01-01 in seconds since 1970.
const EPOCH: i64 = 946_684_800;
/// `MAXTZLEN`.
const ABBREVIATION_MAX: usize = 10;
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
/// The first day of 2000 was a Saturday.
const WEEKDAYS: [&str; 7] = ["Sat", "Sun", "Mon", "Tue", "Wed", "Thu", "Fri"];

/// A day since 2000-01-01.
pub(super) fn print_day(printer: &mut Printer, day: i64) -> Result<(), Undecodable> {
    let style = (printer.style().dates, printer.style().order);
    let day = civil(day);
    printer.appended(|out| {
        append_day(style, &day, out);
        append_era(&day, out);
        Ok(())
    })
}

/// Microseconds since 2000-01-01, with the zone or without.
pub(super) fn print_moment(
    printer: &mut Printer,
    time: i64,
    has_zone: bool,
) -> Result<(), Undecodable> {
    let style = printer.style();
    let (dates, order) = (style.dates, style.order);
    let zone = has_zone.then(|| zone_at(style, time));
    let east = zone.as_ref().map_or(0, |(east, _)| *east);
    let local = time.saturating_add(i64::from(east).saturating_mul(MICROS_PER_SECOND));
    let (number, micros) = (
        local.div_euclid(MICROS_PER_DAY),
        local.rem_euclid(MICROS_PER_DAY).unsigned_abs(),
    );
    let day = civil(number);
    printer.appended(|out| {
        match dates {
            DateStyle::Postgres => append_long(order, number, &day, micros, out),
            _ => {
                append_day((dates, order), &day, out);
                out.push(b' ');
                append_clock(micros, out);
            }
        }
        match zone {
            None => {}
            Some((east, _)) if dates == DateStyle::Iso => append_offset(east, out),
            Some((_, name)) => {
                out.push(b' ');
                out.extend(name.bytes().take(ABBREVIATION_MAX));
            }
        }
        append_era(&day, out);
        Ok(())
    })
}

fn zone_at(style: &Style, time: i64) -> (i32, String) {
    let (east, name) = style
        .zone
        .at(time.div_euclid(MICROS_PER_SECOND).saturating_add(EPOCH));
    (east, name.to_owned())
}

/// `Fri Feb 16 20:38:40 2001`
fn append_long(order: DateOrder, number: i64, day: &Civil, micros: u64, out: &mut Vec<u8>) {
    let word = |words: &[&'static str], at: i64| {
        let word = usize::try_from(at)
            .ok()
            .and_then(|at| words.get(at).copied());
        word.unwrap_or("?").as_bytes()
    };
    out.extend_from_slice(word(&WEEKDAYS, number.rem_euclid(7)));
    out.push(b' ');
    let month = word(&MONTHS, day.month - 1);
    match order {
        DateOrder::DayFirst => {
            digits(day.day.unsigned_abs(), 2, out);
            out.push(b' ');
            out.extend_from_slice(month);
        }
        DateOrder::MonthFirst => {
            out.extend_from_slice(month);
            out.push(b' ');
            digits(day.day.unsigned_abs(), 2, out);
        }
    }
    out.push(b' ');
    append_clock(micros, out);
    out.push(b' ');
    append_year(day, out);
}

fn append_day((dates, order): (DateStyle, DateOrder), day: &Civil, out: &mut Vec<u8>) {
    let (month, of_month) = (day.month.unsigned_abs(), day.day.unsigned_abs());
    let sign = match dates {
        DateStyle::Iso => {
            append_year(day, out);
            for part in [month, of_month] {
                out.push(b'-');
                digits(part, 2, out);
            }
            return;
        }
        DateStyle::Sql => b'/',
        DateStyle::Postgres => b'-',
        DateStyle::German => b'.',
    };
    let day_first = order == DateOrder::DayFirst || dates == DateStyle::German;
    let parts = if day_first {
        [of_month, month]
    } else {
        [month, of_month]
    };
    for part in parts {
        digits(part, 2, out);
        out.push(sign);
    }
    append_year(day, out);
}

pub(super) fn append_year(day: &Civil, out: &mut Vec<u8>) {
    let year = if day.year > 0 { day.year } else { 1 - day.year };
    digits(year.unsigned_abs(), 4, out);
}

pub(super) fn append_era(day: &Civil, out: &mut Vec<u8>) {
    if day.year <= 0 {
        out.extend_from_slice(b" BC");
    }
}

/// `+05`, `+05:30`, `-00:01:15`
pub(super) fn append_offset(east: i32, out: &mut Vec<u8>) {
    let size = u64::from(east.unsigned_abs());
    out.push(if east >= 0 { b'+' } else { b'-' });
    digits(size / 3600, 2, out);
    if size % 3600 != 0 {
        out.push(b':');
        digits(size / 60 % 60, 2, out);
    }
    if size % 60 != 0 {
        out.push(b':');
        digits(size % 60, 2, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::printer::Printer;
    use super::super::zone::Zone;
    use super::super::{Limits, builtin};
    use super::*;
    use std::sync::Arc;

    fn shown(dates: DateStyle, order: DateOrder, oid: u32, value: &[u8]) -> String {
        let style = Style {
            dates,
            order,
            zone: Zone::of_rule("CET-1CEST,M3.5.0,M10.5.0/3").expect("a rule"),
            ..Style::PLAIN
        };
        let mut printer = Printer::styled(Limits::default(), Arc::new(style));
        let ty = builtin(oid).expect("built in");
        printer.value(&ty, value).expect("printed");
        String::from_utf8(printer.into_bytes()).expect("text")
    }

    #[test]
    fn each_style_has_its_order_and_signs() {
        use DateOrder::{DayFirst, MonthFirst};
        let moment = 35_671_120_500_000_i64.to_le_bytes();
        let both = |dates, order| shown(dates, order, 1184, &moment);
        assert_eq!(both(DateStyle::Iso, DayFirst), "2001-02-16 21:38:40.5+01");
        assert_eq!(both(DateStyle::Sql, DayFirst), "16/02/2001 21:38:40.5 CET");
        assert_eq!(
            both(DateStyle::Sql, MonthFirst),
            "02/16/2001 21:38:40.5 CET"
        );
        assert_eq!(
            both(DateStyle::German, MonthFirst),
            "16.02.2001 21:38:40.5 CET"
        );
        assert_eq!(
            both(DateStyle::Postgres, DayFirst),
            "Fri 16 Feb 21:38:40.5 2001 CET"
        );
        assert_eq!(
            both(DateStyle::Postgres, MonthFirst),
            "Fri Feb 16 21:38:40.5 2001 CET"
        );
        let long_ago = (-730_120_i32).to_le_bytes();
        let day = |dates| shown(dates, MonthFirst, 1082, &long_ago);
        assert_eq!(day(DateStyle::Postgres), "12-31-0001 BC");
        assert_eq!(day(DateStyle::German), "31.12.0001 BC");
    }
}
