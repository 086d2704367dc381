//! Rows whose transactions' status is lost: each is in the account with its verdict, written or
//! not.

use pgclinic_cluster::Cluster;
use pgclinic_model::Glob;
use pgclinic_model::document::{Outcome, TableAccount};

use crate::common;

use std::path::PathBuf;
use std::sync::Arc;

use common::{options, session};
use pgclinic_salvage::{Rows, salvage};
use pgclinic_servers::{Checksums, StartOptions, StopMode};
use pgclinic_source::{DataDirectory, Overlay, OverlayPatch};
use pgclinic_testkit::{Quiet, TempCopy, copy_of, seed, server};

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

/// The first page of a table, and what a change of the headers of its first five rows makes of a
/// salvage.
struct Headers {
    copy: TempCopy,
    path: PathBuf,
    whole: Vec<u8>,
}

impl Headers {
    fn of(statements: &[&str]) -> Self {
        let copy = copy_of(&seed(&server(15), Checksums::Off));
        let mut running = copy.start().expect("a server");
        let mut own = session(&running, "postgres");
        for sql in statements {
            own.execute(sql).expect(sql);
        }
        let path = own.query_value("SELECT pg_relation_filepath('bare')");
        let path = copy.pgdata.join(path.expect("a path").expect("a file"));
        drop(own);
        running.stop(StopMode::Fast).expect("stopped");
        let whole = std::fs::read(&path).expect("a file");
        Headers { copy, path, whole }
    }

    /// The account of the table, and its suspect rows. The page says no longer that all of its rows
    /// are seen.
    fn changed(&self, change: impl Fn(&mut [u8])) -> (TableAccount, Vec<(String, String)>) {
        let mut page = self.whole.clone();
        page[10] &= !4;
        for item in 0..5 {
            let pointer = u32::from_le_bytes(*page[24 + 4 * item..].first_chunk().expect("four"));
            change(&mut page[(pointer & 0x7fff) as usize..]);
        }
        std::fs::write(&self.path, page).expect("written");
        let folder = tempfile::tempdir().expect("a directory");
        let mut options = options(&folder.path().join("out"), "copy");
        options.selection.databases = vec![Glob::new("postgres")];
        let mut account = common::salvaged(&self.copy.pgdata, &options);
        assert_eq!(
            account.outcome == Outcome::Whole,
            account.tables[0].is_whole()
        );
        let suspects = common::suspects(&folder.path().join("out/postgres/public.bare"));
        (account.tables.remove(0), suspects)
    }
}

fn set_mask(row: &mut [u8], set: u16, clear: u16) {
    let mask = u16::from_le_bytes([row[20], row[21]]);
    row[20..22].copy_from_slice(&(mask & !clear | set).to_le_bytes());
}

const HINTS_OF_XMIN: u16 = 0x0300;
const MOVED: [u16; 3] = [0x4000, 0x8000, 0xC000];

/// No server of today moves rows so: what the mark would say of a row counts for nothing.
#[test]
fn a_row_marked_as_moved_by_nobody_is_suspect() {
    let headers = Headers::of(&[
        "CREATE TABLE bare AS SELECT n, 'word ' || n AS w FROM generate_series(1, 100) n",
    ]);
    let (table, _) = headers.changed(|row| set_mask(row, 0, HINTS_OF_XMIN));
    assert!(table.is_whole(), "{table:#?}");
    // The number of the VACUUM stands where the number of the command does.
    for mover in [0u32, 3, 9, 1_000_000] {
        for moved in MOVED {
            let (table, suspects) = headers.changed(|row| {
                set_mask(row, moved, HINTS_OF_XMIN);
                row[8..12].copy_from_slice(&mover.to_le_bytes());
            });
            let rows = &table.rows;
            let counted = (rows.written, rows.uncertain, rows.suspect);
            assert_eq!(counted, (100, 5, 5), "{mover} {moved:x}: {rows:?}");
            let says_why =
                |(reason, _): &(String, String)| reason.contains("moved by a VACUUM FULL");
            assert!(suspects.iter().all(says_why), "{suspects:?}");
        }
    }
}

/// A visibility map says of a page that all transactions see its rows: one that is dead by its
/// header was not when that was written.
#[test]
fn a_dead_row_of_a_page_that_the_map_calls_all_visible_is_withheld() {
    let headers = Headers::of(&[
        "CREATE TABLE bare AS SELECT n, 'word ' || n AS w FROM generate_series(1, 100) n",
        "VACUUM bare",
    ]);
    // Here the map and the page contradict each other.
    let (table, _) = headers.changed(|_| {});
    assert_eq!((table.rows.written, table.rows.withheld), (100, 0));
    let deleted_by_its_maker = |row: &mut [u8]| {
        row.copy_within(0..4, 4);
        set_mask(row, 0, 0x0800);
    };
    let written_by_nobody = |row: &mut [u8]| {
        row[0..4].fill(0);
        set_mask(row, 0, HINTS_OF_XMIN);
    };
    for change in [deleted_by_its_maker, written_by_nobody] {
        let (table, _) = headers.changed(change);
        let rows = &table.rows;
        assert_eq!((rows.written, rows.withheld), (95, 5), "{rows:?}");
        let told = table
            .places
            .iter()
            .filter(|place| place.why.contains("by the visibility map"));
        assert_eq!(told.count(), 5);
    }
}

/// No hint bit knows that the rows were inserted; WAL has the commit.
#[test]
fn a_commit_that_pg_xact_has_lost_stands_in_the_wal() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let kept = StartOptions::default().with("wal_keep_size", "64MB");
    let mut running = copy.start_with(&kept).expect("a server");
    let mut own = session(&running, "postgres");
    own.execute(STATEMENTS[0]).expect("a table");
    let next = "SELECT txid_snapshot_xmax(txid_current_snapshot())";
    let xid = own.query_value(next).expect(next).expect("a number");
    let xid: usize = xid.parse().expect("a number");
    own.execute(STATEMENTS[1]).expect("rows");
    drop(own);
    running.stop(StopMode::Fast).expect("stopped");

    let salvaged = || {
        let cluster = pgclinic_testkit::open(&copy.pgdata);
        let folder = tempfile::tempdir().expect("a directory");
        let mut options = options(folder.path(), "copy");
        options.selection.databases = vec![Glob::new("postgres")];
        salvage(&cluster, &options, &Quiet).expect("a destination")
    };
    let sound = salvaged();
    assert_eq!(sound.outcome, Outcome::Whole, "{:?}", sound.not_salvaged);

    let path = copy.pgdata.join("pg_xact/0000");
    let mut statuses = std::fs::read(&path).expect("statuses");
    statuses[xid / 4] &= !(3 << (xid % 4 * 2));
    std::fs::write(&path, statuses).expect("written");
    let hurt = salvaged();
    assert_eq!(hurt.outcome, Outcome::Incomplete);
    let denied = format!("what pg_xact says of 1 transaction, {xid} to {xid}");
    let mut gaps = hurt.not_salvaged.iter();
    assert!(
        gaps.any(|gap| gap.why.contains(&denied)),
        "{:?}",
        hurt.not_salvaged
    );
}
