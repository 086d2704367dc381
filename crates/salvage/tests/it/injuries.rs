//! A hurt cluster: rows outside of the hurt places are all there, none is invented, and what is
//! missing is said.

use pgclinic_cluster::Cluster;
use pgclinic_model::document::{LossPlace, Outcome, SalvageReport, TableAccount};
use pgclinic_model::plan::{Change, Patch};
use pgclinic_model::{Glob, Selection};

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use common::options;
use pgclinic_salvage::{Rows, SalvageOptions, salvage};
use pgclinic_servers::Checksums;
use pgclinic_source::{DataDirectory, Source};
use pgclinic_surgery::{InjuryOptions, InjuryTargets, PlannedInjury, injuries, overlay, plan_on};
use pgclinic_testkit::{Quiet, seed, server};

const DATABASE: &str = "clinic";
const PAGE_BYTES: u64 = 8192;

/// Injuries after which the server, too, sees other rows: no row contradicts itself, or only a
/// multixact or another row of the page denies it, which is left to the check.
const AS_THE_SERVER: &[&str] = &[
    "all-visible-flag-set",
    "multixact-lock-only-flipped",
    "update-chain-circle",
    "multixact-updater",
    "zeroed-multixact-members",
];

/// A row that counts.
#[derive(Clone, Debug)]
struct Row {
    /// Where it stands; item 0 where nothing tells.
    block: u32,
    item: u16,
    verdict: String,
    values: String,
}

/// All rows that count, by table.
type Tables = BTreeMap<String, Vec<Row>>;

fn run(source: Arc<dyn Source>, folder: &Path) -> Option<(SalvageReport, Tables)> {
    let cluster = Cluster::open(source).ok()?;
    let selection = Selection {
        databases: vec![Glob::new(DATABASE)],
        ..Selection::default()
    };
    let options = SalvageOptions {
        rows: Rows::All,
        selection,
        ..options(folder, "copy")
    };
    let account = salvage(&cluster, &options, &Quiet).expect("a destination");
    let mut tables = Tables::new();
    for table in &account.tables {
        let file = table.file.as_ref().expect("written whole");
        let text = std::fs::read(folder.join(file)).expect("a file");
        let text = String::from_utf8_lossy(&text).into_owned();
        let rows = text.lines().filter_map(row).collect();
        tables.insert(format!("{}.{}", table.schema, table.table), rows);
    }
    Some((account, tables))
}

impl Row {
    fn with_place(&self) -> (u32, u16, &str) {
        (self.block, self.item, &self.values)
    }
}

/// xmin, xmax, ctid, verdict, then the values.
fn row(line: &str) -> Option<Row> {
    let mut parts = line.splitn(5, '\t');
    let (ctid, verdict) = (parts.nth(2)?, parts.next()?);
    let counts = matches!(
        verdict,
        "live" | "carved" | "perhaps-live" | "perhaps-deleted"
    );
    let place = ctid.trim_start_matches('(').trim_end_matches(')');
    let (block, item) = place.split_once(',')?;
    let row = Row {
        block: block.parse().ok()?,
        item: item.parse().ok()?,
        verdict: verdict.to_owned(),
        values: parts.next().unwrap_or_default().to_owned(),
    };
    counts.then_some(row)
}

/// The account says of the row, of the page that it stands on or of the table's long values, that
/// it may not be what it was.
fn is_marked(row: &Row, table: &TableAccount) -> bool {
    let is_here = |place: &LossPlace| {
        place.in_toast
            || (place.block == row.block && place.item.is_none_or(|item| item == row.item))
    };
    row.verdict != "live" || table.places_omitted > 0 || table.places.iter().any(is_here)
}

/// Blocks that a patch changes, by path.
fn hurt_blocks(patch: &Patch) -> BTreeMap<String, BTreeSet<u32>> {
    let mut blocks: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for change in &patch.changes {
        let hurt = blocks.entry(change.path().to_owned()).or_default();
        match change {
            Change::Bytes { offset, after, .. } => {
                let last = (offset + after.len() as u64 - 1) / PAGE_BYTES;
                hurt.extend(
                    (offset / PAGE_BYTES..=last).filter_map(|block| u32::try_from(block).ok()),
                );
            }
            Change::Cut { len, .. } => {
                hurt.extend(u32::try_from(len / PAGE_BYTES).unwrap_or(0)..10_000)
            }
            _ => hurt.extend(0..10_000),
        }
    }
    blocks
}

/// Rows of `left` that are not in `right`, each as often as it is missing. One that stands in its
/// place in both is not the one that is missing, where the same values stand twice.
fn less(left: &[Row], right: &[Row]) -> Vec<Row> {
    let places: BTreeSet<_> = right.iter().map(Row::with_place).collect();
    let (settled, open): (Vec<&Row>, Vec<&Row>) = left
        .iter()
        .partition(|row| places.contains(&row.with_place()));
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in right {
        *counts.entry(&row.values).or_default() += 1;
    }
    let missing = settled.into_iter().chain(open).filter(|row| {
        let count = counts.entry(&row.values).or_default();
        let is_there = *count > 0;
        *count = count.saturating_sub(1);
        !is_there
    });
    missing.cloned().collect()
}

struct Hospital {
    source: Arc<dyn Source>,
    cluster: Cluster,
    /// Path of each table's file, by name.
    files: BTreeMap<String, String>,
    healthy: Tables,
}

impl Hospital {
    fn new(pgdata: &Path) -> Self {
        let source: Arc<dyn Source> = Arc::new(DataDirectory::open(pgdata).expect("a directory"));
        let cluster = Cluster::open(Arc::clone(&source)).expect("a cluster");
        let oid = cluster
            .databases
            .values()
            .find(|database| database.name.as_deref() == Some(DATABASE))
            .expect("the database")
            .oid;
        let catalog = cluster.catalog(oid);
        let files = catalog.relations.values().map(|relation| {
            let path = format!("base/{oid}/{}", relation.filenode);
            (relation.qualified_name(), path)
        });
        let files = files.collect();
        let folder = tempfile::tempdir().expect("a directory");
        let (account, healthy) =
            run(Arc::clone(&source), &folder.path().join("out")).expect("a cluster");
        assert_eq!(
            account.outcome,
            Outcome::Whole,
            "{:?}",
            account.not_salvaged
        );
        Hospital {
            source,
            cluster,
            files,
            healthy,
        }
    }

    /// What is wrong with the salvage after this injury.
    fn complaints(&self, planned: &PlannedInjury) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a directory");
        let hurt = overlay(Arc::clone(&self.source), &planned.patch).expect("patches");
        let Some((account, tables)) = run(hurt, &folder.path().join("out")) else {
            // Refused with a sentence: the version or the control file is gone.
            return Vec::new();
        };
        let hurt_blocks = hurt_blocks(&planned.patch);
        let none = BTreeSet::new();
        let mut complaints = Vec::new();
        let mut differs = false;
        for (name, healthy) in &self.healthy {
            let found = tables.get(name).map_or(&[][..], Vec::as_slice);
            let (missing, more) = (less(healthy, found), less(found, healthy));
            differs |= !missing.is_empty() || !more.is_empty();
            let blocks = self.files.get(name).and_then(|path| hurt_blocks.get(path));
            let elsewhere = |row: &&Row| !blocks.unwrap_or(&none).contains(&row.block);
            let only_this = planned.patch.changes.iter().all(|change| {
                self.files
                    .iter()
                    .any(|(other, path)| change.path() == path && !other.starts_with("pg_"))
            });
            if only_this && missing.iter().any(|row| elsewhere(&row)) {
                complaints.push(format!(
                    "{name}: {} rows outside are missing",
                    missing.len()
                ));
            }
            let counts = account
                .tables
                .iter()
                .find(|table| format!("{}.{}", table.schema, table.table) == *name);
            let is_guess = |note: &String| note.contains("guessed");
            let is_guessed = counts.is_some_and(|table| table.notes.iter().any(is_guess));
            let is_marked = |row: &&Row| counts.is_some_and(|table| is_marked(row, table));
            let invented: Vec<&Row> = more.iter().filter(|row| !is_marked(row)).collect();
            if !invented.is_empty() && !is_guessed {
                complaints.push(format!(
                    "{name}: {} rows are invented: {:?}",
                    invented.len(),
                    invented.first()
                ));
            }
        }
        if differs && account.outcome == Outcome::Whole {
            complaints.push("rows differ and the account says that all is whole".into());
        }
        complaints
    }
}

/// Hurts the clinic of a major with every `of`th injury, from `first` on.
fn hurt(major: u16, first: usize, of: usize) {
    let seeded = seed(&server(major), Checksums::On);
    let hospital = Hospital::new(&seeded.pgdata);
    let targets = InjuryTargets::new(&hospital.cluster);
    let (mut complaints, mut tried) = (Vec::new(), 0);
    let chosen = injuries().iter().zip(0..).skip(first).step_by(of);
    for (injury, number) in chosen.clone() {
        let options = InjuryOptions {
            database: Some(DATABASE.into()),
            seed: number,
            sealed: number % 2 == 0,
            ..InjuryOptions::default()
        };
        let Ok(planned) = plan_on(&targets, injury, &options) else {
            continue;
        };
        let name = injury.name;
        if planned.damage.blind.is_some() || AS_THE_SERVER.contains(&name) {
            continue;
        }
        tried += 1;
        let found = hospital.complaints(&planned);
        complaints.extend(
            found
                .into_iter()
                .map(|words| format!("{name} at {}: {words}", planned.place)),
        );
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    // The others are blind, find no fitting page here, or stand on the list above.
    let all = chosen.count();
    let least = if of == 1 { all * 3 / 4 } else { all / 2 };
    assert!(tried >= least, "{tried} of {all}");
}

#[test]
fn what_is_missing_is_said_and_nothing_is_invented() {
    hurt(15, 0, 1);
}

/// Each hurts some that the other leaves out; on 15 it is all of them.
#[test]
fn the_same_of_13() {
    hurt(13, 0, 4);
}

#[test]
fn the_same_of_18() {
    hurt(18, 2, 4);
}
