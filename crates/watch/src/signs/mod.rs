//! The register of signs: a family is a file, a sign is a `const` in it and its line in `SIGNS`.
//!
//! What follows from the line: JSON, text, page, metric, alert, panel of the dashboard, and the
//! entry in `docs/signs.md`.

mod aio;
mod catalogs;
mod checksums;
mod failed_writes;
mod io;
mod log;
mod measured;
mod memory;
mod scrub;
mod server;
mod settings;
mod wal;
mod wraparound;

use pgclinic_model::Labels;
use pgclinic_model::document::SignValue;

use crate::probe::Probe;
use crate::sign::{Family, Sign};

pub(crate) use settings::advice;

/// Every family with its signs, in the order in which they are read and shown.
pub static FAMILIES: &[(Family, &[&Sign])] = &[
    (Family::Checksums, checksums::SIGNS),
    (Family::Wraparound, wraparound::SIGNS),
    (Family::FailedWrites, failed_writes::SIGNS),
    (Family::Catalogs, catalogs::SIGNS),
    (Family::AsynchronousIo, aio::SIGNS),
    (Family::Io, io::SIGNS),
    (Family::Wal, wal::SIGNS),
    (Family::Memory, memory::SIGNS),
    (Family::Settings, settings::SIGNS),
    (Family::Server, server::SIGNS),
];

/// When the statistics of the database began that the session is in, as the last column of its
/// tables' figures.
const RESET_OF_DATABASE: &str =
    "(SELECT stats_reset FROM pg_stat_database WHERE datname = current_database())";

/// Every sign.
pub fn signs() -> impl Iterator<Item = &'static Sign> {
    FAMILIES.iter().flat_map(|(_, signs)| signs.iter().copied())
}

/// Every statement once, in the order of the signs that need it.
pub(crate) fn probes() -> Vec<&'static Probe> {
    let mut all: Vec<&'static Probe> = Vec::new();
    for probe in signs().flat_map(|sign| sign.source.probes()) {
        if all.iter().all(|own| own.name != probe.name) {
            all.push(probe);
        }
    }
    all
}

/// A figure of a whole server.
fn whole(value: f64) -> SignValue {
    SignValue {
        value,
        ..SignValue::default()
    }
}

/// A figure of one thing.
fn of(label: &str, name: &str, value: f64) -> SignValue {
    SignValue {
        labels: Labels::from([(label.to_owned(), name.to_owned())]),
        value,
        ..SignValue::default()
    }
}

/// What a figure is of; the first label where there are several.
fn named<'a>(value: &'a SignValue, label: &str) -> &'a str {
    value.labels.get(label).map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pgclinic_model::document::SignKind;

    use super::*;
    use crate::sign::Source;

    #[test]
    fn every_sign_has_names_of_its_own_and_says_what_it_is_worth() {
        let (mut names, mut metrics) = (BTreeSet::new(), BTreeSet::new());
        for sign in signs() {
            assert!(names.insert(sign.name), "{} twice", sign.name);
            assert!(metrics.insert(sign.metric), "{} twice", sign.metric);
            let is_counter = sign.kind == SignKind::Counter;
            assert_eq!(
                sign.metric.ends_with("_total"),
                is_counter,
                "{}",
                sign.metric
            );
            assert!(sign.metric.starts_with("pgclinic_"), "{}", sign.metric);
            for text in [sign.normal, sign.meaning, sign.settled_by] {
                assert!(text.ends_with('.'), "{}: {text:?}", sign.name);
            }
            assert!(!sign.summary.is_empty() && !sign.summary.ends_with('.'));
            if let Source::Column(probe, column) = sign.source {
                assert!(probe.cell_of(column).is_some(), "{}: {column}", sign.name);
            }
        }
    }

    #[test]
    fn a_statement_has_one_name_and_says_what_it_costs() {
        for probe in probes() {
            let same = probes().into_iter().filter(|own| own.name == probe.name);
            assert_eq!(same.count(), 1);
            assert!(probe.cost.ends_with('.'), "{}", probe.name);
        }
    }

    #[test]
    fn every_family_is_in_the_register_with_its_own_signs() {
        for (family, signs) in FAMILIES {
            assert!(!signs.is_empty());
            for sign in *signs {
                assert_eq!(sign.family, *family, "{}", sign.name);
            }
        }
    }
}
