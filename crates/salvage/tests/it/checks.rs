//! What was saved is held to the keys of its tables: rows that a key should have kept out, and rows
//! whose parents are lost.

use pgclinic_cluster::Cluster;
use pgclinic_model::document::{CheckAccount, CountAccount, Outcome, SalvageReport};
use pgclinic_spill::MemoryPlan;

use crate::common;

use std::sync::Arc;

use common::{options, session};
use pgclinic_salvage::salvage;
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_source::{DataDirectory, Overlay, OverlayPatch};
use pgclinic_testkit::{Quiet, copy_of, open, seed, server};

const PAGE_BYTES: usize = 8192;

const TABLES: &str = "CREATE TABLE parent (id numeric PRIMARY KEY, code char(10) UNIQUE, at interval UNIQUE);
     INSERT INTO parent SELECT n, n::text, n * interval '1 day' FROM generate_series(1, 5000) n;
     CREATE TABLE child (word text, parent int REFERENCES parent, code char(10) REFERENCES parent (code), \
       UNIQUE NULLS NOT DISTINCT (word), UNIQUE (parent, word));
     INSERT INTO child SELECT 'w' || n, n, n::text FROM generate_series(1, 5000) n;
     INSERT INTO child VALUES (NULL, NULL, NULL), ('only', NULL, '7');
     CREATE TABLE parts (id int PRIMARY KEY, name text) PARTITION BY RANGE (id);
     CREATE TABLE parts_1 (name text, id int NOT NULL); ALTER TABLE parts ATTACH PARTITION parts_1 FOR VALUES FROM (1) TO (100);
     CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (100) TO (1000);
     INSERT INTO parts SELECT n, 'p' FROM generate_series(1, 999) n;
     CREATE TABLE of_parts (id int REFERENCES parts, also int);
     INSERT INTO of_parts SELECT n, n FROM generate_series(1, 999) n; ANALYZE of_parts;";

fn counted<'a>(account: &'a SalvageReport, table: &str) -> &'a CountAccount {
    let found = account.counts.iter().find(|count| count.table == table);
    found.unwrap_or_else(|| panic!("{table} in {:?}", account.counts))
}

fn check<'a>(account: &'a SalvageReport, key: &str) -> &'a CheckAccount {
    let found = account.checks.iter().find(|check| check.key == key);
    found.unwrap_or_else(|| panic!("{key} in {:?}", account.checks))
}

#[test]
fn whole_tables_hold_their_keys_and_hurt_ones_do_not() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = session(&running, "postgres");
    session.execute(TABLES).expect("tables");
    let place = session.query_value("SELECT pg_relation_filepath('parent')");
    let place = place.expect("a file").expect("a file");
    let gone = "SELECT count(*), min(id), max(id) FROM parent WHERE (ctid::text::point)[0] = 3";
    let gone = session.query(gone).expect("rows of a block");
    drop(session);
    running.stop(StopMode::Fast).expect("stopped");

    let folder = tempfile::tempdir().expect("a directory");
    let mut options = options(&folder.path().join("whole"), "csv");
    options.verify = true;
    // So that keys are sorted on disk.
    options.memory = MemoryPlan::new(1 << 20);
    let account = salvage(&open(&copy.pgdata), &options, &Quiet);
    let account = account.expect("a destination");
    assert_eq!(account.outcome, Outcome::Whole);
    let broken: Vec<_> = account
        .checks
        .iter()
        .filter(|check| check.broken > 0)
        .collect();
    assert!(broken.is_empty(), "{broken:?}");
    assert_eq!(check(&account, "child_word_key").keys, 5002);
    assert_eq!(check(&account, "of_parts_id_fkey").keys, 999);
    assert_eq!(check(&account, "of_parts_id_fkey").not_checked, None);
    assert!(check(&account, "parent_at_key").not_checked.is_some());
    let with_index = account.counts.iter().filter(|count| count.led_to.is_some());
    let with_index: Vec<&CountAccount> = with_index.collect();
    assert!(with_index.len() >= 20, "{:?}", account.counts);
    let wrong: Vec<_> = with_index.iter().filter(|count| !count.holds()).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(counted(&account, "parent").led_to, Some(5000));
    assert_eq!(
        counted(&account, "child").index.as_deref(),
        Some("public.child_parent_word_key")
    );
    let uncounted = counted(&account, "of_parts");
    assert_eq!((uncounted.written, uncounted.estimate), (999, Some(999)));
    assert!(uncounted.not_counted.is_some() && uncounted.index.is_none());

    // A page of the parent is lost, and one that is there twice has its rows twice.
    let directory_of = DataDirectory::open(&copy.pgdata).expect("a directory");
    let file = std::fs::read(copy.pgdata.join(&place)).expect("a file");
    let second = file.get(PAGE_BYTES..2 * PAGE_BYTES).expect("a page");
    let patches = [(3, vec![0; PAGE_BYTES]), (4, second.to_vec())];
    let patches = patches.map(|(block, bytes)| OverlayPatch::Bytes {
        path: place.clone(),
        offset: block * PAGE_BYTES as u64,
        bytes,
    });
    let hurt = Overlay::new(Arc::new(directory_of), patches.to_vec()).expect("plain paths");
    let cluster = Cluster::open(Arc::new(hurt)).expect("a cluster");
    options.destination = pgclinic_salvage::Destination::Folder(folder.path().join("hurt"));
    let account = salvage(&cluster, &options, &Quiet).expect("a destination");
    assert_eq!(account.outcome, Outcome::Damaged);
    let twice = check(&account, "parent_pkey");
    assert!(
        twice.broken > 50 && twice.listed.len() as u64 == twice.broken,
        "{twice:?}"
    );
    let orphans = check(&account, "child_parent_fkey");
    let [Some(count), Some(first), Some(last)] = gone.first().expect("a row").as_slice() else {
        panic!("{gone:?}");
    };
    let lost: u64 = count.parse().expect("a number");
    assert!(orphans.broken >= lost, "{} of {lost}", orphans.broken);
    assert!(orphans.listed.contains(first) && orphans.listed.contains(last));
    assert_eq!(check(&account, "child_word_key").broken, 0);
    let parent = counted(&account, "parent");
    assert_eq!(parent.nowhere, lost);
    // The page that is there twice may hold a row more or less than the one in whose place it
    // stands.
    let missing = parent.missing();
    assert!(missing > 0 && missing.abs_diff(lost) < 5, "{parent:?}");
    assert!(counted(&account, "child").holds());
}

/// Rows with and without versions in the place of others, deleted ones, and some that never were.
const QUIET: [&str; 5] = [
    "CREATE TABLE quiet (id int PRIMARY KEY, word text) WITH (autovacuum_enabled = false)",
    "INSERT INTO quiet SELECT n, md5(n::text) FROM generate_series(1, 2000) n",
    "UPDATE quiet SET word = 'again' WHERE id % 7 = 0",
    "DELETE FROM quiet WHERE id % 11 = 0",
    "BEGIN; INSERT INTO quiet SELECT n, '' FROM generate_series(3001, 3100) n; ROLLBACK",
];

/// Rows of a page that became zeros without a trace in the visibility map: nothing but the index
/// knows of them.
#[test]
fn an_index_tells_of_rows_that_nothing_else_tells_of() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = session(&running, "postgres");
    for sql in QUIET {
        session.execute(sql).expect("a table");
    }
    let place = session.query_value("SELECT pg_relation_filepath('quiet')");
    let place = place.expect("a file").expect("a file");
    let on_page = "SELECT count(*) FROM quiet WHERE (ctid::text::point)[0] = 2";
    let on_page = session.query_value(on_page).expect("a count");
    let on_page: u64 = on_page
        .and_then(|rows| rows.parse().ok())
        .expect("a number");
    drop(session);
    running.stop(StopMode::Fast).expect("stopped");

    let folder = tempfile::tempdir().expect("a directory");
    let mut options = options(&folder.path().join("whole"), "csv");
    options.verify = true;
    options.selection.relations = vec![pgclinic_model::Glob::new("public.quiet")];
    let account = salvage(&open(&copy.pgdata), &options, &Quiet).expect("a destination");
    assert_eq!(account.outcome, Outcome::Whole);
    let quiet = counted(&account, "quiet");
    assert!(quiet.holds() && quiet.written == 1819, "{quiet:?}");

    let directory = DataDirectory::open(&copy.pgdata).expect("a directory");
    let zeros = OverlayPatch::Bytes {
        path: place,
        offset: 2 * PAGE_BYTES as u64,
        bytes: vec![0; PAGE_BYTES],
    };
    let hurt = Overlay::new(Arc::new(directory), vec![zeros]).expect("plain paths");
    let cluster = Cluster::open(Arc::new(hurt)).expect("a cluster");
    options.destination = pgclinic_salvage::Destination::Folder(folder.path().join("hurt"));
    let account = salvage(&cluster, &options, &Quiet).expect("a destination");
    let table = account.tables.first().expect("the table");
    assert!(!table.is_whole() && table.empty_pages == 1, "{table:?}");
    assert_eq!(account.outcome, Outcome::Damaged);
    let quiet = counted(&account, "quiet");
    assert!(
        quiet.nowhere >= on_page && quiet.missing() >= on_page,
        "{quiet:?}"
    );
    assert_eq!(quiet.led_to, Some(1819 - on_page));
}
