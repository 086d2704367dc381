//! Differences as a person says them: `1.7 times faster [1.5, 1.9]`, `3.2 % smaller`, `none instead
//! of 1,080,000 bytes`.

use pgclinic_model::document::{Better, MetricSummary};

use crate::statistics::Interval;

/// One side is next to nothing beyond this; a ratio then says nothing either.
const TIMES_MAX: f64 = 10_000.0;

/// An interval whose ends are further apart is wider than anything that could be decided by it.
const OPEN_MAX: f64 = 100.0;

/// Whether a ratio of two sides is worth saying.
pub fn is_ratio(times: f64) -> bool {
    (1.0 / TIMES_MAX..=TIMES_MAX).contains(&times)
}

/// Smaller differences are said in percent.
const TIMES_FROM: f64 = 1.2;

/// The word for better and the word for worse, by unit and direction.
pub fn comparatives(metric: &MetricSummary) -> [&'static str; 2] {
    const TIMES: [&str; 6] = ["s", "ms", "us", "µs", "min", "h"];
    const SIZES: [&str; 9] = ["bytes", "B", "kB", "KiB", "MB", "MiB", "GB", "GiB", "pages"];
    let unit = metric.unit.as_str();
    let pair = if TIMES.contains(&unit) || unit.ends_with("/s") || unit == "tps" {
        return ["faster", "slower"];
    } else if SIZES.contains(&unit) {
        ["smaller", "larger"]
    } else if unit == "%" || unit.contains('/') {
        ["lower", "higher"]
    } else {
        ["fewer", "more"]
    };
    match metric.better {
        Better::Lower => pair,
        Better::Higher => [pair[1], pair[0]],
    }
}

/// Two figures that matter, thousands cut by commas: `1.7`, `12`, `4,500`.
pub fn digits(number: f64) -> String {
    digits_and(number, 0)
}

/// The same with so many figures more.
fn digits_and(number: f64, more: usize) -> String {
    let size = number.abs();
    let decimals = match size {
        _ if size == 0.0 || size >= 9.95 => 0,
        _ if size >= 0.95 => 1,
        _ => 2,
    };
    with_commas(&format!("{number:.0$}", decimals + more))
}

/// A measured value with four figures: `0.01234`, `5.777`, `21,000`.
pub fn figure(number: f64) -> String {
    let size = number.abs();
    let decimals = match size {
        _ if size == 0.0 || size >= 1000.0 || number.fract() == 0.0 => 0,
        _ if size >= 100.0 => 1,
        _ if size >= 10.0 => 2,
        _ if size >= 1.0 => 3,
        _ => 5,
    };
    let text = format!("{number:.decimals$}");
    if text.contains('.') {
        with_commas(text.trim_end_matches('0').trim_end_matches('.'))
    } else {
        with_commas(&text)
    }
}

/// A share in percent: `5`, `2.5`.
pub fn percentage(share: f64) -> String {
    figure((share * 1e4).round() / 1e2)
}

fn with_commas(number: &str) -> String {
    let (sign, rest) = match number.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", number),
    };
    let (whole, fraction) = rest.split_once('.').map_or((rest, ""), |(w, f)| (w, f));
    let mut text = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

/// A difference that is there: `1.7 times faster [1.5, 1.9]`. `better` is how many times better,
/// below 1 for worse.
pub fn difference(better: f64, interval: Option<Interval>, words: [&str; 2]) -> String {
    let (ratio, word, interval) = if better >= 1.0 {
        (better, words[0], interval)
    } else {
        (1.0 / better, words[1], interval.map(|i| i.map(f64::recip)))
    };
    let in_times = ratio >= TIMES_FROM;
    let number = |ratio: f64, more: usize| {
        if ratio > TIMES_MAX {
            return "over 10,000".to_owned();
        }
        let number = if in_times {
            ratio
        } else {
            (ratio - 1.0) * 100.0
        };
        digits_and(number, more)
    };
    let unit = if in_times { "" } else { " %" };
    let noun = if in_times { " times" } else { " %" };
    let Some(Interval { low, high }) = interval else {
        return format!("{}{noun} {word}", number(ratio, 0));
    };
    // A narrow interval asks for more digits.
    let more = usize::from(number(low, 0) == number(high, 0));
    let [ratio, low, high] = [ratio, low, high].map(|end| number(end, more));
    format!("{ratio}{noun} {word} [{low}{unit}, {high}{unit}]")
}

/// Whether an interval of ratios says more than that nothing is known.
pub fn is_telling(interval: Interval) -> bool {
    is_ratio(interval.low) && is_ratio(interval.high) && interval.high / interval.low <= OPEN_MAX
}

/// The values of a side: `1.2 to 3.4 s`, `7 bytes`.
pub fn spread(values: &[f64], unit: &str) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if figure(low) == figure(high) {
        value(low, unit)
    } else {
        format!("{} to {}", figure(low), value(high, unit))
    }
}

/// What is still open: `between 3.1 % slower and 1.4 times faster`.
pub fn range(interval: Interval, words: [&str; 2]) -> String {
    let end = |better: f64| {
        if (better - 1.0).abs() < 0.000_05 {
            "no difference".to_owned()
        } else {
            difference(better, None, words)
        }
    };
    format!("between {} and {}", end(interval.low), end(interval.high))
}

/// A value with its unit.
pub fn value(number: f64, unit: &str) -> String {
    let figure = figure(number);
    match unit {
        "" => figure,
        "1/s" => format!("{figure} a second"),
        unit => format!("{figure} {unit}"),
    }
}

/// `about 14 more minutes`, `about 3 more hours`.
pub fn more_time(minutes: f64) -> String {
    let (count, noun) = match minutes {
        _ if minutes < 1.5 => (1.0, "minute"),
        _ if minutes < 120.0 => (minutes.round(), "minute"),
        _ if minutes < 60.0 * 48.0 => ((minutes / 60.0).round(), "hour"),
        _ => ((minutes / 1440.0).round(), "day"),
    };
    let ending = if count == 1.0 { "" } else { "s" };
    format!("about {count:.0} more {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(unit: &str, better: Better) -> MetricSummary {
        MetricSummary {
            name: "m".into(),
            words: String::new(),
            unit: unit.into(),
            better,
            timing: true,
        }
    }

    #[test]
    fn large_differences_are_times_and_small_ones_percent() {
        let words = comparatives(&metric("s", Better::Lower));
        let interval = Some(Interval::between(1.5, 1.9));
        assert_eq!(
            difference(1.7, interval, words),
            "1.7 times faster [1.5, 1.9]"
        );
        let interval = Some(Interval::between(0.95, 0.99));
        assert_eq!(
            difference(0.97, interval, words),
            "3.1 % slower [1.0 %, 5.3 %]"
        );
        assert_eq!(difference(4512.0, None, words), "4,512 times faster");
    }

    #[test]
    fn an_interval_that_holds_everything_tells_nothing() {
        assert!(is_telling(Interval::between(0.8, 20.0)));
        assert!(!is_telling(Interval::between(1e-6, 1e6)));
        assert!(!is_telling(Interval::between(0.05, 20.0)));
        assert_eq!(spread(&[2.0, 1.25, 3.5], "s"), "1.25 to 3.5 s");
        assert_eq!(spread(&[7.0, 7.0], "bytes"), "7 bytes");
    }

    #[test]
    fn words_fit_the_unit() {
        let of = |unit, better| comparatives(&metric(unit, better))[0];
        assert_eq!(of("tps", Better::Higher), "faster");
        assert_eq!(of("bytes", Better::Lower), "smaller");
        assert_eq!(of("%", Better::Higher), "higher");
        assert_eq!(of("", Better::Lower), "fewer");
    }

    #[test]
    fn values_keep_the_figures_that_matter() {
        let said = [0.012_34, 5.777_2, 20_000.0, 1504.0, 0.0, 12.3456].map(figure);
        assert_eq!(said, ["0.01234", "5.777", "20,000", "1,504", "0", "12.35"]);
        assert_eq!(more_time(0.2), "about 1 more minute");
        assert_eq!(more_time(200.0), "about 3 more hours");
    }
}
