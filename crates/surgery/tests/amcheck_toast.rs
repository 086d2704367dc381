//! What `amcheck` finds in long values that were hurt, each in another way, we find at the same row.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use pgclinic_cluster::Cluster;
use pgclinic_diagnose::plan::Change;
use pgclinic_diagnose::{CheckOptions, Finding, Level, Progress, Selection, check_cluster};
use pgclinic_servers::{Checksums, Session, StartOptions};
use pgclinic_source::DataDirectory;
use pgclinic_surgery::{InjuryOptions, Sites, injury_named, plan_on};
use pgclinic_testkit::{TempCopy, copy_of, seed, server};

/// Injuries of chunks and of the pointers to them.
const LONG_VALUES: &[&str] = &[
    "chunk-number-negative",
    "chunk-number-shifted",
    "chunk-empty",
    "chunk-shortened",
    "chunk-compressed",
    "chunk-external",
    "toast-size",
    "toast-value",
    "compressed-size",
    "external-flag",
    "toast-relation",
];

struct Quiet;

impl Progress for Quiet {
    fn expect(&self, _bytes: u64) {}
    fn advance(&self, _bytes: u64) {}
    fn is_interrupted(&self) -> bool {
        false
    }
}

fn open(pgdata: &Path) -> Cluster {
    let source = Arc::new(DataDirectory::open(pgdata).expect("a folder"));
    Cluster::open(source).expect("a cluster")
}

fn check(pgdata: &Path) -> Vec<Finding> {
    let options = CheckOptions {
        level: Level::Full,
        threads: NonZeroUsize::MIN,
        evidence: 0,
        selection: Selection::default(),
        spec: String::new(),
        memory_bytes: CheckOptions::MEMORY_BYTES,
        spill_folder: std::env::temp_dir(),
    };
    check_cluster(&open(pgdata), &options, &Quiet).findings
}

fn write(pgdata: &Path, change: &Change) {
    let Change::Bytes {
        path,
        offset,
        after,
        ..
    } = change
    else {
        panic!("rows are hurt in place");
    };
    let file = File::options()
        .write(true)
        .open(pgdata.join(path))
        .expect("a file");
    file.write_all_at(after, *offset).expect("a write");
}

/// Hurts one page for each injury; how many found a page of their own.
fn hurt(copy: &TempCopy) -> usize {
    let cluster = open(&copy.pgdata);
    let sites = Sites::new(&cluster);
    let mut taken = BTreeSet::new();
    for name in LONG_VALUES {
        let injury = injury_named(name).expect("an injury");
        for seed in 0..8 {
            let options = InjuryOptions {
                database: Some("clinic".into()),
                seed,
                sealed: true,
                ..InjuryOptions::default()
            };
            let Ok(planned) = plan_on(&sites, injury, &options) else {
                continue;
            };
            if taken.insert((planned.place.relation_oid, planned.place.block)) {
                let changes = planned.patch.changes.iter();
                changes.for_each(|change| write(&copy.pgdata, change));
                break;
            }
        }
    }
    taken.len()
}

/// Line pointers by relation and block, with what `amcheck` says of them.
fn amcheck(session: &mut Session) -> BTreeMap<(u32, u32, u16), String> {
    let tables = "SELECT oid FROM pg_class WHERE relam = 2 AND oid >= 16384 \
                  AND relkind IN ('r', 'm') AND relpersistence = 'p'";
    let mut found = BTreeMap::new();
    for row in session.query(tables).expect("the tables") {
        let oid = row[0].clone().expect("an oid");
        let sql =
            format!("SELECT blkno, offnum, msg FROM ext.verify_heapam({oid}, check_toast := true)");
        for row in session.query(&sql).expect("an answer") {
            let number = |at: usize| row[at].as_deref().and_then(|text| text.parse::<u32>().ok());
            let place = (
                oid.parse().expect("an oid"),
                number(0).expect("a block"),
                u16::try_from(number(1).expect("an item")).expect("an item"),
            );
            found.insert(place, row[2].clone().unwrap_or_default());
        }
    }
    found
}

fn finds_all_that_amcheck_finds(major: u16) {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let pages = hurt(&copy);
    assert!(pages >= 9, "{pages} pages were hurt");
    let ours: BTreeSet<(u32, u32, u16)> = check(&copy.pgdata)
        .into_iter()
        .filter_map(|finding| {
            let place = finding.place;
            Some((place.relation_oid?, place.block?, place.item.unwrap_or(0)))
        })
        .collect();
    let options = StartOptions::default()
        .with("max_prepared_transactions", "8")
        .with("autovacuum", "off");
    let server = copy.start_with(&options).expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    let theirs = amcheck(&mut session);
    assert!(theirs.len() >= 8, "amcheck finds {}", theirs.len());
    let missed: Vec<String> = theirs
        .iter()
        .filter(|((oid, block, item), _)| {
            !ours.contains(&(*oid, *block, *item)) && !ours.contains(&(*oid, *block, 0))
        })
        .map(|(place, words)| format!("{place:?}: {words}"))
        .collect();
    assert!(missed.is_empty(), "\n{}", missed.join("\n"));
}

#[test]
fn of_15() {
    finds_all_that_amcheck_finds(15);
}

#[test]
fn of_18() {
    finds_all_that_amcheck_finds(18);
}
