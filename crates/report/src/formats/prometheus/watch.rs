//! Live signs as metrics: the text format 0.0.4, and OpenMetrics 1.0 for whoever asks for it.

use std::collections::BTreeMap;

use pgclinic_model::document::{
    AlertDelivery, SignKind, SignState, WatchDocument, WatchedSign, WatchedTarget,
};

use crate::words::clean;

/// Which of the two formats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exposition {
    /// The text format 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.0: counters are named without `_total` in their head, and there is an end.
    OpenMetrics,
}

/// One metric with all of its samples, which have to stand together.
struct Family<'a> {
    help: &'a str,
    kind: SignKind,
    samples: Vec<String>,
}

#[derive(Default)]
struct Families<'a> {
    order: Vec<&'a str>,
    by_name: BTreeMap<&'a str, Family<'a>>,
}

impl<'a> Families<'a> {
    /// A value that is no number is left out: absent is how unknown is written.
    fn add(&mut self, head: (&'a str, &'a str, SignKind), labels: &[(&str, &str)], value: f64) {
        if !value.is_finite() {
            return;
        }
        let (name, help, kind) = head;
        // Names may hold what a terminal obeys, and metrics are read in one.
        let labels: Vec<_> = labels
            .iter()
            .map(|(name, value)| (*name, clean(value)))
            .collect();
        let labels: Vec<_> = labels
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let family = self.by_name.entry(name).or_insert_with(|| {
            self.order.push(name);
            let samples = Vec::new();
            Family {
                help,
                kind,
                samples,
            }
        });
        family
            .samples
            .push(format!("{name}{} {value}", super::labelled(&labels)));
    }
}

/// The metrics of a document. What is not available has no sample, but says so by
/// `pgclinic_sign_available`.
pub fn watch_metrics(document: &WatchDocument, exposition: Exposition) -> String {
    let mut families = Families::default();
    for target in &document.targets {
        of_target(target, &mut families);
    }
    for own in &document.deliveries {
        of_delivery(own, &mut families);
    }
    let mut text = String::new();
    for name in &families.order {
        let Some(family) = families.by_name.get(name) else {
            continue;
        };
        let head = match exposition {
            Exposition::Prometheus => *name,
            Exposition::OpenMetrics => name.strip_suffix("_total").unwrap_or(name),
        };
        let kind = match family.kind {
            SignKind::Counter => "counter",
            SignKind::Gauge => "gauge",
        };
        super::head(&mut text, head, family.help, kind);
        for sample in &family.samples {
            text.push_str(sample);
            text.push('\n');
        }
    }
    if exposition == Exposition::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

fn of_delivery<'a>(delivery: &'a AlertDelivery, families: &mut Families<'a>) {
    let labels = [("receiver", delivery.receiver.as_str())];
    let counts = [
        (
            "pgclinic_alerts_delivered_total",
            "messages about alerts that their receiver took",
            delivery.delivered,
        ),
        (
            "pgclinic_alerts_undelivered_total",
            "messages about alerts that did not reach their receiver",
            delivery.undelivered,
        ),
    ];
    for (name, help, count) in counts {
        families.add((name, help, SignKind::Counter), &labels, count as f64);
    }
}

fn of_target<'a>(target: &'a WatchedTarget, families: &mut Families<'a>) {
    let server = ("server", target.target.spec.as_str());
    let gauge = |name, help| (name, help, SignKind::Gauge);
    let up = f64::from(u8::from(target.unreachable.is_none()));
    let help = "1 where the server answered the last sample";
    families.add(gauge("pgclinic_up", help), &[server], up);
    if let Some(at) = target.complete_at {
        let help = "when the last sample ended that read every sign";
        families.add(
            gauge("pgclinic_last_complete_timestamp_seconds", help),
            &[server],
            at,
        );
    }
    for sign in &target.signs {
        let labels = [server, ("sign", sign.name.as_str())];
        let available = sign.not_available.is_none();
        let help = "1 where the sign can be read from this server by this role";
        let value = f64::from(u8::from(available));
        families.add(gauge("pgclinic_sign_available", help), &labels, value);
        if available {
            let help = "how the sign stands: 0 as it should, 1 a warning, 2 critical";
            families.add(
                gauge("pgclinic_sign_state", help),
                &labels,
                state(sign.state),
            );
        }
    }
    for sign in &target.signs {
        of_sign(sign, server, families);
    }
}

fn state(state: SignState) -> f64 {
    match state {
        SignState::Ok | SignState::NotAvailable | SignState::Unknown => 0.0,
        SignState::Warning => 1.0,
        SignState::Critical => 2.0,
    }
}

fn of_sign<'a>(sign: &'a WatchedSign, server: (&str, &str), families: &mut Families<'a>) {
    let head = (sign.metric.as_str(), sign.summary.as_str(), sign.kind);
    // Nothing of it at this moment is known, and is a zero; unknown has no sample.
    if sign.values.is_empty() && sign.headline == Some(0.0) {
        families.add(head, &[server], 0.0);
        return;
    }
    for own in &sign.values {
        let labels = own
            .labels
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let labels: Vec<_> = std::iter::once(server).chain(labels).collect();
        families.add(head, &labels, own.value);
    }
}
