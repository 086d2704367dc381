//! The rule of a time zone for all years, `CET-1CEST,M3.5.0,M10.5.0/3`; truth: `tzparse` in
//! `src/timezone/localtime.c`.

use std::borrow::Cow;

use super::zone::LocalTimeType;
use crate::calendar::{DAYS_FROM_1970_TO_2000, civil};

const DAY: i64 = 86_400;
const HOUR: i64 = 3600;
/// When summer time is where a rule does not tell: as in the United States since 2007.
const USUAL: &str = ",M3.2.0,M11.1.0";
/// Hours in a week, the most that a time of day may say.
const HOURS_MAX: i64 = 167;
/// No calendar of the server goes so far, in seconds around 1970.
const MOMENT_MAX: i64 = 1 << 45;

/// A day of every year.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Day {
    /// From 0, leap days counted.
    OfYear(i64),
    /// From 1, leap days not counted.
    Julian(i64),
    /// The week from 1 (5 is the last) in which the weekday, from 0 for Sunday, comes in the month.
    Weekday { month: i64, week: i64, weekday: i64 },
}

/// A day and a time of day in seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Change {
    day: Day,
    time: i64,
}

/// When standard and summer time hold in any year, as a POSIX rule says it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rule {
    pub(super) standard: LocalTimeType,
    summer: Option<(LocalTimeType, Change, Change)>,
}

impl Rule {
    pub(super) fn parse(text: &str) -> Option<Rule> {
        let mut reader = Reader { rest: text };
        let standard = LocalTimeType {
            abbreviation: Cow::Owned(reader.name()?),
            east: i32::try_from(-reader.time()?).ok()?,
            is_summer: false,
        };
        if reader.rest.is_empty() {
            return Some(Rule {
                standard,
                summer: None,
            });
        }
        let name = reader.name()?;
        let east = if reader.rest.starts_with([',', ';']) || reader.rest.is_empty() {
            standard.east.checked_add(3600)?
        } else {
            i32::try_from(-reader.time()?).ok()?
        };
        if reader.rest.is_empty() {
            reader.rest = USUAL;
        }
        let (begin, end) = (reader.change()?, reader.change()?);
        let summer = LocalTimeType {
            abbreviation: Cow::Owned(name),
            east,
            is_summer: true,
        };
        reader.rest.is_empty().then_some(Rule {
            standard,
            summer: Some((summer, begin, end)),
        })
    }

    /// What holds at a moment in seconds since 1970.
    pub(super) fn at(&self, moment: i64) -> &LocalTimeType {
        let Some((summer, begin, end)) = &self.summer else {
            return &self.standard;
        };
        let moment = moment.clamp(-MOMENT_MAX, MOMENT_MAX);
        let year = year_of(moment + i64::from(self.standard.east));
        // The change before the moment may be one of the year before.
        let changes = (year - 1..=year + 1).flat_map(|year| {
            let begin = begin.moment(year) - i64::from(self.standard.east);
            let end = end.moment(year) - i64::from(summer.east);
            [(begin, summer), (end, &self.standard)]
        });
        let passed = changes.filter(|(from, _)| *from <= moment);
        let last = passed.max_by_key(|(from, kind)| (*from, kind.is_summer));
        last.map_or(&self.standard, |(_, kind)| kind)
    }
}

impl Change {
    /// In seconds since 1970 by the clocks of the place.
    fn moment(&self, year: i64) -> i64 {
        let first = days_before(year);
        let day = match self.day {
            Day::OfYear(day) => day,
            Day::Julian(day) => day - 1 + i64::from(is_leap(year) && day >= 60),
            Day::Weekday {
                month,
                week,
                weekday,
            } => {
                let before = days_before_month(year, month);
                let length = days_before_month(year, month + 1) - before;
                // 1970-01-01 was a Thursday.
                let of_first = (first + before + 4).rem_euclid(7);
                let day = (weekday - of_first).rem_euclid(7) + 7 * (week - 1);
                before + if day >= length { day - 7 } else { day }
            }
        };
        (first + day) * DAY + self.time
    }
}

fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// Days from 1970 to the year.
fn days_before(year: i64) -> i64 {
    let before = year - 1;
    let leaps = before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400);
    (year - 1970) * 365 + leaps - 477
}

/// Days of the year before a month from 1; 13 is the year's end.
fn days_before_month(year: i64, month: i64) -> i64 {
    const BEFORE: [i64; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];
    let at = usize::try_from(month - 1).unwrap_or(0);
    let before = BEFORE.get(at).copied().unwrap_or(0);
    before + i64::from(month > 2 && is_leap(year))
}

fn year_of(moment: i64) -> i64 {
    civil(moment.div_euclid(DAY) - DAYS_FROM_1970_TO_2000).year
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    /// Letters, or anything between angle brackets.
    fn name(&mut self) -> Option<String> {
        let (name, rest) = match self.rest.strip_prefix('<') {
            Some(quoted) => quoted.split_once('>')?,
            None => {
                let end = |c: char| !c.is_ascii_alphabetic();
                let end = self.rest.find(end).unwrap_or(self.rest.len());
                self.rest.split_at_checked(end)?
            }
        };
        self.rest = rest;
        (!name.is_empty()).then(|| name.to_owned())
    }

    fn take(&mut self, sign: char) -> bool {
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn number(&mut self, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit());
        let (digits, rest) = self.rest.split_at_checked(end.unwrap_or(self.rest.len()))?;
        self.rest = rest;
        digits.parse().ok().filter(|number| range.contains(number))
    }

    /// `[+-]hh[:mm[:ss]]` in seconds.
    fn time(&mut self) -> Option<i64> {
        let is_negative = self.take('-');
        let _plus = !is_negative && self.take('+');
        let mut time = self.number(0..=HOURS_MAX)? * HOUR;
        for unit in [60, 1] {
            if !self.take(':') {
                break;
            }
            time += self.number(0..=60)? * unit;
        }
        Some(if is_negative { -time } else { time })
    }

    fn change(&mut self) -> Option<Change> {
        if !self.take(',') && !self.take(';') {
            return None;
        }
        let day = if self.take('J') {
            Day::Julian(self.number(1..=365)?)
        } else if self.take('M') {
            let month = self.number(1..=12)?;
            let week = self.take('.').then(|| self.number(1..=5))??;
            let weekday = self.take('.').then(|| self.number(0..=6))??;
            Day::Weekday {
                month,
                week,
                weekday,
            }
        } else {
            Day::OfYear(self.number(0..=365)?)
        };
        let time = if self.take('/') {
            self.time()?
        } else {
            2 * HOUR
        };
        Some(Change { day, time })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(rule: &str, moment: i64) -> (i32, String) {
        let rule = Rule::parse(rule).expect("a rule");
        let kind = rule.at(moment);
        (kind.east, kind.abbreviation.to_string())
    }

    #[test]
    fn summer_time_is_between_its_changes() {
        let rule = "CET-1CEST,M3.5.0,M10.5.0/3";
        // 2024-03-31 01:00:00 and 2024-10-27 01:00:00 UTC.
        assert_eq!(at(rule, 1_711_846_799), (3600, "CET".into()));
        assert_eq!(at(rule, 1_711_846_800), (7200, "CEST".into()));
        assert_eq!(at(rule, 1_729_990_799), (7200, "CEST".into()));
        assert_eq!(at(rule, 1_729_990_800), (3600, "CET".into()));
        // South of the equator it lasts over the new year: 2024-01-01 and 2024-07-01.
        let south = "AEST-10AEDT,M10.1.0,M4.1.0/3";
        assert_eq!(at(south, 1_704_067_200), (39_600, "AEDT".into()));
        assert_eq!(at(south, 1_719_792_000), (36_000, "AEST".into()));
    }

    #[test]
    fn names_and_offsets_of_every_shape() {
        assert_eq!(at("<+0530>-5:30", 0), (19_800, "+0530".into()));
        assert_eq!(at("QQQ3:04:05", 0), (-11_045, "QQQ".into()));
        assert_eq!(at("EST5EDT", 1_720_000_000), (-14_400, "EDT".into()));
        assert_eq!(at("A1B,J60,299/-1", 1_720_000_000), (0, "B".into()));
        for wrong in ["", "5", "EST", "EST5EDT,", "EST5EDT,M13.1.0,M1.1.0", "<a5"] {
            assert_eq!(Rule::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn years_are_found_at_any_distance() {
        for year in [-4713, -1, 0, 1, 1582, 1969, 1970, 2000, 2024, 294_276] {
            let first = days_before(year) * DAY;
            assert_eq!((year_of(first - 1), year_of(first)), (year - 1, year));
        }
    }
}
