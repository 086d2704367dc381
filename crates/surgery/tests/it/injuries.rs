//! Every injury on a real cluster: planned the same way twice, written, and taken back to the first
//! bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pgclinic_cluster::Cluster;
use pgclinic_servers::Checksums;
use pgclinic_source::DataDirectory;
use pgclinic_surgery::{
    Consent, Injury, InjuryOptions, InjuryTargets, Operation, PlannedInjury, apply, injuries,
    mark_copy, plan_on, undo,
};
use pgclinic_testkit::{TempCopy, copy_of, seed, server};

fn open(pgdata: &Path) -> Cluster {
    Cluster::open(Arc::new(DataDirectory::open(pgdata).expect("a directory"))).expect("a cluster")
}

fn copy(major: u16) -> TempCopy {
    copy_of(&seed(&server(major), Checksums::On))
}

/// The files of a cluster by path, tablespaces included.
fn hashes(folder: &Path) -> BTreeMap<PathBuf, blake3::Hash> {
    let mut found = BTreeMap::new();
    let mut left = vec![folder.to_path_buf()];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("a directory");
            left.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else {
            let bytes = std::fs::read(&path).expect("a file");
            found.insert(path, blake3::hash(&bytes));
        }
    }
    found
}

fn plans(
    targets: &InjuryTargets<'_>,
    seed: u64,
    sealed: bool,
) -> Vec<(&'static str, PlannedInjury)> {
    let small = |injury: &&Injury| !injury.wants.needs_large;
    let one = |injury: &'static Injury| {
        let options = InjuryOptions {
            seed,
            sealed,
            ..InjuryOptions::default()
        };
        let planned = plan_on(targets, injury, &options);
        let name = injury.name;
        (
            name,
            planned.unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}")),
        )
    };
    injuries().iter().filter(small).map(one).collect()
}

fn every_injury_is_taken_back(major: u16) {
    let copy = copy(major);
    mark_copy(&copy.pgdata).expect("a marker");
    let first = hashes(&copy.pgdata);
    let cluster = open(&copy.pgdata);
    let targets = InjuryTargets::new(&cluster);
    let journals = tempfile::tempdir().expect("a directory");
    for seed in 0..3u64 {
        for (name, planned) in plans(&targets, seed, seed == 1) {
            let journal = journals.path().join(format!("{name}-{seed}"));
            let operation = Operation {
                pgdata: &copy.pgdata,
                patch: &planned.patch,
                journal: &journal,
                consent: Consent::Marked,
                what: name,
                time: None,
                beside: &[],
                control_file: None,
            };
            let files = || {
                planned
                    .patch
                    .changes
                    .iter()
                    .map(|change| copy.pgdata.join(change.path()))
            };
            let before: Vec<_> = files().map(|path| std::fs::read(path).ok()).collect();
            let applied =
                apply(&operation).unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
            let hurt: Vec<_> = files().map(|path| std::fs::read(path).ok()).collect();
            assert_ne!(before, hurt, "{name}, seed {seed}");
            let undone = undo(&applied.journal, None)
                .unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
            assert!(undone.changes > 0, "{name}");
            assert_eq!(
                undo(&journal, None).expect("once more").changes,
                0,
                "{name}"
            );
            let after: Vec<_> = files().map(|path| std::fs::read(path).ok()).collect();
            assert_eq!(before, after, "{name}, seed {seed}");
        }
    }
    assert!(first == hashes(&copy.pgdata), "every file is as it was");
}

#[test]
fn every_injury_of_18_is_taken_back() {
    every_injury_is_taken_back(18);
}

#[test]
fn every_injury_of_13_is_taken_back() {
    every_injury_is_taken_back(13);
}

#[test]
fn the_same_seed_gives_the_same_damage() {
    let seeded = seed(&server(18), Checksums::On);
    let cluster = open(&seeded.pgdata);
    let (one, other) = (InjuryTargets::new(&cluster), InjuryTargets::new(&cluster));
    assert_eq!(plans(&one, 7, false), plans(&other, 7, false));
}

#[test]
fn a_sealed_page_carries_a_true_checksum() {
    let seeded = seed(&server(18), Checksums::On);
    let cluster = open(&seeded.pgdata);
    for (name, planned) in plans(&InjuryTargets::new(&cluster), 1, true) {
        let injury = pgclinic_surgery::injury_named(name).expect("registered");
        let told = planned.damage.must.contains(&"checksum-mismatch");
        let wanted = name == "page-checksum";
        assert!(
            !injury.wants.page_injury || (planned.sealed && !told) || wanted,
            "{name}"
        );
    }
}

/// Three segments, a prepared transaction and a slot.
const LARGE: &str = "only the large filling has what is hurt: pgclinic drill --large";

/// A manifest and what it names.
const BACKUP: &str = "only a base backup has a manifest: crates/cli/tests/base_backup.rs";

/// Rules that no injury of one cluster's files can bring about, with the test that does.
const RULES_WITHOUT_INJURY: [(&str, &str); 21] = [
    (
        "page-of-another-table",
        "two files must change places: crates/check/tests/it/lost_blocks/exchanged.rs",
    ),
    (
        "missing-directory",
        "a journal keeps files, not directories: crates/check/tests/it/directories.rs",
    ),
    (
        "transaction-status-contradicted",
        "rows of many pages must contradict pg_xact: crates/check/tests/it/lost_blocks.rs",
    ),
    (
        "toast-value-without-row",
        "rows must be lost of which no index speaks: crates/check/tests/it/lost_blocks.rs",
    ),
    (
        "database-lost",
        "pg_database is one page, without which no database has a name: pgclinic drill --ward loss",
    ),
    (
        "page-older-than-wal",
        "an older state of a page is in no cluster that has not had it: crates/check/tests/it/lost_blocks/logged.rs",
    ),
    (
        "orphan-database-directory",
        "a journal keeps files, not directories: crates/check/tests/it/catalog_rows.rs",
    ),
    (
        "catalog-row-contradictory",
        "statements change the rows of a real server: crates/check/tests/it/catalog_rows.rs",
    ),
    (
        "collation-version-changed",
        "the machine changes, not the files: crates/check/tests/collation_versions.rs",
    ),
    (
        "btree-not-in-collation-order",
        "only a server with the library sees it: crates/cli/tests/collate_with.rs",
    ),
    (
        "timeline-history",
        "a cluster that never left its first timeline has none: crates/check/tests/wal.rs",
    ),
    (
        "backup-label",
        "only a base backup has one: crates/check/tests/wal.rs",
    ),
    ("backup-manifest", BACKUP),
    ("backup-file-missing", BACKUP),
    ("backup-file-changed", BACKUP),
    ("backup-file-extra", BACKUP),
    ("missing-segment", LARGE),
    ("short-segment", LARGE),
    ("extra-segment", LARGE),
    ("prepared-transaction-file", LARGE),
    ("replication-slot-file", LARGE),
];

#[test]
fn every_rule_has_an_injury_that_must_fire_it_or_a_written_reason() {
    let seeded = seed(&server(18), Checksums::On);
    let cluster = open(&seeded.pgdata);
    let targets = InjuryTargets::new(&cluster);
    let mut fired = BTreeSet::new();
    for (seed, sealed) in (0..6).flat_map(|seed| [(seed, false), (seed, true)]) {
        let planned = plans(&targets, seed, sealed).into_iter();
        fired.extend(planned.flat_map(|(_, planned)| planned.damage.must));
    }
    let excused = |rule: &str| RULES_WITHOUT_INJURY.iter().any(|(name, _)| *name == rule);
    let unfired: Vec<&str> = pgclinic_check::rules()
        .map(|rule| rule.name)
        .filter(|rule| !fired.contains(rule) && !excused(rule))
        .collect();
    assert_eq!(unfired, [""; 0]);
}

#[test]
fn names_are_kebab_case_and_unique_and_all_words_are_there() {
    let mut names: Vec<&str> = injuries().iter().map(|injury| injury.name).collect();
    for injury in injuries() {
        let name = injury.name;
        let kebab = name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        assert!(
            kebab && !name.starts_with('-') && !name.ends_with('-'),
            "{name}"
        );
        assert!(
            injury.summary.len() > 20 && !injury.summary.ends_with('.'),
            "{name}"
        );
        assert!(injury.recovery_advice.ends_with('.'), "{name}");
        assert!(!injury.wants.kinds.is_empty(), "{name}");
    }
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}
