//! Ids that run out (`src/backend/access/transam/varsup.c`, `multixact.c`): ages, what is left
//! until the server refuses to write, and the date at the present rate.
//!
//! ```text
//! age 0 ── autovacuum_freeze_max_age ──── vacuum_failsafe_age ──── warnings ── the server refuses
//!           forced vacuum begins            vacuum drops its brakes             2^31 - 3,000,000
//! ```
//!
//! The limits are those of the server's settings and of its major.

use pgclinic_model::document::{SignKind, SignState, SignUnit, SignValue};

use super::{named, of, whole};
use crate::assess::Sample;
use crate::facts::ServerFacts;
use crate::probe::Probe;
use crate::sign::{Alert, Family, Gather, Sign, Source, Urgency};

pub(super) const SIGNS: &[&Sign] = &[
    &XID_AGE,
    &MULTIXACT_AGE,
    &LIMITS,
    &XIDS,
    &MULTIXACTS,
    &XID_DATE,
    &MULTIXACT_DATE,
];

const DAY_S: f64 = 86_400.0;
/// Of what lies between the beginning of forced vacuum and the end, the part after which vacuum is
/// surely not keeping up.
const LATE: f64 = 0.25;
/// A forecast from less than this is no forecast.
const FORECAST_MIN_S: f64 = 1.0;

static AGES: Probe = Probe {
    name: "ages",
    labels: &["database"],
    columns: &["xid age", "multixact age"],
    sql: |_| {
        "SELECT datname, age(datfrozenxid), mxid_age(datminmxid) FROM pg_database ORDER BY 1"
            .to_owned()
    },
    cost: "One row of pg_database for each database.",
    ..Probe::PLAIN
};

pub(crate) static IDS: Probe = Probe {
    name: "ids",
    columns: &["xids", "multixacts"],
    sql: |_| {
        // The control file has the next multixact id as of the last checkpoint, too old for a rate.
        "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::numeric, mxid_age('1')::bigint & 4294967295"
            .to_owned()
    },
    cost: "A snapshot and a counter from shared memory; no id is used up.",
    ..Probe::PLAIN
};

const XID_AGE: Sign = Sign {
    name: "xid-age",
    family: Family::Wraparound,
    metric: "pgclinic_xid_age",
    summary: "age of the oldest transaction id that is not frozen",
    source: Source::Column(&AGES, "xid age"),
    gather: Gather::Max,
    assess: Some(|sample, values| age(sample, values, &XID)),
    normal: "Below autovacuum_freeze_max_age (200 million by default), or somewhat above while a forced vacuum works.",
    meaning: "Vacuum has not frozen old rows. At 2^31 - 3 million the server takes no more writes until somebody vacuums by hand.",
    settled_by: "pgclinic measure names the tables with the oldest ids; oldest-transaction says who holds vacuum back.",
    alerts: &[
        Alert {
            name: "PgclinicXidAgeLate",
            expression: "pgclinic_xid_age > on (server) group_left () (0.75 * pgclinic_id_limit{id=\"xid\", limit=\"freeze\"} + on (server) 0.25 * pgclinic_id_limit{id=\"xid\", limit=\"stop\"})",
            hold: "15m",
            keep: "1h",
            urgency: Urgency::Warning,
            summary: "{{ $labels.server }}: vacuum does not keep up in database {{ $labels.database }}, age {{ $value | humanize }}",
        },
        Alert {
            name: "PgclinicXidAgeFailsafe",
            expression: "pgclinic_xid_age > on (server) group_left () pgclinic_id_limit{id=\"xid\", limit=\"failsafe\"}",
            hold: "5m",
            keep: "1h",
            urgency: Urgency::Critical,
            summary: "{{ $labels.server }}: database {{ $labels.database }} is beyond vacuum_failsafe_age",
        },
    ],
    ..Sign::PLAIN
};

const MULTIXACT_AGE: Sign = Sign {
    name: "multixact-age",
    family: Family::Wraparound,
    metric: "pgclinic_multixact_age",
    summary: "age of the oldest multixact id",
    source: Source::Column(&AGES, "multixact age"),
    gather: Gather::Max,
    assess: Some(|sample, values| age(sample, values, &MULTIXACT)),
    normal: "Below autovacuum_multixact_freeze_max_age (400 million by default).",
    meaning: "Rows that several transactions lock at once, as foreign keys do, use up multixact ids; they end as transaction ids do.",
    settled_by: "pgclinic measure names the tables with the oldest ids.",
    alerts: &[Alert {
        name: "PgclinicMultixactAgeFailsafe",
        expression: "pgclinic_multixact_age > on (server) group_left () pgclinic_id_limit{id=\"multixact\", limit=\"failsafe\"}",
        hold: "5m",
        keep: "1h",
        urgency: Urgency::Critical,
        summary: "{{ $labels.server }}: multixact ids of database {{ $labels.database }} are beyond their failsafe age",
    }],
    ..Sign::PLAIN
};

const LIMITS: Sign = Sign {
    name: "id-limits",
    family: Family::Wraparound,
    metric: "pgclinic_id_limit",
    summary: "ages at which the server acts, by its settings",
    source: Source::Computed(&[], |sample| Ok(limits(sample.facts))),
    labels: &["id", "limit"],
    gather: Gather::Max,
    normal: "As the settings say.",
    meaning: "freeze begins a forced vacuum, failsafe takes vacuum's brakes off, stop is where the server refuses to write.",
    settled_by: "The settings of the server and its major.",
    ..Sign::PLAIN
};

const XIDS: Sign = Sign {
    name: "xids",
    family: Family::Wraparound,
    metric: "pgclinic_xids_total",
    summary: "transaction ids used",
    kind: SignKind::Counter,
    source: Source::Column(&IDS, "xids"),
    normal: "About one for each transaction that writes.",
    meaning: "Failed inserts, subtransactions and savepoints use ids too: a rate far above that of commits means writes that come to nothing.",
    settled_by: "pgclinic lab run duplicate-inserts; rollbacks says how many transactions failed.",
    ..Sign::PLAIN
};

const MULTIXACTS: Sign = Sign {
    name: "multixacts",
    family: Family::Wraparound,
    metric: "pgclinic_multixacts_total",
    summary: "multixact ids used",
    kind: SignKind::Counter,
    source: Source::Column(&IDS, "multixacts"),
    normal: "Far below the rate of transaction ids.",
    meaning: "Many sessions lock the same rows at once, usually a parent row of a foreign key.",
    settled_by: "pg_stat_activity and pg_locks while it grows.",
    ..Sign::PLAIN
};

const XID_DATE: Sign = Sign {
    name: "xid-wraparound-date",
    family: Family::Wraparound,
    metric: "pgclinic_xid_wraparound_timestamp_seconds",
    summary: "when transaction ids run out at the present rate, if nothing is frozen",
    unit: SignUnit::Moment,
    source: Source::Computed(&[&AGES, &IDS], |sample| date(sample, &XID)),
    gather: Gather::Min,
    assess: Some(|sample, values| date_is_near(sample, values, &XID)),
    normal: "Years ahead, or moved further ahead by every vacuum.",
    meaning: "By then the server takes no more writes, unless vacuum freezes the oldest rows before.",
    settled_by: "xid-age over days: it falls when vacuum works.",
    alerts: &[Alert {
        name: "PgclinicXidsRunOut",
        expression: "(pgclinic_xid_wraparound_timestamp_seconds - time() < 7 * 86400) and on (server) (max by (server) (pgclinic_xid_age) > on (server) pgclinic_id_limit{id=\"xid\", limit=\"freeze\"})",
        hold: "1h",
        keep: "1h",
        urgency: Urgency::Critical,
        summary: "{{ $labels.server }}: transaction ids run out on {{ $value | humanizeTimestamp }} at the present rate",
    }],
    ..Sign::PLAIN
};

const MULTIXACT_DATE: Sign = Sign {
    name: "multixact-wraparound-date",
    family: Family::Wraparound,
    metric: "pgclinic_multixact_wraparound_timestamp_seconds",
    summary: "when multixact ids run out at the present rate, if nothing is frozen",
    unit: SignUnit::Moment,
    source: Source::Computed(&[&AGES, &IDS], |sample| date(sample, &MULTIXACT)),
    gather: Gather::Min,
    assess: Some(|sample, values| date_is_near(sample, values, &MULTIXACT)),
    normal: "Years ahead, or moved further ahead by every vacuum.",
    meaning: "By then no row can be locked by several transactions at once, and the server refuses such statements.",
    settled_by: "multixact-age over days.",
    ..Sign::PLAIN
};

/// One of the two kinds of ids.
struct Ids {
    name: &'static str,
    age: &'static str,
    used: &'static str,
    freeze: &'static str,
    failsafe: &'static str,
}

const XID: Ids = Ids {
    name: "xid",
    age: "xid age",
    used: "xids",
    freeze: "autovacuum_freeze_max_age",
    failsafe: "vacuum_failsafe_age",
};

const MULTIXACT: Ids = Ids {
    name: "multixact",
    age: "multixact age",
    used: "multixacts",
    freeze: "autovacuum_multixact_freeze_max_age",
    failsafe: "vacuum_multixact_failsafe_age",
};

/// The age at which the server refuses: `xidStopLimit`, `multiStopLimit`. Until 13 it waited
/// longer.
fn stop(facts: &ServerFacts, ids: &Ids) -> f64 {
    let reserve = match (facts.major, ids.name) {
        (..14, "xid") => 1_000_000.0,
        (..14, _) => 100.0,
        _ => 3_000_000.0,
    };
    f64::from(i32::MAX) - reserve
}

/// The age beyond which it is late, and how the limit is called. Before 14 there is no failsafe;
/// the server takes at least 1.05 times the age at which it forces vacuum
/// (`vacuum_xid_failsafe_check`).
fn failsafe(facts: &ServerFacts, ids: &Ids) -> (f64, &'static str) {
    let least = facts.number(ids.freeze).map_or(0.0, |freeze| 1.05 * freeze);
    match facts.number(ids.failsafe) {
        Some(age) => (age.max(least), ids.failsafe),
        None => (0.8 * stop(facts, ids), "80 % of the way to the end"),
    }
}

fn limits(facts: &ServerFacts) -> Vec<SignValue> {
    let mut all = Vec::new();
    for ids in [&XID, &MULTIXACT] {
        let rows = [
            ("freeze", facts.number(ids.freeze)),
            ("failsafe", Some(failsafe(facts, ids).0)),
            ("stop", Some(stop(facts, ids))),
        ];
        for (limit, age) in rows {
            let Some(age) = age else { continue };
            let mut value = of("limit", limit, age);
            value.labels = value.labels.with("id", ids.name);
            all.push(value);
        }
    }
    all
}

fn age(sample: &Sample<'_>, values: &[SignValue], ids: &Ids) -> Option<(SignState, String)> {
    let oldest = values.iter().max_by(|a, b| a.value.total_cmp(&b.value))?;
    let (database, age) = (named(oldest, "database"), oldest.value);
    let freeze = sample.facts.number(ids.freeze)?;
    let (late, end) = (
        freeze + LATE * (stop(sample.facts, ids) - freeze),
        stop(sample.facts, ids),
    );
    let (failsafe, limit) = failsafe(sample.facts, ids);
    let left = (end - age).max(0.0);
    let words = |than: &str| {
        format!("{age:.0} in database {database} is beyond {than}; {left:.0} ids are left")
    };
    if age > failsafe {
        return Some((SignState::Critical, words(limit)));
    }
    if age > late {
        let than = format!(
            "{} {freeze:.0} by a quarter of the way to the end",
            ids.freeze
        );
        return Some((SignState::Warning, words(&than)));
    }
    None
}

/// The date of the oldest database, by what was used up since the first reading.
fn date(sample: &Sample<'_>, ids: &Ids) -> Result<Vec<SignValue>, String> {
    let (used, seconds) = sample.growth_since_first(&IDS, &[], ids.used)?;
    if seconds < FORECAST_MIN_S {
        return Err("too little time has passed for a rate".to_owned());
    }
    if used <= 0.0 {
        return Err(format!(
            "no {} was used up in {seconds:.0} s of watching: no end in sight",
            ids.name
        ));
    }
    let left = (stop(sample.facts, ids) - oldest_age(sample, ids)?).max(0.0);
    Ok(vec![whole(sample.facts.clock + left / (used / seconds))])
}

fn oldest_age(sample: &Sample<'_>, ids: &Ids) -> Result<f64, String> {
    let at = AGES.cell_of(ids.age).ok_or("there is no such figure")?;
    let rows = sample.table(&AGES)?.rows.iter();
    let ages = rows.filter_map(|row| row.cells.get(at).copied().flatten());
    ages.reduce(f64::max)
        .ok_or_else(|| "the server shows no age".to_owned())
}

/// A date counts only where forced vacuum should have begun: before that a load is no neglect.
fn date_is_near(
    sample: &Sample<'_>,
    values: &[SignValue],
    ids: &Ids,
) -> Option<(SignState, String)> {
    let freeze = sample.facts.number(ids.freeze)?;
    let is_late = oldest_age(sample, ids).ok()? > freeze;
    let days = (values.first()?.value - sample.facts.clock) / DAY_S;
    let words = || {
        format!(
            "at the present rate ids run out in {days:.0} days, and the oldest is beyond {} already",
            ids.freeze
        )
    };
    match days {
        ..7.0 if is_late => Some((SignState::Critical, words())),
        7.0..30.0 if is_late => Some((SignState::Warning, words())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Setting;

    fn facts(major: u16, settings: &[(&str, &str)]) -> ServerFacts {
        let own = |(name, value): &(&str, &str)| {
            let setting = Setting {
                value: (*value).to_owned(),
                setting: (*value).to_owned(),
                ..Setting::default()
            };
            ((*name).to_owned(), setting)
        };
        ServerFacts {
            major,
            settings: settings.iter().map(own).collect(),
            ..ServerFacts::default()
        }
    }

    fn judged(facts: &ServerFacts, age: f64) -> Option<SignState> {
        let sample = Sample::bare(facts);
        let value = of("database", "shop", age);
        super::age(&sample, &[value], &XID).map(|(state, _)| state)
    }

    #[test]
    fn limits_are_those_of_the_servers_settings() {
        let usual = facts(
            18,
            &[
                ("autovacuum_freeze_max_age", "200000000"),
                ("vacuum_failsafe_age", "1600000000"),
            ],
        );
        assert_eq!(judged(&usual, 250e6), None);
        assert_eq!(judged(&usual, 900e6), Some(SignState::Warning));
        assert_eq!(judged(&usual, 1.7e9), Some(SignState::Critical));
        // Whoever lets ids grow old on purpose is not alarmed by it.
        let late = facts(
            18,
            &[
                ("autovacuum_freeze_max_age", "1500000000"),
                ("vacuum_failsafe_age", "1900000000"),
            ],
        );
        assert_eq!(judged(&late, 1.55e9), None);
        assert_eq!(judged(&late, 1.95e9), Some(SignState::Critical));
        let old = facts(13, &[("autovacuum_freeze_max_age", "200000000")]);
        assert_eq!(judged(&old, 1.8e9), Some(SignState::Critical));
    }
}
