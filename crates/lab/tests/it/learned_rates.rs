//! What a server wrote is counted in its WAL without it, to the row, and the time is that of its
//! own commits.

#![allow(clippy::cast_lossless, reason = "a test that panics has failed")]

use std::sync::Arc;

use pgclinic_cluster::Cluster;
use pgclinic_lab::table_profile::{Rates, RowCounts, TableShape, Writing, look};
use pgclinic_servers::{Checksums, Session, StartOptions, StopMode};
use pgclinic_source::DataDirectory;
use pgclinic_testkit::{TempCopy, copy_of, overwrite, seed, server};

/// Inserts of one row each, a commit each.
const INSERTS: u64 = 40;

/// Tables without a long value, so that each is one row of `pg_class`.
const TABLES: u64 = 6;

/// Made before any WAL that is left. Pages have room for new versions.
const TABLES_BEFORE: [&str; 4] = [
    "CREATE TABLE own (id bigint PRIMARY KEY, note text) WITH (fillfactor = 20)",
    "CREATE UNLOGGED TABLE fleeting AS SELECT 1 AS id",
    "CREATE TABLE marks (what text)",
    "INSERT INTO own VALUES (0, 'before')",
];

fn execute(session: &mut Session, sql: &str) {
    let done = session.execute(sql);
    done.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn number(session: &mut Session, sql: &str) -> u64 {
    let value = session.query_value(sql);
    let value = value.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let value = value.unwrap_or_else(|| panic!("{sql}: null"));
    value.parse().unwrap_or_else(|_| panic!("{sql}: {value}"))
}

/// A copy of the seed whose WAL begins behind the making of its tables.
fn with_tables() -> TempCopy {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut server = copy.start().expect("the copy starts");
    let mut session = server.connect("postgres").expect("a session");
    for statement in TABLES_BEFORE {
        execute(&mut session, statement);
    }
    execute(&mut session, "SELECT pg_switch_wal()");
    execute(&mut session, "CHECKPOINT");
    drop(session);
    server.stop(StopMode::Fast).expect("a clean stop");
    copy
}

/// Does `work` on a server that keeps all its WAL and remembers when transactions ended.
fn at_work<T>(copy: &TempCopy, work: impl FnOnce(&mut Session) -> T) -> T {
    at_work_until(StopMode::Fast, copy, work)
}

/// The same until the server is stopped in this way.
fn at_work_until<T>(stop: StopMode, copy: &TempCopy, work: impl FnOnce(&mut Session) -> T) -> T {
    let options = StartOptions::default()
        .with("wal_keep_size", "256MB")
        .with("track_commit_timestamp", "on");
    let mut server = copy.start_with(&options).expect("the copy starts");
    let mut session = server.connect("postgres").expect("a session");
    let done = work(&mut session);
    drop(session);
    server.stop(stop).expect("it stops");
    done
}

fn shape(copy: &TempCopy, table: &str) -> TableShape {
    let source = DataDirectory::open(&copy.pgdata).expect("a data directory");
    let cluster = Cluster::open(Arc::new(source)).expect("a cluster");
    look(&cluster, Some("postgres"), table).expect("a table with rows")
}

fn rates(shape: &TableShape) -> &Rates {
    match &shape.writing {
        Some(Writing::Counted(rates)) => rates,
        other => panic!("no rates: {other:?}"),
    }
}

/// 40 + 100 + 1 + 5 rows come, the last five of a transaction that is rolled back; 30 of them get
/// new versions on their pages and 20 elsewhere, 7 go.
fn write(session: &mut Session) {
    for id in 1..=INSERTS {
        execute(session, &format!("INSERT INTO own VALUES ({id}, 'one')"));
    }
    execute(session, "COPY own (id) FROM PROGRAM 'seq 1001 1100'");
    execute(
        session,
        "INSERT INTO own VALUES (2000, 'new') ON CONFLICT DO NOTHING",
    );
    execute(
        session,
        "INSERT INTO own VALUES (2000, 'again') ON CONFLICT DO NOTHING",
    );
    execute(
        session,
        "BEGIN; INSERT INTO own SELECT i, 'gone' FROM generate_series(3001, 3005) AS i; ROLLBACK",
    );
    execute(
        session,
        "UPDATE own SET note = 'hot' WHERE id BETWEEN 1 AND 30",
    );
    execute(
        session,
        "UPDATE own SET id = id + 10000 WHERE id BETWEEN 1001 AND 1020",
    );
    execute(session, "DELETE FROM own WHERE id BETWEEN 1021 AND 1027");
}

#[test]
fn rows_commits_and_relations_are_counted_to_one() {
    counted_to_one(StopMode::Fast);
}

#[test]
fn the_same_is_counted_of_a_server_that_crashed() {
    counted_to_one(StopMode::Immediate);
}

fn counted_to_one(stop: StopMode) {
    let copy = with_tables();
    let (micros, transactions) = at_work_until(stop, &copy, |session| {
        execute(session, "INSERT INTO marks VALUES ('first')");
        write(session);
        for table in 1..=TABLES {
            execute(session, &format!("CREATE TABLE made_{table} (a integer)"));
        }
        // With its TOAST table, that one's index, and the index of the key.
        execute(
            session,
            "CREATE TABLE keyed (id bigint PRIMARY KEY, body text)",
        );
        execute(session, "INSERT INTO marks VALUES ('last')");
        // Behind the last commit that has an end.
        execute(
            session,
            "BEGIN; INSERT INTO own VALUES (9000, 'late'); ROLLBACK",
        );
        let micros = number(
            session,
            "SELECT round(extract(epoch FROM max(moment) - min(moment)) * 1000000)::bigint \
             FROM (SELECT pg_xact_commit_timestamp(xmin) AS moment FROM marks) AS ended",
        );
        let transactions = number(
            session,
            "SELECT max(xmin::text::bigint) - min(xmin::text::bigint) FROM marks",
        );
        (micros, transactions)
    });
    let own = shape(&copy, "own");
    let rates = rates(&own);
    let table = RowCounts {
        micros,
        inserted: INSERTS + 100 + 1 + 5,
        updated: 30 + 20,
        hot_updated: 30,
        deleted: 7,
    };
    assert_eq!((rates.micros, rates.table), (micros, table), "{own}");
    assert_eq!(rates.classes.inserted, TABLES + 4, "{own}");
    assert_eq!(rates.aborts, 1, "{own}");
    // Each transaction between the marks and the last of them, but for the one that was rolled
    // back; the insert that found its row there already wrote nothing.
    assert_eq!(rates.commits, INSERTS + 5 + TABLES + 2, "{own}");
    assert_eq!(rates.commits + rates.aborts, transactions, "{own}");
    assert_eq!(rates.notes, Vec::<String>::new());
    let seconds = micros as f64 / 1e6;
    let a_second = rates.rows_a_second().expect("time passed");
    let expected = (146 + 50 + 7) as f64 / seconds;
    assert!((a_second / expected - 1.0).abs() < 1e-9, "{a_second}");
    let sentence = own.to_string();
    assert!(sentence.contains("updated (60 % HOT)"), "{sentence}");

    let fleeting = shape(&copy, "fleeting");
    assert_eq!(
        fleeting.writing.expect("it was looked for").to_string(),
        "written: not known, as rows of an unlogged table leave nothing in WAL"
    );
}

#[test]
fn a_table_that_was_emptied_counts_from_then_on() {
    let copy = with_tables();
    at_work(&copy, |session| {
        execute(session, "INSERT INTO marks VALUES ('first')");
        write(session);
        execute(session, "TRUNCATE own");
        for id in 1..=3 {
            execute(session, &format!("INSERT INTO own VALUES ({id}, 'new')"));
        }
    });
    let own = shape(&copy, "own");
    let rates = rates(&own);
    assert_eq!((rates.table.inserted, rates.table.deleted), (3, 0), "{own}");
    assert!(rates.table.micros < rates.micros, "{own}");
    let [note] = rates.notes.as_slice() else {
        panic!("{own}")
    };
    assert!(note.contains("as its files were made then"), "{note}");
}

#[test]
fn what_stands_before_a_broken_record_does_not_count() {
    let copy = with_tables();
    let place = at_work(&copy, |session| {
        write(session);
        let place = session.query_value(
            "SELECT file_name || ' ' || file_offset FROM pg_walfile_name_offset(pg_current_wal_insert_lsn())",
        );
        execute(
            session,
            "INSERT INTO own VALUES (4000, 'in a record that breaks')",
        );
        execute(session, "SELECT pg_switch_wal()");
        for id in 4001..=4003 {
            execute(session, &format!("INSERT INTO own VALUES ({id}, 'new')"));
        }
        place.expect("a place in WAL").expect("a primary has one")
    });
    assert!(rates(&shape(&copy, "own")).table.inserted > 100);
    let (file, offset) = place.split_once(' ').expect("two words");
    let offset: u64 = offset.parse().expect("a number");
    overwrite(&copy.pgdata.join("pg_wal").join(file), offset + 32);
    let own = shape(&copy, "own");
    let rates = rates(&own);
    assert_eq!((rates.table.inserted, rates.commits), (2, 2), "{own}");
    let [note] = rates.notes.as_slice() else {
        panic!("{own}")
    };
    assert!(
        note.starts_with("what stands before a break does not count: no record at "),
        "{note}"
    );
}

#[test]
fn one_commit_and_no_wal_are_no_rates_and_no_hindrance() {
    let copy = with_tables();
    at_work(&copy, |session| {
        execute(session, "INSERT INTO own VALUES (1, 'one')");
    });
    let why = |copy: &TempCopy| {
        let writing = shape(copy, "own").writing;
        writing.expect("it was looked for").to_string()
    };
    assert_eq!(
        why(&copy),
        "written: not known, as the WAL in pg_wal holds one commit, and a rate takes two"
    );
    let wal = std::fs::read_dir(copy.pgdata.join("pg_wal")).expect("a directory");
    for file in wal.map(|entry| entry.expect("an entry").path()) {
        if file.is_file() {
            std::fs::remove_file(&file).expect("it is removed");
        }
    }
    assert_eq!(why(&copy), "written: not known, as pg_wal holds no WAL");
}
