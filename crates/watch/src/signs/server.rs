//! The server itself, and how it was asked: silence has to alarm too.

use pgclinic_model::document::{SignState, SignUnit, SignValue};

use super::whole;
use crate::assess::Sample;
use crate::sign::{Alert, Gather, Sign, Source, Urgency};

pub(super) const SIGNS: &[&Sign] = &[&STARTED, &MAJOR, &STANDBY, &CLOCK, &COST];

/// Seconds by which two clocks may drift apart between two samples.
const JUMP_S: f64 = 2.0;
/// A server that has been up for less was restarted while somebody may look for the reason.
const FRESH_S: f64 = 600.0;

const STARTED: Sign = Sign {
    name: "server-started",
    metric: "pgclinic_server_started_timestamp_seconds",
    summary: "when the server started",
    unit: SignUnit::Moment,
    source: Source::Computed(&[], |sample| Ok(vec![whole(sample.facts.started)])),
    assess: Some(started),
    normal: "Long ago, at a time that somebody knows of.",
    meaning: "A crash or a restart nobody planned; counters of before it say nothing of after.",
    settled_by: "The server's log.",
    alerts: &[
        Alert {
            name: "PgclinicServerRestarted",
            expression: "changes(pgclinic_server_started_timestamp_seconds[15m]) > 0",
            hold: "0m",
            keep: "15m",
            urgency: Urgency::Warning,
            summary: "{{ $labels.server }} was restarted",
        },
        Alert {
            name: "PgclinicServerSilent",
            expression: "(time() - pgclinic_last_complete_timestamp_seconds > 300) or (pgclinic_up == 0)",
            hold: "5m",
            keep: "5m",
            urgency: Urgency::Critical,
            summary: "{{ $labels.server }} gives no answer",
        },
    ],
    ..Sign::PLAIN
};

const MAJOR: Sign = Sign {
    name: "server-major",
    metric: "pgclinic_server_major",
    summary: "the major version of the server",
    source: Source::Computed(&[], |sample| Ok(vec![whole(f64::from(sample.facts.major))])),
    gather: Gather::Max,
    assess: Some(newer),
    normal: "One of 13 to 18.",
    meaning: "Of a newer server every sign is tried. One that it refuses is unknown, with the server's words.",
    settled_by: "A newer pgclinic.",
    ..Sign::PLAIN
};

const STANDBY: Sign = Sign {
    name: "standby",
    metric: "pgclinic_standby",
    summary: "1 on a server that replays WAL of another one",
    source: Source::Computed(&[], |sample| {
        Ok(vec![whole(f64::from(u8::from(sample.facts.is_standby)))])
    }),
    normal: "As it was set up.",
    meaning: "A change is a promotion.",
    settled_by: "The cluster manager's log.",
    alerts: &[Alert {
        name: "PgclinicPromoted",
        expression: "changes(pgclinic_standby[15m]) > 0",
        hold: "0m",
        keep: "15m",
        urgency: Urgency::Warning,
        summary: "{{ $labels.server }} changed between primary and standby",
    }],
    ..Sign::PLAIN
};

const CLOCK: Sign = Sign {
    name: "clock-jump",
    metric: "pgclinic_clock_jump_seconds",
    summary: "by how much the server's clock went on more than ours since the sample before",
    unit: SignUnit::Seconds,
    source: Source::Computed(&[], clock),
    assess: Some(clock_jumped),
    normal: "Some milliseconds.",
    meaning: "The clock of the server's machine was set. Rates are by a clock that cannot be set; dates and ages are by the server's.",
    settled_by: "The log of the time service of that machine.",
    ..Sign::PLAIN
};

const COST: Sign = Sign {
    name: "sample-time",
    metric: "pgclinic_sample_seconds",
    summary: "how long it took to read all signs",
    unit: SignUnit::Seconds,
    source: Source::Computed(&[], |sample| match sample.sample_s {
        Some(seconds) => Ok(vec![whole(seconds)]),
        None => Err("the first sample is not over".to_owned()),
    }),
    normal: "0.1 to 0.3 s; most of it are the pauses of bursts.",
    meaning: "The server answers late: it is busy, or locks or the network are in the way.",
    settled_by: "sessions-waiting-for-io and connection-states.",
    alerts: &[Alert {
        name: "PgclinicAlertsUndelivered",
        expression: "increase(pgclinic_alerts_undelivered_total[1h]) > 0",
        hold: "0m",
        keep: "30m",
        urgency: Urgency::Warning,
        summary: "alerts of pgclinic watch do not reach its {{ $labels.receiver }}",
    }],
    ..Sign::PLAIN
};

fn started(sample: &Sample<'_>, values: &[SignValue]) -> Option<(SignState, String)> {
    let up = sample.facts.clock - values.first()?.value;
    let minutes = format!("{:.0}", up / 60.0);
    let words = || match minutes.as_str() {
        "1" => "1 minute ago".to_owned(),
        minutes => format!("{minutes} minutes ago"),
    };
    if sample.restarted {
        return Some((
            SignState::Warning,
            format!("restarted while watching, {}", words()),
        ));
    }
    (up < FRESH_S).then(|| (SignState::Ok, words()))
}

fn newer(sample: &Sample<'_>, _values: &[SignValue]) -> Option<(SignState, String)> {
    let known = pgclinic_servers::MAJORS;
    let (major, last) = (sample.facts.major, known.end());
    let words = || {
        format!("PostgreSQL {major} is newer than what this program knows, which ends with {last}")
    };
    (major > *last).then(|| (SignState::Warning, words()))
}

fn clock(sample: &Sample<'_>) -> Result<Vec<SignValue>, String> {
    let jump = sample.clock_jump.ok_or("this is the first sample")?;
    Ok(vec![whole(jump)])
}

fn clock_jumped(_moment: &Sample<'_>, values: &[SignValue]) -> Option<(SignState, String)> {
    let jump = values.first()?.value;
    let words = format!("the server's clock jumped by {jump:.1} s");
    (jump.abs() > JUMP_S).then_some((SignState::Warning, words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::ServerFacts;

    #[test]
    fn a_newer_server_is_named_as_such() {
        let of = |major| {
            let facts = ServerFacts {
                major,
                ..ServerFacts::default()
            };
            newer(&Sample::bare(&facts), &[])
        };
        assert_eq!(of(18), None);
        let (state, why) = of(19).expect("a word");
        assert_eq!(state, SignState::Warning);
        assert!(why.contains("PostgreSQL 19 is newer"), "{why}");
    }
}
