//! Data checksum failures (`pg_stat_database`, `src/backend/utils/activity/pgstat_database.c`).
//!
//! The counter never goes down by itself, so that an old failure would alarm for ever: only what
//! grew while watching, or failed within a day, alarms.

use pgclinic_model::document::{SignKind, SignState, SignUnit, SignValue};

use super::{log, named, scrub};
use crate::assess::Sample;
use crate::need::Need;
use crate::probe::Probe;
use crate::sign::{Alert, Family, Gather, Sign, Source, Urgency};

pub(super) const SIGNS: &[&Sign] = &[
    &FAILURES,
    &LAST_FAILURE,
    &scrub::AGE,
    &scrub::LAST,
    &scrub::READING,
    &scrub::PROGRESS,
    &scrub::PAGES,
    &scrub::UNREAD,
    &scrub::DAMAGE,
    &scrub::DAMAGED_PAGES,
    &scrub::PARTIAL,
    &log::MESSAGES,
    &log::UNREAD,
    &log::GAPS,
];

/// A failure that is older is reported and does not alarm.
const RECENT_S: f64 = 86_400.0;

pub(crate) static DATABASES: Probe = Probe {
    name: "checksums",
    labels: &["database"],
    columns: &["failures", "last failure"],
    has_reset: true,
    needs: &[Need::Checksums, Need::Counts],
    sql: |_| {
        "SELECT coalesce(datname, '(shared)'), checksum_failures, extract(epoch FROM checksum_last_failure), \
         stats_reset FROM pg_stat_database ORDER BY 1"
            .to_owned()
    },
    ..Probe::PLAIN
};

const FAILURES: Sign = Sign {
    name: "checksum-failures",
    family: Family::Checksums,
    metric: "pgclinic_checksum_failures_total",
    summary: "pages whose checksum did not match",
    kind: SignKind::Counter,
    source: Source::Column(&DATABASES, "failures"),
    assess: Some(failures),
    normal: "0, for ever.",
    meaning: "The server read a page from disk whose bytes are not those that it wrote. Each reading counts again, so that ten failures may be one page.",
    settled_by: "pgclinic check of the data directory names the blocks and the rows at risk; pgclinic explain checksum-mismatch.",
    alerts: &[Alert {
        name: "PgclinicChecksumFailures",
        expression: "increase(pgclinic_checksum_failures_total[10m]) > 0",
        hold: "0m",
        keep: "30m",
        urgency: Urgency::Critical,
        summary: "{{ $labels.server }}: pages of database {{ $labels.database }} fail their checksum",
    }],
    ..Sign::PLAIN
};

const LAST_FAILURE: Sign = Sign {
    name: "checksum-last-failure",
    family: Family::Checksums,
    metric: "pgclinic_checksum_last_failure_timestamp_seconds",
    summary: "when a checksum failed last",
    unit: SignUnit::Moment,
    source: Source::Column(&DATABASES, "last failure"),
    gather: Gather::Max,
    assess: Some(last_failure),
    normal: "None.",
    meaning: "A failure of today is a disk, a controller or a memory that is failing now, or a damaged page that somebody still reads.",
    settled_by: "pgclinic check of the data directory; the server's log has file and block of each failure.",
    alerts: &[Alert {
        name: "PgclinicChecksumFailedRecently",
        expression: "time() - pgclinic_checksum_last_failure_timestamp_seconds < 86400",
        hold: "0m",
        keep: "30m",
        urgency: Urgency::Critical,
        summary: "{{ $labels.server }}: a page of database {{ $labels.database }} failed its checksum within a day",
    }],
    ..Sign::PLAIN
};

fn failures(sample: &Sample<'_>, values: &[SignValue]) -> Option<(SignState, String)> {
    let grown = values.iter().filter(|own| {
        let since = sample.growth_since_first(&DATABASES, &[named(own, "database")], "failures");
        since.is_ok_and(|(growth, _)| growth > 0.0)
    });
    let grown: Vec<&str> = grown.map(|own| named(own, "database")).collect();
    if !grown.is_empty() {
        let words = format!("grew while watching, in database {}", grown.join(", "));
        return Some((SignState::Critical, words));
    }
    let old: f64 = values.iter().map(|own| own.value).sum();
    let words = || format!("{old:.0} since the statistics were reset, none while watching");
    (old > 0.0).then(|| (SignState::Ok, words()))
}

fn last_failure(sample: &Sample<'_>, values: &[SignValue]) -> Option<(SignState, String)> {
    let last = values.iter().max_by(|a, b| a.value.total_cmp(&b.value))?;
    let database = named(last, "database");
    let age = sample.facts.clock - last.value;
    if age < RECENT_S {
        let words = format!("in database {database}, within the last 24 hours");
        return Some((SignState::Critical, words));
    }
    let days = age / RECENT_S;
    let words = format!("in database {database}, {days:.0} days ago: not counted as an alarm");
    Some((SignState::Ok, words))
}
