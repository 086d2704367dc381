//! Messages about storage in the server's log, wherever it can be read (`log.rs`).

use pgclinic_model::Labels;
use pgclinic_model::document::{SignKind, SignState, SignUnit, SignValue};

use crate::assess::Sample;
use crate::facts::ServerFacts;
use crate::log::ServerLog;
use crate::need::Need;
use crate::sign::{Alert, Family, Sign, Source, Urgency};

const COST: &str = "The names of the log files, and what was added to them: 4 MiB at most of files on this machine, 256 KiB through the server.";

pub(super) const MESSAGES: Sign = Sign {
    name: "logged-messages",
    family: Family::Checksums,
    metric: "pgclinic_logged_messages_total",
    summary: "entries of the server's log about damaged data, and about other trouble of storage",
    kind: SignKind::Counter,
    source: Source::Computed(&[], messages),
    labels: &["class"],
    needs: &[Need::LogFile],
    cost: COST,
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
    needs: &[Need::LogFile],
    cost: COST,
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
    assess: Some(unread),
    normal: "0.",
    meaning: "Messages that stand in this part were not seen.",
    settled_by: "pgclinic explain of the whole log; less logging of statements.",
    ..Sign::PLAIN
};

pub(super) const GAPS: Sign = Sign {
    name: "log-gaps",
    family: Family::Checksums,
    metric: "pgclinic_log_gaps_total",
    summary: "files of the log that were truncated or removed before they were read to their end",
    kind: SignKind::Counter,
    source: Source::Computed(&[], |sample| {
        let log = readable(sample)?;
        let growth = log
            .growth
            .map(|(_, seconds)| (log.gaps_growth as f64, seconds));
        Ok(vec![SignValue {
            value: log.gaps as f64,
            per_second: growth.map(|(own, seconds)| own / seconds.max(1e-3)),
            growth: growth.map(|(own, _)| own),
            ..SignValue::default()
        }])
    }),
    needs: &[Need::LogFile],
    cost: COST,
    assess: Some(gap),
    normal: "0, and one for each rotation by a program that empties the file.",
    meaning: "What was written between the sample before and that moment was not seen.",
    settled_by: "log_rotation_age and log_rotation_size rotate without a loss; a shorter --interval.",
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
    if let Some(why) = unseen(sample.facts, log) {
        return Err(why);
    }
    let classes = ["damage", "other"].into_iter().zip(log.counts());
    let grown = log.growth.map_or([None; 2], |(grown, seconds)| {
        grown.map(|own| Some((own as f64, seconds)))
    });
    let values = classes.zip(grown).map(|((class, count), grown)| SignValue {
        labels: Labels::from([("class".to_owned(), class.to_owned())]),
        value: count as f64,
        per_second: grown.map(|(own, seconds)| own / seconds.max(1e-3)),
        growth: grown.map(|(own, _)| own),
        ..SignValue::default()
    });
    Ok(values.collect())
}

/// Why no message about damage would be seen in this log, so that nothing found is no zero.
fn unseen(facts: &ServerFacts, log: &ServerLog) -> Option<String> {
    let least = facts.shown("log_min_messages").unwrap_or_default();
    if ["log", "fatal", "panic"].contains(&least) {
        return Some(format!(
            "log_min_messages is {least}, so that errors about damaged data are not logged"
        ));
    }
    let language = facts.shown("lc_messages").unwrap_or_default();
    let is_english = |own: &str| ["", "C", "POSIX"].contains(&own) || own.starts_with("en");
    let is_known = is_english(language) || log.has_sqlstates() || !log.kinds().is_empty();
    (!is_known).then(|| {
        format!(
            "lc_messages is {language}, and words are recognised in English alone: csvlog and jsonlog have SQLSTATEs"
        )
    })
}

fn unread(_sample: &Sample<'_>, values: &[SignValue]) -> Option<(SignState, String)> {
    let bytes = values.first()?.growth.filter(|own| *own > 0.0)?;
    let words = format!("{bytes:.0} bytes were passed over since the sample before");
    Some((SignState::Warning, words))
}

fn gap(sample: &Sample<'_>, _values: &[SignValue]) -> Option<(SignState, String)> {
    let words = sample.log?.recent_gap()?;
    Some((SignState::Warning, words.to_owned()))
}

fn damage(sample: &Sample<'_>, _values: &[SignValue]) -> Option<(SignState, String)> {
    let kinds = sample.log?.kinds();
    let Some(worst) = kinds.iter().find(|own| own.is_damage) else {
        return warnings_are_missing(sample);
    };
    let place = match (&worst.path, worst.block) {
        (Some(path), Some(block)) => format!(", last {path}, block {block}"),
        _ => String::new(),
    };
    let source = if worst.by_sqlstate {
        ""
    } else {
        "; reported in the log, not verified: it has words and no SQLSTATE"
    };
    let name = &worst.message;
    Some(match worst.count {
        0 => (
            SignState::Warning,
            format!(
                "{name}, {} times before watching began{place}{source}",
                worst.before
            ),
        ),
        count => (
            SignState::Critical,
            format!("{name}, {count} times{place}{source}"),
        ),
    })
}

/// A checksum that fails is a warning before it is an error, and is one alone with
/// `ignore_checksum_failure`.
fn warnings_are_missing(sample: &Sample<'_>) -> Option<(SignState, String)> {
    let is_error = sample.facts.shown("log_min_messages") == Some("error");
    let words = "log_min_messages is error: warnings about checksums are not logged";
    is_error.then(|| (SignState::Ok, words.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Setting;

    #[test]
    fn a_log_that_cannot_have_the_messages_is_no_zero() {
        let facts = |name: &str, value: &str| {
            let mut facts = ServerFacts::default();
            let setting = Setting {
                value: value.to_owned(),
                ..Setting::default()
            };
            facts.settings.insert(name.to_owned(), setting);
            facts
        };
        let log = ServerLog::default();
        let why = |name, value| unseen(&facts(name, value), &log).unwrap_or_default();
        assert!(why("log_min_messages", "panic").contains("not logged"));
        assert!(why("lc_messages", "de_DE.UTF-8").contains("SQLSTATE"));
        for (name, value) in [
            ("log_min_messages", "warning"),
            ("log_min_messages", "error"),
            ("lc_messages", "en_GB.UTF-8"),
            ("lc_messages", "C"),
        ] {
            assert_eq!(why(name, value), "", "{name} = {value}");
        }
    }
}
