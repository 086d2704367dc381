//! The background scrub of a server's files (`watch --scrub RATE`): checksums and headers of every
//! page, also of those that nobody reads.
//!
//! A scrub that does not come to its end is silence, and silence alarms: the age grows from the
//! sample at which a scrub was first asked for.

use pgclinic_model::document::{SignState, SignUnit, SignValue};

use super::{of, whole};
use crate::assess::Sample;
use crate::need::Need;
use crate::scrub::ScrubStatus;
use crate::sign::{Alert, Family, Gather, Sign, Source, Urgency};

/// Files that nobody has read for so long may have changed on disk without anybody's knowledge.
const LATE_S: f64 = 7.0 * 86_400.0;

const PLAIN: Sign = Sign {
    family: Family::Checksums,
    needs: &[Need::Scrub],
    cost: "Nothing for the server but its disk: the files are read at the rate of --scrub, idle.",
    ..Sign::PLAIN
};

pub(super) const AGE: Sign = Sign {
    name: "scrub-age",
    metric: "pgclinic_scrub_age_seconds",
    summary: "time since the last complete scrub ended, or since one was first asked for",
    unit: SignUnit::Seconds,
    source: Source::Computed(&[], |sample| {
        let own = status(sample)?;
        Ok(vec![whole(
            own.clock - own.complete_at.unwrap_or(own.asked_since),
        )])
    }),
    assess: Some(age),
    normal: "Up to some days, as size, rate and --scrub-every give.",
    meaning: "The server sees a damaged page only when somebody reads it. Pages that nobody reads wait for the scrub.",
    settled_by: "pgclinic check of the data directory, without a rate; scrub-reading says why none comes to its end.",
    alerts: &[
        Alert {
            name: "PgclinicScrubLate",
            expression: "pgclinic_scrub_age_seconds > 7 * 86400",
            hold: "15m",
            keep: "15m",
            urgency: Urgency::Warning,
            summary: "{{ $labels.server }}: no scrub came to its end for more than a week",
        },
        Alert {
            name: "PgclinicScrubSilent",
            expression: "(pgclinic_scrub_age_seconds offset 1h) unless pgclinic_scrub_age_seconds",
            hold: "15m",
            keep: "15m",
            urgency: Urgency::Warning,
            summary: "{{ $labels.server }}: nothing is heard of its scrub any more",
        },
    ],
    ..PLAIN
};

pub(super) const LAST: Sign = Sign {
    name: "scrub-last-complete",
    metric: "pgclinic_scrub_last_complete_timestamp_seconds",
    summary: "when the last complete scrub ended",
    unit: SignUnit::Moment,
    source: Source::Computed(&[], |sample| {
        Ok(status(sample)?.complete_at.map(whole).into_iter().collect())
    }),
    gather: Gather::Max,
    assess: Some(last),
    normal: "Some days ago at most.",
    meaning: "Every page of the cluster was read and examined by then.",
    settled_by: "pgclinic check of the data directory.",
    ..PLAIN
};

pub(super) const READING: Sign = Sign {
    name: "scrub-reading",
    metric: "pgclinic_scrub_able",
    summary: "1 where a scrub reads, or waits for its next turn; 0 where none can",
    source: Source::Computed(&[], |sample| {
        Ok(vec![whole(f64::from(u8::from(
            status(sample)?.stopped.is_none(),
        )))])
    }),
    assess: Some(reading),
    normal: "1.",
    meaning: "0: the files are on another machine, or cannot be read by the user of pgclinic, or the scrub fails.",
    settled_by: "The reason beside it.",
    alerts: &[Alert {
        name: "PgclinicScrubStopped",
        expression: "pgclinic_scrub_able == 0",
        hold: "15m",
        keep: "15m",
        urgency: Urgency::Warning,
        summary: "{{ $labels.server }}: its files cannot be scrubbed",
    }],
    ..PLAIN
};

pub(super) const PROGRESS: Sign = Sign {
    name: "scrub-progress",
    metric: "pgclinic_scrub_progress_ratio",
    summary: "how much of all files the present scrub has read",
    unit: SignUnit::Ratio,
    source: Source::Computed(&[], |sample| {
        Ok(status(sample)?.progress.map(whole).into_iter().collect())
    }),
    gather: Gather::Max,
    normal: "It grows; none between two scrubs.",
    meaning: "One that stands still waits for its disk, or for a server that needs it.",
    settled_by: "The rate of --scrub; requests in flight.",
    ..PLAIN
};

pub(super) const PAGES: Sign = Sign {
    name: "scrub-pages",
    metric: "pgclinic_scrub_pages",
    summary: "pages checked by the last complete scrub, and by the present one",
    source: Source::Computed(&[], |sample| {
        let pages = status(sample)?.pages.iter();
        Ok(pages
            .map(|(pass, pages)| of("pass", pass, count(*pages)))
            .collect())
    }),
    labels: &["pass"],
    gather: Gather::Max,
    normal: "All pages of the cluster.",
    meaning: "What the verdict of the scrub is made of.",
    settled_by: "pgclinic check of the data directory.",
    ..PLAIN
};

pub(super) const UNREAD: Sign = Sign {
    name: "scrub-unread-bytes",
    metric: "pgclinic_scrub_unread_bytes",
    summary: "bytes that the last complete scrub could not read, or passed over",
    unit: SignUnit::Bytes,
    source: Source::Computed(&[], |sample| {
        let bytes = complete(sample)?.unread_bytes;
        Ok(bytes.map(|bytes| whole(count(bytes))).into_iter().collect())
    }),
    assess: Some(unread),
    normal: "0.",
    meaning: "Nothing is known of these bytes: a disk does not give them, or a file is not to be read.",
    settled_by: "pgclinic check of the data directory names the files.",
    alerts: &[Alert {
        name: "PgclinicScrubUnread",
        expression: "pgclinic_scrub_unread_bytes > 0",
        hold: "15m",
        keep: "15m",
        urgency: Urgency::Warning,
        summary: "{{ $labels.server }}: the scrub could not read {{ $value | humanize1024 }}B",
    }],
    ..PLAIN
};

pub(super) const DAMAGE: Sign = Sign {
    name: "scrub-damage",
    metric: "pgclinic_scrub_damage",
    summary: "findings of damage of the last complete scrub",
    source: Source::Computed(&[], |sample| Ok(each("rule", &complete(sample)?.damage))),
    labels: &["rule"],
    assess: Some(damage),
    normal: "0.",
    meaning: "Pages on disk are not what the server wrote. The pages are listed with the command that shows their rows.",
    settled_by: "pgclinic check of the data directory: cause, rows at risk, and what to do.",
    alerts: &[Alert {
        name: "PgclinicScrubDamage",
        expression: "pgclinic_scrub_damage > 0",
        hold: "0m",
        keep: "30m",
        urgency: Urgency::Critical,
        summary: "{{ $labels.server }}: the scrub found damage ({{ $labels.rule }})",
    }],
    ..PLAIN
};

pub(super) const DAMAGED_PAGES: Sign = Sign {
    name: "scrub-damaged-pages",
    metric: "pgclinic_scrub_damaged_pages",
    summary: "damaged pages that the last complete scrub found",
    source: Source::Computed(&[], |sample| {
        Ok(each("relation", &complete(sample)?.damaged_pages))
    }),
    labels: &["relation"],
    normal: "0.",
    meaning: "One page is a stray write or a bad sector; many in a row are a torn file or a failing disk.",
    settled_by: "pgclinic check of the data directory; pgclinic inspect of a page.",
    ..PLAIN
};

pub(super) const PARTIAL: Sign = Sign {
    name: "scrub-partial-blocks",
    metric: "pgclinic_scrub_partial_block_bytes",
    summary: "bytes past the last whole block of files that end within a block",
    unit: SignUnit::Bytes,
    source: Source::Computed(&[], |sample| {
        Ok(each("relation", &complete(sample)?.partial_blocks))
    }),
    labels: &["relation"],
    assess: Some(partial),
    normal: "0: a server writes whole blocks.",
    meaning: "Somebody truncated the file, or the disk was full while it grew. Rows on the part that is missing are gone.",
    settled_by: "pgclinic check of a base backup or of the stopped cluster, which knows the length.",
    alerts: &[Alert {
        name: "PgclinicScrubPartialBlock",
        expression: "pgclinic_scrub_partial_block_bytes > 0",
        hold: "15m",
        keep: "15m",
        urgency: Urgency::Warning,
        summary: "{{ $labels.server }}: the file of {{ $labels.relation }} ends within a block",
    }],
    ..PLAIN
};

fn status<'a>(sample: &Sample<'a>) -> Result<&'a ScrubStatus, String> {
    sample
        .scrub
        .ok_or_else(|| "nothing is known of the scrub yet".to_owned())
}

/// What only a scrub knows that came to its end: until then nothing found is not a zero.
fn complete<'a>(sample: &Sample<'a>) -> Result<&'a ScrubStatus, String> {
    let own = status(sample)?;
    let is_complete = own.complete_at.is_some();
    is_complete
        .then_some(own)
        .ok_or_else(|| "no scrub came to its end yet".to_owned())
}

fn each(label: &str, counts: &[(String, u64)]) -> Vec<SignValue> {
    let counts = counts.iter();
    counts
        .map(|(name, own)| of(label, name, count(*own)))
        .collect()
}

fn count(own: u64) -> f64 {
    own as f64
}

fn age(_sample: &Sample<'_>, values: &[SignValue]) -> Option<(SignState, String)> {
    let age = values.first()?.value;
    let days = age / 86_400.0;
    let words = || format!("no scrub came to its end for {days:.0} days");
    (age > LATE_S).then(|| (SignState::Warning, words()))
}

fn last(sample: &Sample<'_>, values: &[SignValue]) -> Option<(SignState, String)> {
    let own = sample.scrub?;
    let at = own.progress.map_or(String::new(), |done| {
        format!("; the present one is at {:.0} %", done * 100.0)
    });
    if values.is_empty() {
        let never = format!("never: no scrub came to its end yet{at}");
        return Some((SignState::Warning, never));
    }
    let checksums = sample.facts.settings.get("data_checksums");
    let is_off = checksums.is_some_and(|own| own.value == "off");
    is_off.then(|| {
        let unverified = "data checksums are off: values on the pages cannot be verified";
        (SignState::Ok, unverified.to_owned())
    })
}

fn reading(sample: &Sample<'_>, _values: &[SignValue]) -> Option<(SignState, String)> {
    let own = sample.scrub?;
    match (&own.stopped, own.is_reading) {
        (Some(why), _) => Some((SignState::Warning, why.clone())),
        (None, true) => Some((SignState::Ok, "reading".to_owned())),
        (None, false) => None,
    }
}

fn unread(_sample: &Sample<'_>, values: &[SignValue]) -> Option<(SignState, String)> {
    let bytes = values.first()?.value;
    let words = || format!("{bytes:.0} bytes could not be read");
    (bytes > 0.0).then(|| (SignState::Warning, words()))
}

fn partial(_sample: &Sample<'_>, values: &[SignValue]) -> Option<(SignState, String)> {
    let names: Vec<&str> = values
        .iter()
        .map(|own| super::named(own, "relation"))
        .collect();
    let words = || format!("{} ends within a block", names.join(", "));
    (!values.is_empty()).then(|| (SignState::Warning, words()))
}

fn damage(sample: &Sample<'_>, values: &[SignValue]) -> Option<(SignState, String)> {
    let rules: Vec<&str> = values.iter().map(|own| super::named(own, "rule")).collect();
    let page = sample.scrub?.places.first();
    let page = page.map_or(String::new(), |own| format!("; first {}", own.place));
    let words = || format!("{}{page}", rules.join(", "));
    (!values.is_empty()).then(|| (SignState::Critical, words()))
}
