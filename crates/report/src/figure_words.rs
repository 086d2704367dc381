//! Figures of a measurement in words.

use pgclinic_format::calendar::{Civil, DAYS_FROM_1970_TO_2000, civil};
use pgclinic_model::document::{Figure, MeasuredRelation, Spread};
use pgclinic_model::{FigureKind, Unit};

use crate::measured::figure as short;
use crate::words::{bytes, count};

const DAY_S: i64 = 86_400;

/// The value, with its unit.
pub(crate) fn value(kind: &FigureKind, figure: &Figure) -> String {
    match (figure, kind.unit) {
        (Figure::Count(number), Unit::Bytes) if *number >= 1024 => {
            format!("{} ({})", count(*number), bytes(*number))
        }
        (Figure::Count(number), Unit::Time) => {
            time(i64::try_from(number / 1000).unwrap_or(i64::MAX))
        }
        (Figure::Count(number), _) => count(*number),
        (Figure::Real(number), Unit::Percent) => format!("{number:.2} %"),
        (Figure::Real(number), _) => trimmed(*number),
        (Figure::Spread(own), Unit::Day) if own.minimum == own.maximum => {
            date(i64::try_from(own.minimum).unwrap_or(i64::MAX))
        }
        (Figure::Spread(own), Unit::Day) => {
            let day = |day: u64| date(i64::try_from(day).unwrap_or(i64::MAX));
            format!("{} to {}", day(own.minimum), day(own.maximum))
        }
        (Figure::Spread(own), _) => spread(own),
        (Figure::Text(text), _) => text.clone(),
        (Figure::Points(points), _) => {
            format!(
                "{} points, shown by --format html",
                count(crate::words::count_of(points.len()))
            )
        }
    }
}

/// The interval of a figure of a sample: `, 95 %: 3 to 5`.
pub(crate) fn interval(own: &MeasuredRelation, section: &str, kind: &FigureKind) -> String {
    let interval = own
        .intervals
        .get(section)
        .and_then(|own| own.get(kind.name));
    match (interval, kind.unit) {
        (Some([low, high]), Unit::Percent) => format!(" [{low:.2}, {high:.2}]"),
        (Some([low, high]), _) => format!(" [{}, {}]", short(low.round()), short(high.round())),
        (None, _) => String::new(),
    }
}

fn spread(own: &Spread) -> String {
    if own.minimum == own.maximum {
        return count(own.minimum);
    }
    format!(
        "{} to {}, mean {:.2}, mostly {}",
        count(own.minimum),
        count(own.maximum),
        own.mean,
        count(own.mode)
    )
}

/// Six digits behind the point at most.
fn trimmed(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `2026-11-21 20:58:00 UTC`, from seconds since 1970.
pub(crate) fn time(seconds: i64) -> String {
    let second = seconds.rem_euclid(DAY_S);
    format!(
        "{} {:02}:{:02}:{:02} UTC",
        date(seconds.div_euclid(DAY_S)),
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// `2026-11-21`, from days since 1970, in the Gregorian calendar.
pub(crate) fn date(days: i64) -> String {
    let Civil { year, month, day } = civil(days.saturating_sub(DAYS_FROM_1970_TO_2000));
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        assert_eq!(
            [0, 59, 11_016, 19_782, 20_778].map(date),
            [
                "1970-01-01",
                "1970-03-01",
                "2000-02-29",
                "2024-02-29",
                "2026-11-21"
            ]
        );
        assert_eq!(time(1_645_557_742), "2022-02-22 19:22:22 UTC");
    }
}
