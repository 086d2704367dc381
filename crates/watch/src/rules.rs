//! A rule file of Prometheus, made of the alerts of the register.
//!
//! Alerts are growth, bytes and dates, never bare ratios. Each holds for a while before it fires
//! (`for`) and fires on for a while afterwards (`keep_firing_for`, since Prometheus 2.42).

use std::fmt::Write as _;

use crate::sign::{Alert, Sign};
use crate::signs::FAMILIES;

/// The file, as YAML.
pub fn rules() -> String {
    let mut file = "# Alerts on the metrics of pgclinic watch, written by `pgclinic watch --rules`.\ngroups:\n".to_owned();
    for (family, signs) in FAMILIES {
        let alerts = signs
            .iter()
            .flat_map(|sign| sign.alerts.iter().map(move |alert| (*sign, alert)));
        let alerts: Vec<_> = alerts.collect();
        if alerts.is_empty() {
            continue;
        }
        let _ = writeln!(file, "  - name: pgclinic-{}\n    rules:", family.name());
        for (sign, alert) in alerts {
            rule(sign, alert, &mut file);
        }
    }
    file
}

fn rule(sign: &Sign, alert: &Alert, file: &mut String) {
    let Alert {
        name, hold, keep, ..
    } = alert;
    let urgency = alert.urgency.name();
    let _ = writeln!(file, "      - alert: {name}");
    let _ = writeln!(file, "        expr: {}", quoted(alert.expression));
    let _ = writeln!(file, "        for: {hold}\n        keep_firing_for: {keep}");
    let _ = writeln!(
        file,
        "        labels:\n          severity: {urgency}\n          sign: {}",
        sign.name
    );
    let _ = writeln!(
        file,
        "        annotations:\n          summary: {}",
        quoted(alert.summary)
    );
    let _ = writeln!(file, "          meaning: {}", quoted(sign.meaning));
    let _ = writeln!(file, "          settled_by: {}", quoted(sign.settled_by));
}

/// In single quotes YAML knows no escapes but that of the quote itself.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The metrics that an expression names.
#[cfg(test)]
fn metrics_of(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("pgclinic_"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::signs::signs;

    /// What the program adds to the metrics of signs.
    const OF_THE_PROGRAM: [&str; 3] = [
        "pgclinic_up",
        "pgclinic_last_complete_timestamp_seconds",
        "pgclinic_alerts_undelivered_total",
    ];

    #[test]
    fn alerts_look_at_metrics_that_there_are_and_hold_before_they_fire() {
        let metrics: BTreeSet<&str> = signs()
            .map(|sign| sign.metric)
            .chain(OF_THE_PROGRAM)
            .collect();
        let mut names = BTreeSet::new();
        for alert in signs().flat_map(|sign| sign.alerts) {
            assert!(names.insert(alert.name), "{} twice", alert.name);
            let mut found = metrics_of(alert.expression).peekable();
            assert!(found.peek().is_some(), "{}", alert.name);
            for metric in found {
                assert!(metrics.contains(metric), "{}: {metric}", alert.name);
            }
            assert!(alert.hold.ends_with(['m', 'h']) && alert.keep.ends_with(['m', 'h']));
        }
        assert!(names.len() > 10);
    }

    #[test]
    fn every_alert_is_tried_on_recorded_series() {
        let series = include_str!("../alerts/series.yml");
        for alert in signs().flat_map(|sign| sign.alerts) {
            assert!(series.contains(alert.name), "{}", alert.name);
        }
    }
}
