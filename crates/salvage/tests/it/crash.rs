//! A server killed in the middle of its work: what it had committed is salvaged from the
//! write-ahead log.

use pgclinic_model::document::Outcome;

use crate::common;

use common::{compare, copied, options, salvaged};
use pgclinic_servers::{Checksums, Server, StartOptions};
use pgclinic_testkit::{copy_of, seed, server};

/// Each batch is one transaction, but where it says otherwise.
const WORK: &[&str] = &[
    "CREATE TABLE public.load (id int PRIMARY KEY, what text, long text, kept int)",
    "CREATE TABLE public.cut (id int, what text); CREATE TABLE public.gone (id int)",
    "INSERT INTO public.cut SELECT i, md5(i::text) FROM generate_series(1, 5000) i; INSERT INTO public.gone VALUES (1)",
    "CREATE TABLE public.mapless AS SELECT i FROM generate_series(1, 5000) i",
    "VACUUM public.mapless",
    "CHECKPOINT",
    "SELECT ext.pg_truncate_visibility_map('public.mapless')",
    "INSERT INTO public.load SELECT i, md5(i::text), CASE WHEN i % 500 = 0 THEN (SELECT string_agg(md5(j::text), '') FROM generate_series(1, 200) j) END, i FROM generate_series(1, ROWS) i",
    "UPDATE public.load SET what = 'hot ' || id WHERE id % 7 = 0",
    "UPDATE public.load SET what = repeat('wide ', 40) || id, kept = -1 WHERE id % 11 = 0",
    "DELETE FROM public.load WHERE id % 13 = 0",
    "BEGIN; UPDATE public.load SET what = 'never' WHERE id < 500; ROLLBACK",
    "BEGIN; SAVEPOINT a; INSERT INTO public.load VALUES (-1, 'rolled back'); ROLLBACK TO a; INSERT INTO public.load VALUES (-2, 'kept'); COMMIT",
    "BEGIN; SELECT FROM public.load WHERE id < 50 FOR SHARE; SAVEPOINT a; UPDATE public.load SET kept = 5 WHERE id < 30; COMMIT",
    "VACUUM (FREEZE) public.load",
    "INSERT INTO public.load SELECT -i, 'after vacuum ' || i FROM generate_series(10, 900) i",
    "UPDATE public.docs SET body = body || 'more' WHERE id % 3 = 0",
    "VACUUM public.docs",
    "DELETE FROM public.cut WHERE id > 100",
    "VACUUM public.cut",
    "TRUNCATE public.gone; INSERT INTO public.gone VALUES (2)",
    "ALTER TABLE public.measurements ADD late text DEFAULT 'late'",
    "CREATE TABLE public.late AS SELECT * FROM public.measurements WHERE id % 2 = 0",
    "ALTER TABLE public.frozen ALTER id TYPE bigint",
    "VACUUM FULL public.settled",
];

fn work(running: &Server, rows: u32) {
    let mut session = running.connect("clinic").expect("a session");
    for batch in WORK {
        let batch = batch.replace("ROWS", &rows.to_string());
        session
            .execute(&batch)
            .unwrap_or_else(|error| panic!("{batch}: {error}"));
    }
}

fn committed_rows_survive(major: u16, rows: u32) {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let mut running = copy.start().expect("a server");
    work(&running, rows);
    let mut unfinished = running.connect("clinic").expect("a session");
    unfinished
        .execute("BEGIN; INSERT INTO public.load SELECT -i, 'unfinished' FROM generate_series(5000, 9000) i; DELETE FROM public.late")
        .expect("begun");
    running.kill();
    drop(unfinished);
    let folder = tempfile::tempdir().expect("a directory");
    let destination = folder.path().join("out");
    let account = salvaged(&copy.pgdata, &options(&destination, "copy"));
    let replay = account.replay.as_ref().expect("a recovery in memory");
    assert!(replay.is_complete && replay.applied > 0, "{replay:?}");
    assert_eq!(replay.not_applied, 0, "{:#?}", replay.faults);

    // The server's own recovery is what it is held to.
    let again = copy.start().expect("a recovery");
    let mut expected = copied(&again, "clinic", "");
    expected.retain(|name, _| !name.ends_with("scratchpad"));
    compare(&destination, "copy", &expected);
    let told: Vec<_> = account
        .tables
        .iter()
        .filter(|table| !table.places.is_empty())
        .collect();
    let gaps = &account.not_salvaged;
    assert_eq!(account.outcome, Outcome::Whole, "{told:#?} {gaps:#?}");
}

#[test]
fn of_13() {
    committed_rows_survive(13, 3000);
}

#[test]
fn of_14() {
    committed_rows_survive(14, 3000);
}

#[test]
fn of_15() {
    committed_rows_survive(15, 100_000);
}

#[test]
fn of_16_and_17() {
    committed_rows_survive(16, 3000);
    committed_rows_survive(17, 3000);
}

#[test]
fn of_18() {
    committed_rows_survive(18, 3000);
}

/// A page that was hit after the server wrote it: changes that need it as it was cannot be applied,
/// and are counted for its table and no other.
#[test]
fn changes_to_a_page_that_is_lost_are_counted_for_its_table() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    // Images of pages would bring the page back.
    let without_images = StartOptions::default().with("full_page_writes", "off");
    let mut running = copy.start_with(&without_images).expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    let statements = [
        "CREATE TABLE public.hit AS SELECT i AS id, 'text ' || i AS what FROM generate_series(1, 2000) AS i",
        "CREATE TABLE public.other AS SELECT * FROM public.hit",
        "CHECKPOINT",
        "DELETE FROM public.hit WHERE id <= 7",
        "DELETE FROM public.other WHERE id <= 5",
    ];
    for statement in statements {
        session.execute(statement).expect(statement);
    }
    let path = session
        .query_value("SELECT pg_relation_filepath('public.hit')")
        .expect("an answer")
        .expect("a path");
    drop(session);
    running.kill();
    let path = copy.pgdata.join(path);
    let mut bytes = std::fs::read(&path).expect("a file");
    bytes[..8192].fill(0xAB);
    std::fs::write(&path, bytes).expect("written");

    let folder = tempfile::tempdir().expect("a directory");
    let account = salvaged(&copy.pgdata, &options(&folder.path().join("out"), "copy"));
    let of = |name: &str| {
        let mut tables = account.tables.iter();
        tables.find(|table| table.table == name).expect(name)
    };
    assert!(of("hit").not_replayed >= 7, "{:#?}", of("hit"));
    assert_eq!(of("hit").damaged_pages, 1);
    let other = of("other");
    assert_eq!((other.not_replayed, other.rows.written), (0, 1995));
    let replay = account.replay.as_ref().expect("a recovery in memory");
    assert_eq!(replay.not_applied, of("hit").not_replayed);
    assert_eq!(account.outcome, Outcome::Damaged);
}
