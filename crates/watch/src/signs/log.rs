//! Messages about storage in the server's log, wherever it can be read (`log.rs`).

use std::collections::BTreeMap;

use pgclinic_model::document::{SignKind, SignState, SignUnit, SignValue};

use crate::assess::Sample;
use crate::log::ServerLog;
use crate::sign::{Alert, Family, Sign, Source, Urgency};

pub(super) const MESSAGES: Sign = Sign {
    name: "logged-messages",
    family: Family::Checksums,
    metric: "pgclinic_logged_messages_total",
    summary: "entries of the server's log about damaged data, and about other trouble of storage",
    kind: SignKind::Counter,
    source: Source::Computed(&[], messages),
    labels: &["class"],
    assess: Some(damage),
    normal: "0 of class damage.",
    meaning: "The server met a page, a value or a file that it cannot use, and refused a statement or a vacuum. Each kind is explained beside its last entry.",
    settled_by: "pgclinic explain of the message; pgclinic check of the data directory.",
    alerts: &[Alert {
        name: "PgclinicLoggedDamage",
        expression: "increase(pgclinic_logged_messages_total{class=\"damage\"}[10m]) > 0",
        hold: "0m",
        keep: "30m",
        urgency: Urgency::Critical,
        summary: "{{ $labels.server }}: its log has messages about damaged data",
    }],
    ..Sign::PLAIN
};

pub(super) const UNREAD: Sign = Sign {
    name: "log-unread-bytes",
    family: Family::Checksums,
    metric: "pgclinic_log_unread_bytes_total",
    summary: "bytes of the log that were passed over, since it grew faster than it is read",
    kind: SignKind::Counter,
    unit: SignUnit::Bytes,
    source: Source::Computed(&[], |sample| {
        let log = readable(sample)?;
        let growth = log
            .growth
            .map(|(_, seconds)| (log.unread_growth as f64, seconds));
        Ok(vec![SignValue {
            value: log.unread_bytes as f64,
            per_second: growth.map(|(own, seconds)| own / seconds.max(1e-3)),
            growth: growth.map(|(own, _)| own),
            ..SignValue::default()
        }])
    }),
    normal: "0.",
    meaning: "Messages that stand in this part were not seen.",
    settled_by: "pgclinic explain of the whole log; less logging of statements.",
    ..Sign::PLAIN
};

fn readable<'a>(sample: &Sample<'a>) -> Result<&'a ServerLog, String> {
    let log = sample.log.ok_or("it was not read yet")?;
    match &log.refused {
        Some(why) => Err(why.clone()),
        None => Ok(log),
    }
}

fn messages(sample: &Sample<'_>) -> Result<Vec<SignValue>, String> {
    let log = readable(sample)?;
    let classes = ["damage", "other"].into_iter().zip(log.counts());
    let grown = log.growth.map_or([None; 2], |(grown, seconds)| {
        grown.map(|own| Some((own as f64, seconds)))
    });
    let values = classes.zip(grown).map(|((class, count), grown)| SignValue {
        labels: BTreeMap::from([("class".to_owned(), class.to_owned())]),
        value: count as f64,
        per_second: grown.map(|(own, seconds)| own / seconds.max(1e-3)),
        growth: grown.map(|(own, _)| own),
    });
    Ok(values.collect())
}

fn damage(sample: &Sample<'_>, _values: &[SignValue]) -> Option<(SignState, String)> {
    let kinds = sample.log?.kinds();
    let worst = kinds.iter().find(|own| own.is_damage)?;
    let place = match (&worst.path, worst.block) {
        (Some(path), Some(block)) => format!(", last {path}, block {block}"),
        _ => String::new(),
    };
    let name = &worst.message;
    Some(match worst.count {
        0 => (
            SignState::Warning,
            format!(
                "{name}, {} times before watching began{place}",
                worst.before
            ),
        ),
        count => (SignState::Critical, format!("{name}, {count} times{place}")),
    })
}
