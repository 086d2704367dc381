//! Relation maps that are lost: what WAL, rows and entries of indexes say of them. On real servers,
//! which then start.

use std::fs;
use std::path::Path;

use pgclinic_format::RelationMap;
use pgclinic_model::plan::Safety;
use pgclinic_servers::{Checksums, Server, StopMode};
use pgclinic_surgery::start_again::StartPlan;
use pgclinic_testkit::{TempCopy, copy_of, execute, run_as, seed, server, value};

use crate::start_again::{carry_out, plan};

fn mappings(bytes: &[u8]) -> Vec<(u32, u32)> {
    let mut all = RelationMap::parse(bytes).expect("a map").mappings;
    all.sort_unstable();
    all
}

/// The path of a database's map.
fn map_of(running: &Server) -> String {
    let database = "SELECT oid FROM pg_database WHERE datname = current_database()";
    format!("base/{}/pg_filenode.map", value(running, database))
}

/// So that records of before are in no segment any more.
fn forget_wal(running: &Server) {
    for _ in 0..4 {
        execute(running, "CREATE TABLE IF NOT EXISTS filler (id int)");
        execute(running, "INSERT INTO filler VALUES (1)");
        execute(running, "SELECT pg_switch_wal()");
        execute(running, "CHECKPOINT");
    }
}

/// The map is lost, planned for and written; the plan, and the map of before and after.
fn healed(pgdata: &Path, map: &str) -> (StartPlan, Vec<u8>, Vec<u8>) {
    let path = pgdata.join(map);
    let whole = fs::read(&path).expect("a map");
    fs::remove_file(&path).expect("a map");
    let plan = plan(pgdata).expect("a plan");
    let journals = tempfile::tempdir().expect("a directory");
    carry_out(pgdata, &plan, &journals.path().join("journal"));
    let made = fs::read(&path).expect("a map");
    (plan, whole, made)
}

fn starts(copy: &TempCopy, sql: &str, expected: &str) {
    let mut running = copy.start().expect("a server");
    assert_eq!(value(&running, sql), expected);
    running.stop(StopMode::Fast).expect("an end");
}

#[test]
fn a_map_of_rewritten_catalogs_is_the_last_one_in_wal() {
    for end in [StopMode::Fast, StopMode::Immediate] {
        let copy = copy_of(&seed(&server(15), Checksums::On));
        let mut running = copy.start().expect("a server");
        execute(&running, "VACUUM FULL pg_proc");
        execute(&running, "CHECKPOINT");
        execute(&running, "VACUUM FULL pg_class");
        execute(&running, "CREATE TABLE later (id int)");
        let map = map_of(&running);
        running.stop(end).expect("an end");
        let (plan, whole, made) = healed(&copy.pgdata, &map);
        assert_eq!(plan.cures.len(), 1, "{plan:?}");
        assert_eq!(plan.cures[0].safety, Safety::Exact);
        assert!(made == whole, "the bytes of the record");
        starts(&copy, "SELECT count(*) FROM later", "0");
    }
}

/// The last map that is left in WAL is that of before, whose file was emptied.
#[test]
fn where_wal_breaks_off_its_last_map_is_not_the_last_one() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    execute(&running, "VACUUM FULL pg_class");
    execute(&running, "CHECKPOINT");
    let first = "SELECT redo_wal_file FROM pg_control_checkpoint()";
    let first = value(&running, first);
    execute(&running, "SELECT pg_switch_wal()");
    execute(&running, "VACUUM FULL pg_class");
    execute(&running, "CREATE TABLE later (id int)");
    let map = map_of(&running);
    running.stop(StopMode::Immediate).expect("an end");
    let segments = fs::read_dir(copy.pgdata.join("pg_wal")).expect("WAL");
    let later = segments.map(|entry| entry.expect("an entry"));
    for entry in later.filter(|entry| entry.file_name().to_str() > Some(first.as_str())) {
        if entry.path().is_file() {
            fs::remove_file(entry.path()).expect("a segment");
        }
    }
    let path = copy.pgdata.join(&map);
    fs::remove_file(&path).expect("a map");
    assert_eq!(plan(&copy.pgdata), None, "no map is known to be the last");
}

#[test]
fn the_shared_map_is_in_wal_too() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    execute(&running, "VACUUM FULL pg_database");
    execute(&running, "CREATE TABLE later (id int)");
    running.stop(StopMode::Immediate).expect("an end");
    let (plan, whole, made) = healed(&copy.pgdata, "global/pg_filenode.map");
    assert_eq!(plan.cures[0].safety, Safety::Exact);
    assert!(made == whole, "the bytes of the record");
    starts(&copy, "SELECT count(*) > 2 FROM pg_database", "t");
}

#[test]
fn without_wal_the_shared_map_follows_from_rows_and_entries() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    execute(&running, "VACUUM FULL pg_database");
    forget_wal(&running);
    running.stop(StopMode::Fast).expect("an end");
    let (plan, whole, made) = healed(&copy.pgdata, "global/pg_filenode.map");
    assert_eq!(plan.cures[0].safety, Safety::Exact);
    assert_eq!(mappings(&made), mappings(&whole));
    starts(&copy, "SELECT count(*) > 2 FROM pg_database", "t");
}

#[test]
fn without_wal_a_toast_table_is_the_one_that_no_other_catalog_has() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    for table in ["pg_proc", "pg_class", "pg_attribute", "pg_type"] {
        execute(&running, &format!("VACUUM FULL {table}"));
    }
    execute(
        &running,
        "CREATE TABLE wider AS SELECT string_agg(md5(g::text), '') AS body FROM generate_series(1, 2000) g",
    );
    forget_wal(&running);
    let map = map_of(&running);
    running.stop(StopMode::Fast).expect("an end");
    let (plan, whole, made) = healed(&copy.pgdata, &map);
    assert_eq!(plan.cures[0].safety, Safety::Exact);
    assert_eq!(mappings(&made), mappings(&whole));
    starts(&copy, "SELECT length(body) FROM wider", "64000");
}

#[test]
fn after_a_crash_without_wal_of_it_entries_of_indexes_name_rows_with_their_keys() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    for table in [
        "pg_proc",
        "pg_class",
        "pg_attribute",
        "pg_type",
        "pg_database",
    ] {
        execute(&running, &format!("VACUUM FULL {table}"));
    }
    forget_wal(&running);
    execute(&running, "CREATE TABLE later (id int PRIMARY KEY)");
    execute(&running, "DROP TABLE filler");
    let own = map_of(&running);
    running.stop(StopMode::Immediate).expect("an end");
    for map in [own.as_str(), "global/pg_filenode.map"] {
        let (plan, whole, made) = healed(&copy.pgdata, map);
        assert_eq!(plan.cures[0].safety, Safety::Exact, "{plan:?}");
        assert_eq!(mappings(&made), mappings(&whole));
    }
    starts(&copy, "SELECT count(*) FROM later", "0");
}

#[test]
fn two_files_that_may_be_the_same_catalog_lead_to_no_map() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    execute(&running, "VACUUM FULL pg_class");
    forget_wal(&running);
    let map = copy.pgdata.join(map_of(&running));
    let class = value(&running, "SELECT pg_relation_filepath('pg_class')");
    running.stop(StopMode::Immediate).expect("an end");
    fs::remove_file(&map).expect("a map");
    let other = map.with_file_name("99999");
    fs::copy(copy.pgdata.join(class), &other).expect("a copy");
    run_as().own(&other).expect("the server's");
    assert_eq!(
        plan(&copy.pgdata),
        None,
        "nobody knows which it is, and the server starts"
    );
}

/// Before recovery, pg_database still has the tablespace of before.
#[test]
fn the_map_of_a_database_that_moved_to_a_tablespace_before_a_crash_is_planned_for() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    execute(&running, "CREATE DATABASE roams");
    execute(&running, "CHECKPOINT");
    execute(&running, "ALTER DATABASE roams SET TABLESPACE annex");
    let path = "SELECT 'pg_tblspc/' || t.oid, d.oid FROM pg_database d JOIN pg_tablespace t ON t.oid = d.dattablespace
        WHERE datname = 'roams'";
    let link = value(&running, path);
    let oid = "SELECT oid FROM pg_database WHERE datname = 'roams'";
    let oid = value(&running, oid);
    running.stop(StopMode::Immediate).expect("an end");
    let versions = fs::read_dir(copy.pgdata.join(&link)).expect("a tablespace");
    let mut names = versions.map(|entry| entry.expect("an entry").file_name());
    let version = names.next().expect("a version").into_string();
    let version = version.expect("a name");
    let map = format!("{link}/{version}/{oid}/pg_filenode.map");
    let (plan, whole, made) = healed(&copy.pgdata, &map);
    assert_eq!(plan.request[0].path, map, "{plan:?}");
    assert_eq!(mappings(&made), mappings(&whole));
    let moved = "SELECT count(*) FROM pg_database WHERE datname = 'roams'";
    starts(&copy, moved, "1");
}
