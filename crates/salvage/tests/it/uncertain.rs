//! Rows whose transactions' status is lost: each is in the account with its verdict, written or
//! not.

use pgclinic_cluster::Cluster;
use pgclinic_model::Glob;
use pgclinic_model::document::Outcome;

use crate::common;

use std::sync::Arc;

use common::{options, session};
use pgclinic_salvage::{Rows, salvage};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_source::{DataDirectory, Overlay, OverlayPatch};
use pgclinic_testkit::{Quiet, copy_of, seed, server};

/// What a transaction did is not in hint bits before another one looks: here none does.
const STATEMENTS: [&str; 4] = [
    "CREATE TABLE open (id int, word text) WITH (autovacuum_enabled = false)",
    "INSERT INTO open SELECT n, 'word ' || n FROM generate_series(1, 100) n",
    "SELECT count(*) FROM open",
    "BEGIN; DELETE FROM open WHERE id <= 10; UPDATE open SET word = 'newer' WHERE id > 90; COMMIT",
];

#[test]
fn each_row_of_a_lost_transaction_has_its_verdict() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    for sql in STATEMENTS {
        // Another session each time reads the catalogs anew, and sets their hint bits.
        session(&running, "postgres").execute(sql).expect("done");
    }
    running.stop(StopMode::Fast).expect("stopped");

    let directory = DataDirectory::open(&copy.pgdata).expect("a directory");
    let lost = OverlayPatch::Remove {
        path: "pg_xact/0000".into(),
    };
    let hurt = Overlay::new(Arc::new(directory), vec![lost]).expect("plain paths");
    let cluster = Cluster::open(Arc::new(hurt)).expect("a cluster");
    let folder = tempfile::tempdir().expect("a directory");
    let mut options = options(&folder.path().join("live"), "copy");
    options.selection.databases = vec![Glob::new("postgres")];
    options.selection.relations = vec![Glob::new("public.open")];
    let account = salvage(&cluster, &options, &Quiet).expect("a destination");
    assert_eq!(account.outcome, Outcome::Damaged);
    let table = account.tables.first().expect("the table");
    let rows = &table.rows;
    assert_eq!((rows.live, rows.uncertain, rows.withheld), (80, 20, 10));
    assert_eq!(rows.written, 100, "{rows:?}");
    let file = std::fs::read_to_string(folder.path().join("live/postgres/public.open.copy"));
    assert_eq!(file.expect("a file").lines().count(), 80);
    let suspects = common::suspects(&folder.path().join("live/postgres/public.open"));
    assert_eq!((rows.suspect, suspects.len()), (20, 20));
    let says_why = |(reason, _): &(String, String)| reason.starts_with("perhaps-");
    assert!(suspects.iter().all(says_why), "{suspects:?}");
    for (verdict, count) in [
        ("perhaps-live", 10),
        ("perhaps-deleted", 10),
        ("perhaps-replaced", 10),
    ] {
        let told = table.places.iter();
        let told = told.filter(|place| place.why.starts_with(verdict) && place.item.is_some());
        assert_eq!(told.count(), count, "{verdict}: {:?}", table.places);
    }

    options.rows = Rows::All;
    options.destination = pgclinic_salvage::Destination::Folder(folder.path().join("all"));
    let account = salvage(&cluster, &options, &Quiet).expect("a destination");
    assert_eq!(account.tables.first().expect("the table").rows.written, 110);
}
