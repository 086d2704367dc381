//! Figures of live signs as a person reads them.

use pgclinic_model::document::{SignKind, SignState, SignUnit, WatchDocument, WatchedSign};
use pgclinic_model::whole;

use crate::figure_words::time;
use crate::words::{bytes, count, count_of, plural, seconds};

const DAY_S: f64 = 86_400.0;
/// From 1970 to somewhat before the year 10000.
const SECONDS_MAX: f64 = 2_900_000.0 * DAY_S;

/// The figure of the whole server; a dash where there is none.
pub(crate) fn headline(sign: &WatchedSign) -> String {
    if let Some(word) = word_of(sign) {
        return word.to_owned();
    }
    match sign.headline {
        Some(value) => figure(value, sign.unit, sign.kind),
        None => "-".to_owned(),
    }
}

/// `worker` of `io-method`: of a sign that is named after its only label, the label is the figure.
fn word_of(sign: &WatchedSign) -> Option<&str> {
    let [only] = sign.values.as_slice() else {
        return None;
    };
    let mut labels = only.labels.iter();
    let (Some((name, word)), None) = (labels.next(), labels.next()) else {
        return None;
    };
    let is_word = only.value == 1.0 && sign.name.ends_with(&format!("-{name}"));
    is_word.then_some(word.as_str())
}

/// One figure: a second, where it only grows.
pub(crate) fn figure(value: f64, unit: SignUnit, kind: SignKind) -> String {
    let bare = match (unit, kind) {
        (SignUnit::Count, _) => number(value),
        (SignUnit::Bytes, _) => bytes(whole(value)),
        (SignUnit::Seconds, SignKind::Gauge) => duration(value),
        (SignUnit::Seconds, SignKind::Counter) => format!("{value:.3} s"),
        (SignUnit::Moment, _) => moment(value),
        (SignUnit::Ratio, _) => format!("{:.2} %", value * 100.0),
    };
    match kind {
        SignKind::Counter => format!("{bare}/s"),
        SignKind::Gauge => bare,
    }
}

/// Whole numbers as such, others with as much as counts of them.
fn number(value: f64) -> String {
    if value.fract() == 0.0 || value >= 100.0 {
        count(whole(value))
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

fn duration(value: f64) -> String {
    if value.abs() < 7200.0 {
        let words = seconds(value.abs());
        let is_zero = !words.contains(|letter| matches!(letter, '1'..='9'));
        let sign = if value < 0.0 && !is_zero { "-" } else { "" };
        return format!("{sign}{words}");
    }
    if value.abs() < 2.0 * DAY_S {
        return format!("{:.1} h", value / 3600.0);
    }
    format!("{:.1} days", value / DAY_S)
}

/// `2026-11-27 10:12:00 UTC`, as long as the year has four digits.
fn moment(value: f64) -> String {
    if value > SECONDS_MAX {
        return "after the year 9999".to_owned();
    }
    time(i64::try_from(whole(value)).unwrap_or(0))
}

/// The word of a state.
pub(crate) fn state(state: SignState) -> &'static str {
    match state {
        SignState::Ok => "OK",
        SignState::NotAvailable => "NOT AVAILABLE",
        SignState::Unknown => "UNKNOWN",
        SignState::Warning => "WARNING",
        SignState::Critical => "CRITICAL",
    }
}

/// `2 servers, 71 signs read, 9 not available, 1 critical, 2 warnings`.
pub(crate) fn extent(document: &WatchDocument) -> String {
    let signs: usize = document.targets.iter().map(|own| own.signs.len()).sum();
    let missing = document.count(SignState::NotAvailable);
    let unknown = document.count(SignState::Unknown);
    let read = plural(count_of(signs - missing - unknown), "sign");
    let servers = plural(count_of(document.targets.len()), "server");
    let mut parts = vec![servers, format!("{read} read")];
    let critical = document.count(SignState::Critical);
    let warnings = document.count(SignState::Warning);
    let unreachable = document.unreachable();
    parts.extend((unreachable > 0).then(|| format!("{} unreachable", count_of(unreachable))));
    parts.extend((critical > 0).then(|| format!("{} critical", count_of(critical))));
    parts.extend((warnings > 0).then(|| plural(count_of(warnings), "warning")));
    parts.extend((unknown > 0).then(|| format!("{} unknown", count_of(unknown))));
    parts.extend((missing > 0).then(|| format!("{} not available", count_of(missing))));
    let undelivered: u64 = document.deliveries.iter().map(|own| own.undelivered).sum();
    let words = || format!("{} not delivered", plural(undelivered, "alert"));
    parts.extend((undelivered > 0).then(words));
    parts.join(", ")
}

/// Signs that somebody should examine, the worst first: those with a state, then those with a word.
pub(crate) fn standing_out(signs: &[WatchedSign]) -> Vec<&WatchedSign> {
    let mut own: Vec<&WatchedSign> = signs.iter().filter(|own| own.finding.is_some()).collect();
    own.sort_by_key(|own| std::cmp::Reverse(own.state));
    own
}

/// Why signs are not available, each reason once with its signs.
pub(crate) fn reasons(signs: &[WatchedSign]) -> Vec<(Vec<&str>, &str)> {
    let mut reasons: Vec<(Vec<&str>, &str)> = Vec::new();
    for sign in signs {
        let Some(why) = &sign.not_available else {
            continue;
        };
        match reasons.iter_mut().find(|(_, own)| own == why) {
            Some((names, _)) => names.push(&sign.name),
            None => reasons.push((vec![&sign.name], why)),
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_by_people() {
        let of = |value, unit, kind| figure(value, unit, kind);
        assert_eq!(
            of(1_234_567.0, SignUnit::Count, SignKind::Gauge),
            "1,234,567"
        );
        assert_eq!(of(0.25, SignUnit::Count, SignKind::Counter), "0.25/s");
        assert_eq!(of(2048.0, SignUnit::Bytes, SignKind::Counter), "2.0 KiB/s");
        assert_eq!(of(0.995, SignUnit::Ratio, SignKind::Gauge), "99.50 %");
        assert_eq!(
            of(0.0, SignUnit::Moment, SignKind::Gauge),
            "1970-01-01 00:00:00 UTC"
        );
        assert_eq!(
            of(1e300, SignUnit::Moment, SignKind::Gauge),
            "after the year 9999"
        );
        assert_eq!(of(7200.0, SignUnit::Seconds, SignKind::Gauge), "2.0 h");
    }
}
