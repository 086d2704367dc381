//! The alerts of the register judged without a Prometheus: each fires once when it has held for
//! as long as it must, and is resolved once when it has not held for as long as it fires on.
//!
//! ```text
//! expression.rs  the part of PromQL that the register is written in
//! series.rs      the last hours of what alerts are about
//! ```

mod expression;
mod series;

use std::collections::BTreeMap;

use pgclinic_format::calendar::{DAYS_FROM_1970_TO_2000, civil};
use pgclinic_model::document::{WatchDocument, WatchedTarget};
use pgclinic_model::{Labels, whole};
use serde::Serialize;

use crate::sign::{Alert, Sign};
use crate::signs::signs;
use expression::{Expression, duration, parse};
use series::Store;

/// Of the message about an alert.
pub const ALERT_SCHEMA: &str = "pgclinic.alert/1";
/// What one alert may be about at once.
const ACTIVE_MAX: usize = 1000;

/// Whether it began or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlertStatus {
    /// It has held for as long as it must.
    Firing,
    /// It does not hold any more.
    Resolved,
}

/// A message about one alert of one thing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AlertMessage {
    /// `pgclinic.alert/1`.
    pub schema: &'static str,
    /// Whether it began or ended.
    pub status: AlertStatus,
    /// Its name.
    pub alert: &'static str,
    /// How soon somebody should come.
    pub severity: &'static str,
    /// The sign that it is of.
    pub sign: &'static str,
    /// What it is about: the server, and what else the figure is of.
    pub labels: Labels,
    /// The figure, as the expression of the alert gives it.
    pub value: f64,
    /// In a sentence.
    pub summary: String,
    /// What the sign means when it is not normal.
    pub meaning: &'static str,
    /// What settles it.
    pub settled_by: &'static str,
    /// Since when it holds, in seconds since 1970.
    pub since: f64,
    /// Now, in seconds since 1970.
    pub at: f64,
}

/// An alert with its expression.
#[derive(Debug)]
struct Rule {
    sign: &'static Sign,
    alert: &'static Alert,
    expression: Expression,
    hold_s: f64,
    keep_s: f64,
    active: BTreeMap<Labels, Active>,
}

/// What holds, or has held until a while ago.
#[derive(Debug)]
struct Active {
    since: f64,
    /// When it held last.
    held: f64,
    value: f64,
    is_firing: bool,
}

/// All alerts, and what is remembered for them.
#[derive(Debug)]
pub struct Alarms {
    rules: Vec<Rule>,
    store: Store,
}

impl Default for Alarms {
    fn default() -> Self {
        Self::new()
    }
}

impl Alarms {
    /// Of every alert of the register; nothing holds yet.
    pub fn new() -> Self {
        let rules = signs().flat_map(|sign| sign.alerts.iter().map(move |alert| (sign, alert)));
        let rules: Vec<Rule> = rules
            .filter_map(|(sign, alert)| Rule::of(sign, alert))
            .collect();
        Self {
            store: Store::of(rules.iter().map(|own| &own.expression)),
            rules,
        }
    }

    /// What began or ended with this sample, at this moment in seconds since 1970.
    pub fn judge(&mut self, document: &WatchDocument, now: f64) -> Vec<AlertMessage> {
        self.store.begin(now);
        for target in &document.targets {
            add(target, &mut self.store);
        }
        for own in &document.deliveries {
            let labels = || Labels::default().with("receiver", &own.receiver);
            let undelivered = own.undelivered as f64;
            self.store
                .add("pgclinic_alerts_undelivered_total", labels, undelivered);
        }
        self.store.end();
        let store = &self.store;
        let rules = self.rules.iter_mut();
        rules.flat_map(|rule| rule.judge(store, now)).collect()
    }
}

/// As the metrics of the endpoint have it.
fn add(target: &WatchedTarget, store: &mut Store) {
    let server = target.target.spec.as_str();
    let bare = || Labels::default().with("server", server);
    let is_up = f64::from(u8::from(target.unreachable.is_none()));
    store.add("pgclinic_up", bare, is_up);
    if let Some(at) = target.complete_at {
        store.add("pgclinic_last_complete_timestamp_seconds", bare, at);
    }
    for sign in &target.signs {
        if sign.values.is_empty() && sign.headline == Some(0.0) {
            store.add(&sign.metric, bare, 0.0);
        }
        for own in &sign.values {
            let labels = || own.labels.clone().with("server", server);
            store.add(&sign.metric, labels, own.value);
        }
    }
}

impl Rule {
    /// A test holds that every alert of the register can be read.
    fn of(sign: &'static Sign, alert: &'static Alert) -> Option<Self> {
        Some(Self {
            sign,
            alert,
            expression: parse(alert.expression).ok()?,
            hold_s: duration(alert.hold).ok()?,
            keep_s: duration(alert.keep).ok()?,
            active: BTreeMap::new(),
        })
    }

    fn judge(&mut self, store: &Store, now: f64) -> Vec<AlertMessage> {
        let mut messages = Vec::new();
        for (labels, value) in store.value(&self.expression) {
            if !self.active.contains_key(&labels) && self.active.len() >= ACTIVE_MAX {
                continue;
            }
            let own = self.active.entry(labels).or_insert(Active {
                since: now,
                held: now,
                value,
                is_firing: false,
            });
            (own.held, own.value) = (now, value);
        }
        let (hold_s, keep_s) = (self.hold_s, self.keep_s);
        let mut gone = Vec::new();
        for (labels, own) in &mut self.active {
            let holds = own.held >= now;
            if holds && !own.is_firing && now - own.since >= hold_s {
                own.is_firing = true;
                messages.push((AlertStatus::Firing, labels.clone(), own.value, own.since));
            }
            // What does not fire yet has to hold without a break.
            let is_over = !holds && (!own.is_firing || now - own.held >= keep_s);
            if is_over {
                gone.push(labels.clone());
                if own.is_firing {
                    messages.push((AlertStatus::Resolved, labels.clone(), own.value, own.since));
                }
            }
        }
        for labels in gone {
            self.active.remove(&labels);
        }
        let messages = messages.into_iter();
        messages
            .map(|(status, labels, value, since)| AlertMessage {
                schema: ALERT_SCHEMA,
                status,
                alert: self.alert.name,
                severity: self.alert.urgency.name(),
                sign: self.sign.name,
                summary: filled_in(self.alert.summary, &labels, value),
                labels,
                value,
                meaning: self.sign.meaning,
                settled_by: self.sign.settled_by,
                since,
                at: now,
            })
            .collect()
    }
}

/// `{{ $labels.server }}` and `{{ $value | humanize }}` of Prometheus' templates.
fn filled_in(template: &str, labels: &Labels, value: f64) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (word, after) = after.split_once("}}").unwrap_or((after, ""));
        text.push_str(before);
        let word = word.trim();
        match word.strip_prefix("$labels.") {
            Some(label) => text.push_str(labels.get(label).map_or("", String::as_str)),
            None => text.push_str(&figure(word, value)),
        }
        rest = after;
    }
    text + rest
}

fn figure(word: &str, value: f64) -> String {
    let scaled = |step: f64, units: [&str; 5]| {
        let mut scaled = value;
        let mut units = units.into_iter();
        let mut unit = units.next().unwrap_or("");
        for larger in units {
            if scaled.abs() < step {
                break;
            }
            (scaled, unit) = (scaled / step, larger);
        }
        format!("{scaled:.1}{unit}")
    };
    match word.rsplit('|').next().unwrap_or_default().trim() {
        "humanize1024" => scaled(1024.0, ["", "Ki", "Mi", "Gi", "Ti"]),
        "humanize" => scaled(1000.0, ["", "k", "M", "G", "T"]),
        "humanizeTimestamp" => day(value),
        "humanizeDuration" if value.abs() >= 86_400.0 => format!("{:.1} days", value / 86_400.0),
        "humanizeDuration" => format!("{:.0} min", value / 60.0),
        _ => format!("{value:.1}"),
    }
}

/// `2026-11-27`, from seconds since 1970.
fn day(seconds: f64) -> String {
    let days = i64::try_from(whole(seconds / 86_400.0)).unwrap_or(i64::MAX);
    let date = civil(days.saturating_sub(DAYS_FROM_1970_TO_2000));
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}

#[cfg(test)]
mod tests {
    use pgclinic_model::document::{Target, Tool, WATCH_SCHEMA};

    use super::*;

    fn document(is_up: bool, at: f64) -> WatchDocument {
        let target = WatchedTarget {
            target: Target {
                spec: "postgres://a".into(),
                ..Target::default()
            },
            server_version: None,
            is_standby: None,
            complete_at: Some(at),
            server_started_at: None,
            sample_s: 0.0,
            unreachable: (!is_up).then(|| "refused".to_owned()),
            state: Default::default(),
            signs: Vec::new(),
            advice: Vec::new(),
            damaged_pages: Vec::new(),
            damaged_pages_omitted: 0,
            logged: Vec::new(),
        };
        WatchDocument {
            schema: WATCH_SCHEMA.to_owned(),
            tool: Tool::this(),
            interval_s: 60.0,
            targets: vec![target],
            deliveries: Vec::new(),
            elapsed_s: 0.0,
        }
    }

    #[test]
    fn an_alert_fires_once_and_is_resolved_once() {
        let mut alarms = Alarms::new();
        let mut messages = Vec::new();
        for minute in 0..60 {
            // Down for a minute, then for twenty.
            let is_up = minute != 3 && !(10..30).contains(&minute);
            let now = 1e9 + 60.0 * f64::from(minute);
            let of_now = alarms.judge(&document(is_up, now), now);
            messages.extend(of_now.into_iter().map(|own| (minute, own)));
        }
        let found: Vec<_> = messages
            .iter()
            .map(|(at, own)| (*at, own.alert, own.status))
            .collect();
        let silent = "PgclinicServerSilent";
        let expected = [
            (15, silent, AlertStatus::Firing),
            (34, silent, AlertStatus::Resolved),
        ];
        assert_eq!(found, expected);
        let (_, first) = messages.first().expect("one");
        assert_eq!(first.summary, "postgres://a gives no answer");
        assert_eq!(first.since, 1e9 + 600.0);
    }

    #[test]
    fn every_alert_of_the_register_is_judged() {
        let count = signs().map(|sign| sign.alerts.len()).sum::<usize>();
        assert_eq!(Alarms::new().rules.len(), count);
        let labels = Labels::from([("server".to_owned(), "s".to_owned())]);
        for alert in signs().flat_map(|sign| sign.alerts) {
            let text = filled_in(alert.summary, &labels, 5e9);
            assert!(!text.contains("{{"), "{text}");
        }
        assert_eq!(
            filled_in(
                "{{ $value | humanize1024 }}B of {{ $labels.server }}",
                &labels,
                2048.0
            ),
            "2.0KiB of s"
        );
    }
}
