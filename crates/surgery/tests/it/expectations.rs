//! What an injury promises is what the checks say: the damage is laid over a healthy cluster, and
//! no file is touched.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use pgclinic_check::{is_comparison, is_expected};
use pgclinic_cluster::Cluster;
use pgclinic_model::plan::Patch;
use pgclinic_model::{Finding, Glob, Level, Selection, Severity};
use pgclinic_servers::Checksums;
use pgclinic_source::Source;
use pgclinic_surgery::{InjuryOptions, InjuryTargets, PlannedInjury, injuries, plan_on};
use pgclinic_testkit::{checked_only, directory, seed, server};

fn overlay(pgdata: &Path, patch: &Patch) -> Arc<dyn Source> {
    pgclinic_surgery::overlay(directory(pgdata), patch).expect("plain paths")
}

/// What is found.
fn found(source: Arc<dyn Source>, selection: Selection) -> Vec<Finding> {
    let cluster = Cluster::open(source).expect("a cluster");
    checked_only(&cluster, Level::Full, selection).findings
}

/// The one database in whose relations all changes lie: of the others nothing new can be said. Else
/// everything.
fn hurt(patch: &Patch) -> Selection {
    let databases = patch.changes.iter().map(|change| {
        let below = change.path().strip_prefix("base/")?;
        let (database, file) = below.split_once('/')?;
        file.starts_with(|first: char| first.is_ascii_digit())
            .then_some(database)
    });
    let databases: BTreeSet<Option<&str>> = databases.collect();
    match databases.iter().collect::<Vec<_>>()[..] {
        [Some(database)] => Selection {
            databases: vec![Glob::new(*database)],
            ..Selection::default()
        },
        _ => Selection::default(),
    }
}

/// What is wrong with the promise, if anything.
fn broken_promise(planned: &PlannedInjury, found: &[Finding]) -> Option<String> {
    let damage = &planned.damage;
    let missing: Vec<_> = damage
        .must
        .iter()
        .filter(|rule| !found.iter().any(|finding| finding.rule == **rule))
        .collect();
    let allowed = |rule: &str| {
        damage.must.contains(&rule) || damage.may.contains(&rule) || is_comparison(rule)
    };
    let unexpected: BTreeSet<&str> = found
        .iter()
        .filter(|finding| finding.severity != Severity::Note)
        .filter(|finding| !is_expected(finding, found, allowed))
        .map(|finding| finding.rule.as_str())
        .collect();
    let why = format!(
        "at {}: {}: missing {missing:?}, unexpected {unexpected:?}",
        planned.place, damage.words
    );
    (!missing.is_empty() || !unexpected.is_empty()).then_some(why)
}

/// Sealed pages have checksums that fit their damage: only injuries of pages can be sealed.
fn keep_every_promise(sealed: bool) {
    let pgdata = seed(&server(18), Checksums::On).pgdata;
    let cluster = Cluster::open(directory(&pgdata)).expect("a cluster");
    let targets = InjuryTargets::new(&cluster);
    let options = InjuryOptions {
        seed: 0,
        sealed,
        ..InjuryOptions::default()
    };
    let mut broken = Vec::new();
    for injury in injuries() {
        let wants = injury.wants;
        if wants.needs_large || (sealed && !wants.page_injury) {
            continue;
        }
        let planned = plan_on(&targets, injury, &options).unwrap_or_else(|error| panic!("{error}"));
        let found = found(overlay(&pgdata, &planned.patch), hurt(&planned.patch));
        let why = broken_promise(&planned, &found);
        broken.extend(why.map(|why| format!("{} {why}", injury.name)));
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn a_healthy_cluster_is_quiet() {
    let pgdata = seed(&server(18), Checksums::On).pgdata;
    assert_eq!(found(directory(&pgdata), Selection::default()), []);
}

#[test]
fn every_promise_is_kept() {
    keep_every_promise(false);
}

#[test]
fn every_promise_is_kept_under_right_checksums() {
    keep_every_promise(true);
}
