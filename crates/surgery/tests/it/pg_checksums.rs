//! What PostgreSQL's own tests ask of `pg_checksums` with made-up files in a cluster and hurt pages
//! in two tablespaces, asked of `pgclinic check`: it finds the same, and passes over the same.

use std::fs::{File, create_dir, write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use pgclinic_cluster::Cluster;
use pgclinic_model::{Finding, Level, Severity};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_source::DataDirectory;
use pgclinic_testkit::{TempCopy, checked, copy_of, seed, server};

fn hurt_copy() -> TempCopy {
    copy_of(&seed(&server(15), Checksums::On))
}

/// Damage, at the level that compares to `pg_checksums`.
fn check(pgdata: &Path) -> Vec<Finding> {
    let mut findings = check_at(pgdata, Level::Pages);
    findings.retain(|finding| finding.severity == Severity::Damage);
    findings
}

fn check_at(pgdata: &Path, level: Level) -> Vec<Finding> {
    let source = Arc::new(DataDirectory::open(pgdata).expect("a directory"));
    let cluster = Cluster::open(source).expect("a cluster");
    checked(&cluster, level).findings
}

fn rules(findings: &[Finding]) -> Vec<(&str, &str)> {
    findings
        .iter()
        .map(|finding| (finding.rule.as_str(), finding.place.path.as_str()))
        .collect()
}

#[test]
fn empty_and_foreign_files_are_no_damage() {
    let copy = hurt_copy();
    let global = copy.pgdata.join("global");
    for ending in [
        "",
        ".123",
        "_fsm",
        "_init",
        "_vm",
        "_init.123",
        "_fsm.123",
        "_vm.123",
    ] {
        write(global.join(format!("99999{ending}")), "").expect("an empty file");
    }
    create_dir(global.join("pgsql_tmp")).expect("a directory");
    for name in [
        "pgsql_tmp_123",
        "pgsql_tmp/1.1",
        "pg_internal.init",
        "pg_internal.init.123",
        ".DS_Store",
    ] {
        write(global.join(name), "foo").expect("a file");
    }
    let other = copy.tablespaces.first().expect("a tablespace");
    create_dir(other.join("PG_99_999999991")).expect("a directory");
    write(other.join("PG_99_999999991/foo"), "123").expect("a file");
    let findings = check(&copy.pgdata);
    assert!(findings.is_empty(), "{:?}", rules(&findings));
}

#[test]
fn files_named_like_relations_are_read() {
    let copy = hurt_copy();
    let endings = [
        "",
        ".123",
        "_fsm",
        "_init",
        "_vm",
        "_init.123",
        "_fsm.123",
        "_vm.123",
    ];
    let names: Vec<String> = endings
        .iter()
        .enumerate()
        .map(|(at, ending)| format!("global/9999{at}{ending}"))
        .collect();
    for name in &names {
        write(copy.pgdata.join(name), "foo").expect("a file");
    }
    let findings = check_at(&copy.pgdata, Level::Structure);
    for name in &names {
        let told = findings.iter().any(|finding| finding.place.path == *name);
        assert!(told, "{name}: {:?}", rules(&findings));
    }
}

#[test]
fn a_wrong_checksum_is_found_in_each_tablespace_and_gone_with_its_table() {
    let copy = hurt_copy();
    let mut server = copy.start().expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    let space = "SELECT spcname FROM pg_tablespace WHERE oid > 16383 LIMIT 1";
    let space = session
        .query_value(space)
        .expect("an answer")
        .expect("a tablespace");
    let mut paths = Vec::new();
    for (table, space) in [("one", "pg_default"), ("two", space.as_str())] {
        let make = format!(
            "CREATE TABLE public.hurt_{table} TABLESPACE {space} AS SELECT a FROM generate_series(1, 10000) a"
        );
        session.execute(&make).expect("a table");
        let path = format!("SELECT pg_relation_filepath('public.hurt_{table}')");
        paths.extend(session.query_value(&path).expect("an answer"));
    }
    drop(session);
    server.stop(StopMode::Fast).expect("a stop");
    assert!(check(&copy.pgdata).is_empty(), "sound before it is hurt");
    for path in &paths {
        let file = File::options()
            .write(true)
            .open(copy.pgdata.join(path))
            .expect("a file");
        file.write_all_at(&[0xA5; 2], 8).expect("a write");
    }
    let mut told: Vec<_> = check(&copy.pgdata)
        .into_iter()
        .map(|finding| (finding.rule, finding.place.path, finding.place.block))
        .collect();
    told.sort();
    let mut wanted: Vec<_> = paths
        .iter()
        .map(|path| ("checksum-mismatch".to_owned(), path.clone(), Some(0)))
        .collect();
    wanted.sort();
    assert_eq!(told, wanted);
    let mut server = copy.start().expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    session
        .execute("DROP TABLE public.hurt_one, public.hurt_two")
        .expect("a drop");
    drop(session);
    server.stop(StopMode::Fast).expect("a stop");
    let findings = check(&copy.pgdata);
    assert!(findings.is_empty(), "{:?}", rules(&findings));
}
