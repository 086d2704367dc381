//! What recovery begins from is missing: the control file, WAL, or the directory of a database.
//! Every committed row is there, or the account says that it may not be.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use pgclinic_model::document::{LossPlace, Outcome, SalvageReport};
use pgclinic_spill::MemoryPlan;

use crate::common;

use common::{compare, copied, options, salvaged};
use pgclinic_servers::{Checksums, Server, StartOptions, StopMode};
use pgclinic_testkit::{TempCopy, copy_of, seed, server};

const CONTROL: &str = "global/pg_control";

const WORK: &[&str] = &[
    "CREATE TABLE public.load (id int PRIMARY KEY, what text)",
    "INSERT INTO public.load SELECT i, md5(i::text) FROM generate_series(1, 20000) i",
    "CHECKPOINT",
    "INSERT INTO public.load SELECT -i, md5(i::text) FROM generate_series(1, 20000) i",
    "UPDATE public.load SET what = 'changed ' || id WHERE id % 3 = 0",
    "DELETE FROM public.load WHERE id % 5 = 0",
    "CREATE TABLE public.late AS SELECT * FROM public.load WHERE id % 2 = 0",
];

fn work(running: &Server) {
    let mut session = running.connect("clinic").expect("a session");
    for batch in WORK {
        session.execute(batch).expect(batch);
    }
}

/// A server of this major that was killed after some work.
fn crashed(major: u16) -> TempCopy {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let mut running = copy.start().expect("a server");
    work(&running);
    running.kill();
    copy
}

/// The reason that stands beside what was not salvaged.
#[track_caller]
fn why(account: &SalvageReport, what: &str) -> String {
    let mut entries = account.not_salvaged.iter();
    let entry = entries.find(|entry| entry.what.contains(what));
    entry
        .unwrap_or_else(|| panic!("{what}: {:#?}", account.not_salvaged))
        .why
        .clone()
}

fn recovery_begins_where_wal_says(major: u16) {
    let copy = crashed(major);
    let path = copy.pgdata.join(CONTROL);
    let control = fs::read(&path).expect("a control file");
    let mut flipped = control.clone();
    flipped[20] ^= 4;
    let zeros = vec![0; control.len()];
    let folder = tempfile::tempdir().expect("a directory");
    let hurts = [
        ("missing", None),
        ("zeros", Some(zeros)),
        ("flipped", Some(flipped)),
    ];
    // The file itself comes back in the end, with its owner.
    let kept = path.with_extension("kept");
    fs::rename(&path, &kept).expect("put away");
    for (name, bytes) in &hurts {
        if let Some(bytes) = bytes {
            fs::write(&path, bytes).expect("written");
        }
        let account = salvaged(&copy.pgdata, &options(&folder.path().join(name), "copy"));
        let replay = account.replay.as_ref().expect("a recovery in memory");
        assert!(replay.is_complete && replay.applied > 0, "{replay:?}");
        assert_eq!(replay.not_applied, 0, "{:#?}", replay.faults);
        let words = why(&account, CONTROL);
        assert!(words.contains(&format!("redo {}", replay.start)), "{words}");
        assert_eq!(account.outcome, Outcome::Incomplete, "{name}");
    }
    fs::rename(&kept, &path).expect("put back");
    let again = copy.start().expect("a recovery");
    let mut expected = copied(&again, "clinic", "");
    expected.retain(|name, _| !name.ends_with("scratchpad"));
    for (name, _) in &hurts {
        compare(&folder.path().join(name), "copy", &expected);
    }
}

#[test]
fn recovery_begins_where_wal_says_of_13() {
    recovery_begins_where_wal_says(13);
}

#[test]
fn recovery_begins_where_wal_says_of_15() {
    recovery_begins_where_wal_says(15);
}

#[test]
fn recovery_begins_where_wal_says_of_18() {
    recovery_begins_where_wal_says(18);
}

/// A shutdown at the end of WAL settles that nothing is missing; the damage is named all the same.
/// Without WAL nothing tells.
#[test]
fn a_shutdown_in_good_order_is_seen_in_wal() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    work(&running);
    running.stop(StopMode::Fast).expect("a stop");
    fs::remove_file(copy.pgdata.join(CONTROL)).expect("removed");
    let folder = tempfile::tempdir().expect("a directory");
    let account = salvaged(&copy.pgdata, &options(&folder.path().join("out"), "copy"));
    assert!(account.replay.is_none());
    let words = why(&account, CONTROL);
    assert!(words.contains("is the checkpoint of a shutdown"), "{words}");
    assert_eq!(
        account.outcome,
        Outcome::Whole,
        "{:#?}",
        account.not_salvaged
    );

    remove_wal(&copy.pgdata);
    let account = salvaged(&copy.pgdata, &options(&folder.path().join("none"), "copy"));
    let words = why(&account, CONTROL);
    assert!(
        words.contains("whether recovery is due is unknown"),
        "{words}"
    );
    assert_eq!(account.outcome, Outcome::Incomplete);
}

/// The segments of `pg_wal`.
fn segments(pgdata: &Path) -> Vec<PathBuf> {
    let folder = fs::read_dir(pgdata.join("pg_wal")).expect("a directory");
    let paths = folder.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.is_file()).collect()
}

fn remove_wal(pgdata: &Path) {
    for path in segments(pgdata) {
        fs::remove_file(path).expect("removed");
    }
}

#[test]
fn without_wal_a_crash_is_never_whole() {
    let copy = crashed(15);
    remove_wal(&copy.pgdata);
    let folder = tempfile::tempdir().expect("a directory");
    let account = salvaged(&copy.pgdata, &options(&folder.path().join("out"), "copy"));
    let replay = account.replay.as_ref().expect("a try");
    assert!(!replay.is_complete, "{replay:?}");
    let words = why(&account, "changes since");
    let needed = format!("WAL from {} on is needed", replay.end);
    assert!(words.contains(&needed), "{words}");
    assert_eq!(account.outcome, Outcome::Incomplete);
}

/// The last segment holds nothing but zeros, or is gone, and the one before it ends with a switch:
/// no record goes on in it.
#[test]
fn a_log_that_ends_with_a_file_is_not_taken_for_all_there_was() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    for sql in [
        "CREATE TABLE public.load (id int PRIMARY KEY)",
        "INSERT INTO public.load SELECT generate_series(1, 100)",
        "SELECT pg_switch_wal()",
        "INSERT INTO public.load SELECT generate_series(101, 300)",
    ] {
        session.execute(sql).expect(sql);
    }
    let file = "SELECT pg_walfile_name(pg_current_wal_lsn())";
    let file = session.query_value(file).expect(file).expect("a name");
    drop(session);
    running.kill();
    let folder = tempfile::tempdir().expect("a directory");
    let whole = salvaged(&copy.pgdata, &options(&folder.path().join("whole"), "copy"));
    assert_eq!(whole.outcome, Outcome::Whole, "{:#?}", whole.not_salvaged);
    let last = copy.pgdata.join("pg_wal").join(&file);
    // As the server leaves a file that it has renamed and not used yet.
    let older = segments(&copy.pgdata).into_iter().min().expect("a segment");
    assert!(older < last, "{older:?}");
    let used = fs::read(&last).expect("the last segment");
    fs::write(&last, fs::read(older).expect("a segment")).expect("put back");
    let account = salvaged(&copy.pgdata, &options(&folder.path().join("older"), "copy"));
    let words = why(&account, "went on in its next file");
    assert!(words.contains("holds pages of an older use"), "{words}");
    assert_eq!(
        account.outcome,
        Outcome::Whole,
        "{:#?}",
        account.not_salvaged
    );
    assert!(account.totals.written < whole.totals.written);
    fs::write(&last, used).expect("written");
    let bytes = fs::metadata(&last).expect("a file").len();
    fs::write(&last, vec![0; bytes as usize]).expect("zeroed");
    let zeroed = folder.path().join("zeroed");
    let account = salvaged(&copy.pgdata, &options(&zeroed, "copy"));
    let words = why(&account, "changes since");
    assert!(words.contains("the next one begins with zeros"), "{words}");
    assert_eq!(account.outcome, Outcome::Incomplete);
    for path in segments(&copy.pgdata) {
        let name = path.file_name().expect("a name");
        if *name.to_string_lossy() >= *file {
            fs::remove_file(path).expect("removed");
        }
    }
    let account = salvaged(&copy.pgdata, &options(&folder.path().join("out"), "copy"));
    let words = why(&account, "changes since");
    assert!(words.contains("where its last file ends"), "{words}");
    assert_eq!(account.outcome, Outcome::Incomplete);
}

/// What a transaction writes to a table that it made itself is in no record then, and in its files
/// when it commits: they are witnesses as those of before.
#[test]
fn tables_that_minimal_wal_does_not_hold_are_missed() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let minimal = StartOptions::default()
        .with("wal_level", "minimal")
        .with("max_wal_senders", "0")
        .with("wal_skip_threshold", "0");
    let mut running = copy.start_with(&minimal).expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    session
        .execute(
            "BEGIN; CREATE TABLE public.load (id int PRIMARY KEY, what text); \
             INSERT INTO public.load SELECT g, 'row ' || g FROM generate_series(1, 20000) g; COMMIT",
        )
        .expect("a table");
    let path = "SELECT pg_relation_filepath('public.load')";
    let path = session.query_value(path).expect(path).expect("a path");
    drop(session);
    running.kill();
    let folder = tempfile::tempdir().expect("a directory");
    let rows = |name: &str| {
        let account = salvaged(&copy.pgdata, &options(&folder.path().join(name), "copy"));
        let table = account.tables.iter().find(|own| own.table == "load");
        let rows = table.expect("the table").rows;
        (account.outcome, rows.written, rows.lost)
    };
    assert_eq!(rows("whole"), (Outcome::Whole, 20_000, 0));
    let path = copy.pgdata.join(path);
    let file = fs::File::options().write(true).open(&path).expect("a file");
    file.set_len(50 * 8192).expect("cut");
    let (outcome, written, lost) = rows("cut");
    assert_eq!((outcome, written + lost), (Outcome::Damaged, 20_000));
    fs::remove_file(path).expect("removed");
    assert_eq!(rows("removed"), (Outcome::Damaged, 0, 20_000));
}

/// Recovery makes the file of such a table anew, and none of its rows: without a key nothing else
/// tells of them.
#[test]
fn the_file_of_a_keyless_table_that_minimal_wal_does_not_hold_is_missed() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let minimal = StartOptions::default()
        .with("wal_level", "minimal")
        .with("max_wal_senders", "0")
        .with("wal_skip_threshold", "0");
    let mut running = copy.start_with(&minimal).expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    let tables = [
        "CREATE TABLE public.bare AS SELECT g AS n FROM generate_series(1, 20000) g",
        "CREATE TABLE public.void (n int)",
    ];
    for sql in tables {
        session.execute(sql).expect(sql);
    }
    let path = "SELECT pg_relation_filepath('public.bare')";
    let path = session.query_value(path).expect(path).expect("a path");
    drop(session);
    running.kill();
    let folder = tempfile::tempdir().expect("a directory");
    let salvaged = |name| salvaged(&copy.pgdata, &options(&folder.path().join(name), "copy"));
    let whole = salvaged("whole");
    assert_eq!(whole.outcome, Outcome::Whole, "{:#?}", whole.not_salvaged);
    fs::remove_file(copy.pgdata.join(&path)).expect("removed");
    let account = salvaged("removed");
    assert_eq!(account.outcome, Outcome::Damaged);
    let table = account.tables.iter().find(|own| own.table == "bare");
    let table = table.expect("the table");
    let why: Vec<&str> = table
        .places
        .iter()
        .map(|place| place.why.as_str())
        .collect();
    assert_eq!(why, [format!("the file {path} is missing")], "{table:#?}");
    assert_eq!(table.notes, ["its file is missing: all its rows are lost"]);
    let void = account.tables.iter().find(|own| own.table == "void");
    assert!(void.is_some_and(|own| own.is_whole()), "{void:#?}");
}

/// All records up to some place are there, and none after it: only the pages tell.
#[test]
fn pages_beyond_the_end_of_wal_prove_that_some_is_missing() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    work(&running);
    let mut session = running.connect("clinic").expect("a session");
    let wal = segments(&copy.pgdata).into_iter();
    let wal: Vec<_> = wal
        .map(|path| (fs::read(&path).expect("a segment"), path))
        .collect();
    // The page is written by a checkpoint of which the control file then knows nothing.
    let control = fs::read(copy.pgdata.join(CONTROL)).expect("a control file");
    session
        .execute("UPDATE public.docs SET body = body || 'late' WHERE id % 3 = 0; CHECKPOINT")
        .expect("a change");
    drop(session);
    running.kill();
    fs::write(copy.pgdata.join(CONTROL), control).expect("written");
    remove_wal(&copy.pgdata);
    for (bytes, path) in wal {
        fs::write(path, bytes).expect("written");
    }

    let folder = tempfile::tempdir().expect("a directory");
    let account = salvaged(&copy.pgdata, &options(&folder.path().join("out"), "copy"));
    let replay = account.replay.as_ref().expect("a recovery in memory");
    assert!(replay.is_complete, "{replay:?}");
    let words = why(&account, "changes since");
    assert!(words.contains("pages were changed after"), "{words}");
    assert_ne!(account.outcome, Outcome::Whole);
}

#[test]
fn a_database_without_its_directory_is_lost() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    session
        .execute("CREATE DATABASE second")
        .expect("a database");
    session
        .execute("CREATE DATABASE dropped")
        .expect("a database");
    let mut oid = |name: &str| {
        let sql = format!("SELECT oid FROM pg_database WHERE datname = '{name}'");
        session
            .query_value(&sql)
            .expect("an answer")
            .expect("an OID")
    };
    let (second, dropped) = (oid("second"), oid("dropped"));
    // As DROP DATABASE leaves it when it is interrupted.
    let invalid = "UPDATE pg_database SET datconnlimit = -2 WHERE datname = 'dropped'";
    session.execute(invalid).expect("an update");
    drop(session);
    running.stop(StopMode::Fast).expect("a stop");
    for oid in [&second, &dropped] {
        fs::remove_dir_all(copy.pgdata.join("base").join(oid)).expect("removed");
    }
    let folder = tempfile::tempdir().expect("a directory");
    let account = salvaged(&copy.pgdata, &options(&folder.path().join("out"), "copy"));
    let lost: Vec<_> = account.lost_databases.iter().collect();
    let [lost] = &*lost else { panic!("{lost:#?}") };
    assert_eq!(lost.database, "second");
    assert_eq!(lost.directory, format!("base/{second}"));
    assert_eq!(account.outcome, Outcome::Damaged);
}

/// Rows come under the number of their database: its name, encoding and owner are lost.
#[test]
fn databases_without_any_name_are_told() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("postgres").expect("a session");
    let shared = [
        "pg_database",
        "pg_database_datname_index",
        "pg_database_oid_index",
    ];
    let paths = shared.map(|name| {
        let sql = format!("SELECT pg_relation_filepath('{name}')");
        let path = session.query_value(&sql).expect(name).expect("a path");
        copy.pgdata.join(path)
    });
    drop(session);
    running.stop(StopMode::Fast).expect("a stop");
    for path in paths {
        fs::write(path, "").expect("emptied");
    }
    let folder = tempfile::tempdir().expect("a directory");
    let account = salvaged(&copy.pgdata, &options(&folder.path().join("out"), "copy"));
    let words = why(&account, "the directory of database");
    assert!(words.contains("pg_database has no row"), "{words}");
    assert_eq!(account.outcome, Outcome::Incomplete);
    assert!(account.totals.written > 0);
}

/// Nothing in it is taken for empty: each of its tables is in the account with its lost file.
#[test]
fn a_tablespace_without_its_link_takes_its_tables_along() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let folder = tempfile::tempdir().expect("a directory");
    let whole = salvaged(&copy.pgdata, &options(&folder.path().join("whole"), "copy"));
    assert_eq!(whole.outcome, Outcome::Whole, "{:#?}", whole.not_salvaged);
    let links = fs::read_dir(copy.pgdata.join("pg_tblspc")).expect("a directory");
    let mut names = Vec::new();
    for link in links {
        let link = link.expect("an entry");
        fs::remove_file(link.path()).expect("removed");
        names.push(link.file_name());
    }
    let account = salvaged(&copy.pgdata, &options(&folder.path().join("out"), "copy"));
    let is_lost = |place: &LossPlace| place.why.starts_with("the file pg_tblspc/");
    let lost = account
        .tables
        .iter()
        .filter(|table| table.places.iter().any(is_lost));
    assert!(lost.count() > 0, "{:#?}", account.tables);
    assert!(account.totals.written < whole.totals.written);
    assert_eq!(account.tables.len(), whole.tables.len());
    assert_eq!(account.outcome, Outcome::Damaged);
    // A link that leads nowhere, or to a directory with nothing in it, takes the same rows.
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).expect("a directory");
    for (number, target) in [folder.path().join("nowhere"), empty].iter().enumerate() {
        for name in &names {
            let link = copy.pgdata.join("pg_tblspc").join(name);
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(target, &link).expect("a link");
        }
        let out = folder.path().join(format!("out{number}"));
        let other = salvaged(&copy.pgdata, &options(&out, "copy"));
        assert_eq!(
            format!("{:?}", other.totals),
            format!("{:?}", account.totals)
        );
        assert_eq!(
            format!("{:?}", other.lost_by),
            format!("{:?}", account.lost_by)
        );
    }
}

/// Much more is changed than fits into memory.
#[test]
fn what_does_not_fit_into_memory_goes_to_disk() {
    let copy = crashed(15);
    let folder = tempfile::tempdir().expect("a directory");
    let destination = folder.path().join("out");
    let mut small = options(&destination, "copy");
    small.memory = MemoryPlan::new(1 << 20);
    let account = salvaged(&copy.pgdata, &small);
    let replay = account.replay.as_ref().expect("a recovery in memory");
    assert!(replay.is_complete, "{replay:?}");
    assert_eq!(replay.not_applied, 0, "{:#?}", replay.faults);
    assert_eq!(
        account.outcome,
        Outcome::Whole,
        "{:#?}",
        account.not_salvaged
    );
    let again = copy.start().expect("a recovery");
    let mut expected = copied(&again, "clinic", "");
    expected.retain(|name, _| !name.ends_with("scratchpad"));
    compare(&destination, "copy", &expected);
}

/// Only the indexes of `pg_database` still name it.
#[test]
fn a_database_without_row_and_directory_is_named() {
    let copy = copy_of(&seed(&server(15), Checksums::Off));
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("postgres").expect("a session");
    for name in ["second", "dropped"] {
        let made = format!("CREATE DATABASE {name}");
        session.execute(&made).expect("a database");
    }
    let mut value = |sql: &str| {
        session
            .query_value(sql)
            .expect("an answer")
            .expect("a value")
    };
    let second = value("SELECT oid FROM pg_database WHERE datname = 'second'");
    let path = value("SELECT pg_relation_filepath('pg_database')");
    session.execute("DROP DATABASE dropped").expect("dropped");
    session.execute("VACUUM pg_database").expect("vacuumed");
    drop(session);
    running.stop(StopMode::Fast).expect("a stop");
    let folder = tempfile::tempdir().expect("a directory");
    let whole = salvaged(
        &copy.pgdata,
        &options(&folder.path().join("before"), "copy"),
    );
    assert_eq!(whole.outcome, Outcome::Whole, "{:#?}", whole.not_salvaged);

    fs::remove_dir_all(copy.pgdata.join("base").join(second)).expect("removed");
    let file = fs::OpenOptions::new()
        .write(true)
        .open(copy.pgdata.join(path));
    let file = file.expect("pg_database");
    file.write_all_at(&[0; 8192], 0).expect("written");
    let account = salvaged(&copy.pgdata, &options(&folder.path().join("out"), "copy"));
    let words = why(&account, "database second");
    assert!(words.contains("it has no directory"), "{words}");
    assert_ne!(account.outcome, Outcome::Whole);
    assert!(!format!("{:?}", account.not_salvaged).contains("dropped (OID"));
}
