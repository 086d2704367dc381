//! Line pointers that were overwritten: the rows that they named are found by their structure, all
//! of them.

use pgclinic_cluster::Cluster;
use pgclinic_model::{Glob, Selection};

use crate::common;

use std::sync::Arc;

use common::options;
use pgclinic_salvage::{SalvageOptions, salvage};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_source::{Overlay, OverlayPatch};
use pgclinic_testkit::{Quiet, copy_of, directory, seed, server};

/// A line pointer as it lies on the page.
fn pointer(offset: u32, flags: u32, length: u32) -> [u8; 4] {
    (offset | flags << 15 | length << 17).to_le_bytes()
}

#[test]
fn a_wild_line_pointer_hides_no_row() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    let sql = "CREATE TABLE public.wild AS SELECT i AS id, md5(i::text) AS word FROM generate_series(1, 500) i; CHECKPOINT";
    session.execute(sql).expect("a table");
    let path = session.query_value("SELECT pg_relation_filepath('public.wild')");
    let path = path.expect("an answer").expect("a path");
    drop(session);
    running.stop(StopMode::Fast).expect("a stop");

    // Dead and long, in the page but over others' rows, behind its end, a redirection, unused.
    let wild = [
        pointer(10_538, 3, 21_670),
        pointer(6_004, 1, 1_500),
        pointer(12_248, 1, 6_848),
        pointer(77, 2, 9),
        pointer(16, 0, 16),
    ];
    let patch = OverlayPatch::Bytes {
        path,
        offset: 8192 + 24,
        bytes: wild.concat(),
    };
    let overlay = Overlay::new(directory(&copy.pgdata), vec![patch]).expect("plain paths");
    let cluster = Cluster::open(Arc::new(overlay)).expect("a cluster");
    let folder = tempfile::tempdir().expect("a directory");
    let options = SalvageOptions {
        selection: Selection {
            relations: vec![Glob::new("public.wild")],
            ..Selection::default()
        },
        ..options(&folder.path().join("out"), "csv")
    };
    let account = salvage(&cluster, &options, &Quiet).expect("a destination");
    let rows = account.totals;
    assert_eq!((rows.written, rows.carved, rows.lost), (500, 5, 0));
    let mut ids: Vec<u32> = common::with_suspects(&folder.path().join("out/clinic/public.wild"))
        .iter()
        .map(|line| {
            line.split(',')
                .next()
                .and_then(|id| id.parse().ok())
                .expect("an id")
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=500).collect::<Vec<_>>());
}

/// A page whose content begins some bytes too late or too early gives its rows, but for one at the
/// end that was cut off.
#[test]
fn content_that_was_moved_is_read_where_it_stands() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    let sql = "CREATE TABLE public.moved AS SELECT i AS id, md5(i::text) AS word FROM generate_series(1, 500) i; CHECKPOINT";
    session.execute(sql).expect("a table");
    let path = session.query_value("SELECT pg_relation_filepath('public.moved')");
    let path = path.expect("an answer").expect("a path");
    drop(session);
    running.stop(StopMode::Fast).expect("a stop");

    let file = std::fs::read(copy.pgdata.join(&path)).expect("a file");
    let page = file.get(8192..2 * 8192).expect("a page");
    let late = [vec![0xA5; 37], page[..8192 - 37].to_vec()].concat();
    let early = [page[11..].to_vec(), vec![0xA5; 11]].concat();
    for (bytes, moved) in [(late, 37), (early, -11)] {
        let patch = OverlayPatch::Bytes {
            path: path.clone(),
            offset: 8192,
            bytes,
        };
        let overlay = Overlay::new(directory(&copy.pgdata), vec![patch]).expect("plain paths");
        let cluster = Cluster::open(Arc::new(overlay)).expect("a cluster");
        let folder = tempfile::tempdir().expect("a directory");
        let options = SalvageOptions {
            selection: Selection {
                relations: vec![Glob::new("public.moved")],
                ..Selection::default()
            },
            ..options(&folder.path().join("out"), "csv")
        };
        let account = salvage(&cluster, &options, &Quiet).expect("a destination");
        assert!(account.totals.carved > 100, "{account:?}");
        let words = format!(
            "the content of the page was moved by {moved} bytes: it was read where it stood"
        );
        let table = account.tables.first().expect("the table");
        assert!(
            table.places.iter().any(|place| place.why == words),
            "{:?}",
            table.places
        );
        let rows = common::with_suspects(&folder.path().join("out/clinic/public.moved"));
        let right = rows.iter().filter(|line| {
            let id: Option<u32> = line.split(',').next().and_then(|id| id.parse().ok());
            id.is_some_and(|id| (1..=500).contains(&id))
        });
        assert!(right.count() >= 499);
    }
}

/// Rows whose line pointers `pd_lower` has cut off come back by them, also wide and dead ones; the
/// check counts them.
#[test]
fn rows_behind_a_lowered_pd_lower_are_brought_back() {
    let copy = copy_of(&seed(&server(15), Checksums::Off));
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    let sql = "CREATE TABLE public.cut AS SELECT i AS id, md5(i::text) AS word FROM generate_series(1, 500) i; DELETE FROM public.cut WHERE id = 120; CHECKPOINT";
    session.execute(sql).expect("a table");
    let path = session.query_value("SELECT pg_relation_filepath('public.cut')");
    let path = path.expect("an answer").expect("a path");
    drop(session);
    running.stop(StopMode::Fast).expect("a stop");

    let lower: u16 = 24 + 4 * 100;
    let patch = OverlayPatch::Bytes {
        path,
        offset: 12,
        bytes: lower.to_le_bytes().to_vec(),
    };
    let overlay = Overlay::new(directory(&copy.pgdata), vec![patch]).expect("plain paths");
    let cluster = Cluster::open(Arc::new(overlay)).expect("a cluster");
    let folder = tempfile::tempdir().expect("a directory");
    let options = SalvageOptions {
        selection: Selection {
            relations: vec![Glob::new("public.cut")],
            ..Selection::default()
        },
        ..options(&folder.path().join("out"), "csv")
    };
    let account = salvage(&cluster, &options, &Quiet).expect("a destination");
    let rows = account.totals;
    assert_eq!((rows.written, rows.carved, rows.lost), (499, 19, 0));
    let places = &account.tables.first().expect("the table").places;
    let items: Vec<_> = places.iter().filter_map(|place| place.item).collect();
    let expected: Vec<u16> = (101..=120).filter(|item| *item != 120).collect();
    assert_eq!(items, expected);
    assert_eq!(
        common::with_suspects(&folder.path().join("out/clinic/public.cut")).len(),
        499
    );
}
