//! Settings compared with the machine and with the advice of the articles on data checksums,
//! asynchronous I/O, catalogs, TOAST and ZFS; each with its reason and what measures it here.

use std::collections::BTreeMap;

use pgclinic_model::document::{SettingAdvice, SignState, SignValue};

use super::{named, of};
use crate::assess::Sample;
use crate::facts::ServerFacts;
use crate::sign::{Family, Sign, Source};

pub(super) const SIGNS: &[&Sign] = &[&ADVISED];

const ADVISED: Sign = Sign {
    name: "settings-advised",
    family: Family::Settings,
    metric: "pgclinic_setting_advice",
    summary: "settings that differ from what is advised: 1, else 0",
    source: Source::Computed(&[], advised),
    labels: &["setting"],
    assess: Some(dangerous),
    normal: "What differs does so on purpose.",
    meaning: "Advice is a beginning, and the reason stands beside it; some settings let data be lost.",
    settled_by: "The experiment that stands beside each.",
    ..Sign::PLAIN
};

/// Values that lose data, or hide that it is lost.
const DANGEROUS: [&str; 5] = [
    "zero_damaged_pages",
    "ignore_checksum_failure",
    "fsync",
    "full_page_writes",
    "track_counts",
];

/// A rule about a setting: whether another value is advised, and which.
struct Rule {
    setting: &'static str,
    differs: fn(&Known<'_>) -> Option<String>,
    reason: &'static str,
    settled_by: &'static str,
}

/// What rules may ask.
struct Known<'a> {
    facts: &'a ServerFacts,
    machine: &'a BTreeMap<String, String>,
    value: &'a str,
}

impl Known<'_> {
    fn is(&self, bad: &str, advice: &str) -> Option<String> {
        (self.value == bad).then(|| advice.to_owned())
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.facts.number(name)
    }

    fn cores(&self) -> Option<f64> {
        self.machine.get("cpu.count")?.parse().ok()
    }
}

/// Longer than the vacuum of a catalog that is not bloated yet.
const CATALOG_VACUUM_MS: f64 = 10_000.0;

const RULES: &[Rule] = &[
    Rule {
        setting: "data_checksums",
        differs: |own| {
            own.is(
                "off",
                "pgclinic heal checksums, or pg_checksums --enable, while the server is stopped",
            )
        },
        reason: "without them a page that changed on disk is read as if it were right; PostgreSQL 18 makes new clusters with them",
        settled_by: "pgclinic lab run checksum-cost",
    },
    Rule {
        setting: "ignore_checksum_failure",
        differs: |own| own.is("on", "off"),
        reason: "damaged pages are used as they are, and written again with a checksum that is right: the damage can no longer be seen",
        settled_by: "pgclinic check of the data directory",
    },
    Rule {
        setting: "zero_damaged_pages",
        differs: |own| own.is("on", "off"),
        reason: "every page that looks damaged is emptied, also where a second reading would succeed: its rows are lost without an error",
        settled_by: "pgclinic check, then pgclinic salvage before anything else",
    },
    Rule {
        setting: "fsync",
        differs: |own| own.is("off", "on"),
        reason: "after a crash of the machine the cluster may be beyond recovery",
        settled_by: "pgclinic lab run filesystem",
    },
    Rule {
        setting: "full_page_writes",
        differs: |own| {
            own.is("off", "on, unless the file system never tears a page, as ZFS with records of 8 kB or more")
        },
        reason: "a page that was half written when the machine stopped cannot be repaired by recovery",
        settled_by: "pgclinic lab run filesystem",
    },
    Rule {
        setting: "io_method",
        differs: |own| {
            own.is(
                "sync",
                "worker, or io_uring where it is built in and the kernel allows it",
            )
        },
        reason: "each read waits for its own end, as up to PostgreSQL 17",
        settled_by: "pgclinic lab run async-io",
    },
    Rule {
        setting: "io_workers",
        differs: |own| few_workers(own, "io_workers"),
        reason: "three workers serve few processors; when all are busy requests queue in the server",
        settled_by: "pgclinic lab run async-io",
    },
    Rule {
        setting: "io_max_workers",
        differs: |own| few_workers(own, "io_max_workers"),
        reason: "since PostgreSQL 19 the server starts workers as it needs them, up to so many; when all are busy requests queue",
        settled_by: "pgclinic lab run async-io",
    },
    Rule {
        setting: "effective_io_concurrency",
        differs: |own| {
            let few = if own.facts.major >= 18 { 16.0 } else { 2.0 };
            (own.number("effective_io_concurrency")? < few)
                .then(|| "16 or more on solid-state storage".to_owned())
        },
        reason: "bitmap scans, and since 18 all scans, read that many requests ahead",
        settled_by: "pgclinic lab run async-io",
    },
    Rule {
        setting: "maintenance_io_concurrency",
        differs: |own| {
            (own.number("maintenance_io_concurrency")? < 10.0)
                .then(|| "10, and 20 to 50 or more on fast solid-state storage".to_owned())
        },
        reason: "ANALYZE since 14, VACUUM and recovery read that many blocks ahead: six to seven times faster when cold, as published",
        settled_by: "pgclinic lab run analyze-prefetch",
    },
    Rule {
        setting: "io_combine_limit",
        differs: |own| {
            let bytes = own.facts.bytes("io_combine_limit")?;
            (bytes < 131_072.0).then(|| "128kB or more".to_owned())
        },
        reason: "neighbouring blocks are read in one request up to this size",
        settled_by: "pgclinic lab run async-io",
    },
    Rule {
        setting: "io_max_combine_limit",
        differs: |own| {
            let bytes = own.facts.bytes("io_max_combine_limit")?;
            (bytes < 131_072.0).then(|| "128kB or more".to_owned())
        },
        reason: "io_combine_limit has no effect beyond it, and it is fixed when the server starts",
        settled_by: "pgclinic lab run async-io",
    },
    Rule {
        setting: "default_toast_compression",
        differs: |own| {
            let setting = own.facts.settings.get("default_toast_compression")?;
            let has_lz4 = setting.choices.iter().any(|choice| choice == "lz4");
            (own.value == "pglz" && has_lz4).then(|| "lz4".to_owned())
        },
        reason: "pglz takes several times the processor time of lz4 for nearly the same size",
        settled_by: "pgclinic lab run toast-compression",
    },
    Rule {
        setting: "huge_pages",
        differs: |own| {
            let shared = own.facts.bytes("shared_buffers")?;
            let status = own.facts.shown("huge_pages_status").unwrap_or(own.value);
            (status == "off" && shared >= 8e9)
                .then(|| "on, with vm.nr_hugepages for all of shared_buffers".to_owned())
        },
        reason: "every session maps shared_buffers in pages of 4 kB, and has page tables of its own for them",
        settled_by: "pgclinic lab run connection-memory",
    },
    Rule {
        setting: "track_io_timing",
        differs: |own| own.is("off", "on, where pg_test_timing shows a clock below 100 ns"),
        reason: "times of I/O are not measured, so that nobody knows what a miss costs",
        settled_by: "pg_test_timing",
    },
    Rule {
        setting: "track_counts",
        differs: |own| own.is("off", "on"),
        reason: "autovacuum does not work without it, failed checksums are not counted, nor are the figures here",
        settled_by: "dead-rows",
    },
    Rule {
        setting: "autovacuum",
        differs: |own| own.is("off", "on"),
        reason: "dead rows stay until somebody vacuums by hand; ids are frozen by force only",
        settled_by: "xid-age and dead-rows",
    },
    Rule {
        setting: "log_autovacuum_min_duration",
        differs: |own| {
            let shortest = own.number("log_autovacuum_min_duration")?;
            (!(0.0..=CATALOG_VACUUM_MS).contains(&shortest)).then(|| "1s or less".to_owned())
        },
        reason: "vacuums of catalogs take seconds, and shorter ones than this are not logged: their churn goes unseen",
        settled_by: "pgclinic lab run catalog-churn",
    },
    Rule {
        setting: "log_temp_files",
        differs: |own| own.is("-1", "10MB or less"),
        reason: "statements that write temporary files are not named in the log",
        settled_by: "temporary-bytes",
    },
    Rule {
        setting: "log_statement",
        differs: |own| own.is("none", "ddl"),
        reason: "the log does not say who creates tables, so that churn of catalogs has no author",
        settled_by: "relations-created; pgclinic measure catalog-cost",
    },
    Rule {
        setting: "log_checkpoints",
        differs: |own| own.is("off", "on"),
        reason: "the log does not say what began a checkpoint and how long its writes and syncs took",
        settled_by: "checkpoints-requested",
    },
];

/// A quarter to a half of the processors.
fn few_workers(own: &Known<'_>, setting: &str) -> Option<String> {
    let (workers, cores) = (own.number(setting)?, own.cores()?);
    let is_few = own.facts.shown("io_method") == Some("worker") && workers < (cores / 4.0).floor();
    is_few.then(|| {
        let (quarter, half) = (cores / 4.0, cores / 2.0);
        format!("{quarter:.0} to {half:.0}: a quarter to a half of {cores:.0} processors")
    })
}

/// The rules whose setting this server has and shows, with what they say.
fn judged<'a>(
    sample: &'a Sample<'_>,
) -> impl Iterator<Item = (&'static Rule, &'a str, Option<String>)> {
    RULES.iter().filter_map(|rule| {
        let value = sample.facts.shown(rule.setting)?;
        let known = Known {
            facts: sample.facts,
            machine: sample.machine_facts,
            value,
        };
        Some((rule, value, (rule.differs)(&known)))
    })
}

fn advised(sample: &Sample<'_>) -> Result<Vec<SignValue>, String> {
    let values = judged(sample).map(|(rule, _, advice)| {
        of(
            "setting",
            rule.setting,
            f64::from(u8::from(advice.is_some())),
        )
    });
    Ok(values.collect())
}

fn dangerous(_moment: &Sample<'_>, values: &[SignValue]) -> Option<(SignState, String)> {
    let set = values.iter().filter(|own| own.value > 0.0);
    let set: Vec<&str> = set
        .map(|own| named(own, "setting"))
        .filter(|own| DANGEROUS.contains(own))
        .collect();
    let words = || {
        format!(
            "{}: data may be lost, or its loss not be seen",
            set.join(", ")
        )
    };
    (!set.is_empty()).then(|| (SignState::Warning, words()))
}

/// What differs, with words; then what the machine could do better.
pub(crate) fn advice(sample: &Sample<'_>) -> Vec<SettingAdvice> {
    let of_server = judged(sample).filter_map(|(rule, value, advice)| {
        Some(SettingAdvice {
            setting: rule.setting.to_owned(),
            value: value.to_owned(),
            advice: advice?,
            reason: rule.reason.to_owned(),
            settled_by: rule.settled_by.to_owned(),
        })
    });
    of_server.chain(of_machine(sample)).collect()
}

/// Advice on kernel and file system, where the server is on this machine.
fn of_machine(sample: &Sample<'_>) -> Vec<SettingAdvice> {
    let Some(machine) = sample.machine.filter(|_| !sample.machine_facts.is_empty()) else {
        return Vec::new();
    };
    let mut sentences = (machine.advice)(sample.machine_facts);
    let is_set = |name: &str| sample.machine_facts.get(name).is_some_and(|own| own != "0");
    if is_set("numa.balancing")
        && sample
            .machine_facts
            .get("numa.nodes")
            .is_some_and(|own| own != "1")
    {
        sentences.push(
            "kernel.numa_balancing is on: pages of shared buffers are moved between memories while they are used; sysctl kernel.numa_balancing=0"
                .to_owned(),
        );
    }
    let advice = sentences.into_iter().map(|sentence| {
        let (what, why) = sentence
            .split_once(": ")
            .unwrap_or(("the machine", &sentence));
        SettingAdvice {
            setting: "machine".to_owned(),
            value: what.to_owned(),
            advice: String::new(),
            reason: why.to_owned(),
            settled_by: "pgclinic lab run filesystem".to_owned(),
        }
    });
    advice.collect()
}
