//! Version files that are wrong: what control file, WAL and databases say against them. On a real
//! server, which then starts.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pgclinic_cluster::{Cluster, OpenOptions};
use pgclinic_model::plan::Safety;
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_source::DataDirectory;
use pgclinic_surgery::start_again::StartPlan;
use pgclinic_testkit::{copy_of, seed, server, value};

use crate::start_again::{carry_out, plan};

/// The files that the plan writes, after these were made to say `text`.
fn written(pgdata: &Path, files: &[&str], text: &str) -> Vec<(String, Safety)> {
    for path in files {
        fs::write(pgdata.join(path), text).expect("a version");
    }
    let plan = plan(pgdata).expect("a plan");
    let own = plan.request.iter().zip(&plan.cures);
    own.map(|(request, cure)| (request.path.clone(), cure.safety))
        .collect()
}

#[test]
fn a_version_that_everything_else_contradicts_is_written_and_no_other() {
    for text in ["14\n", "9.6\n", "", "x\n"] {
        let copy = copy_of(&seed(&server(15), Checksums::On));
        let files = ["PG_VERSION", "base/1/PG_VERSION"];
        let cures = written(&copy.pgdata, &files, text);
        let expected = files.map(|path| (path.to_owned(), Safety::Exact));
        assert_eq!(cures, expected, "{text:?}");
    }
}

#[test]
fn without_a_control_file_wal_and_databases_tell_the_version() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    fs::remove_file(copy.pgdata.join("global/pg_control")).expect("a control file");
    let cures = written(&copy.pgdata, &["PG_VERSION"], "14\n");
    let paths: Vec<&str> = cures.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["PG_VERSION", "global/pg_control"]);
    let plan = plan(&copy.pgdata).expect("a plan");
    let journals = tempfile::tempdir().expect("a directory");
    carry_out(&copy.pgdata, &plan, &journals.path().join("journal"));
    let mut running = copy.start().expect("a server");
    assert_eq!(value(&running, "SELECT 1"), "1");
    running.stop(StopMode::Fast).expect("an end");
}

/// The paths that nothing cures, with the reasons.
fn open_paths(plan: &StartPlan) -> Vec<(&str, &str)> {
    let own = plan.not_healed.iter();
    own.map(|own| (own.path.as_str(), own.why[0].as_str()))
        .collect()
}

#[test]
fn without_both_files_the_databases_tell_the_version() {
    for has_wal in [true, false] {
        let copy = copy_of(&seed(&server(15), Checksums::On));
        for path in ["global/pg_control", "PG_VERSION"] {
            fs::remove_file(copy.pgdata.join(path)).expect("a file");
        }
        let segments = fs::read_dir(copy.pgdata.join("pg_wal")).expect("WAL");
        let paths = segments.map(|entry| entry.expect("an entry").path());
        for path in paths.filter(|path| path.is_file() && !has_wal) {
            fs::remove_file(path).expect("a segment");
        }
        let plan = plan(&copy.pgdata).expect("a plan");
        assert_eq!(plan.request[0].path, "PG_VERSION");
        let expected = if has_wal {
            Safety::Exact
        } else {
            Safety::Lossy
        };
        assert_eq!(plan.cures[0].safety, expected, "{plan:?}");
        let journals = tempfile::tempdir().expect("a directory");
        carry_out(&copy.pgdata, &plan, &journals.path().join("journal"));
        let mut running = copy.start().expect("a server");
        assert_eq!(value(&running, "SELECT 1"), "1");
        running.stop(StopMode::Fast).expect("an end");
    }
}

#[test]
fn without_both_files_databases_of_two_versions_decide_nothing() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    for path in ["global/pg_control", "PG_VERSION"] {
        fs::remove_file(copy.pgdata.join(path)).expect("a file");
    }
    fs::write(copy.pgdata.join("base/1/PG_VERSION"), "14\n").expect("a version");
    let source = DataDirectory::open(&copy.pgdata).expect("a directory");
    let opened = Cluster::open(OpenOptions::of(Arc::new(source)));
    let why = opened
        .map(drop)
        .expect_err("nothing tells the version")
        .to_string();
    assert!(why.contains("PG_VERSION is missing"), "{why}");
}

#[test]
fn a_directory_in_place_of_the_file_is_named_with_what_to_do() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let path = copy.pgdata.join("PG_VERSION");
    fs::remove_file(&path).expect("a file");
    fs::create_dir(&path).expect("a directory");
    let found = plan(&copy.pgdata).expect("a plan");
    assert_eq!(found.cures, []);
    let [(own, why)] = open_paths(&found)[..] else {
        panic!("{found:?}");
    };
    assert_eq!(own, "PG_VERSION");
    assert!(why.starts_with("it is a directory"), "{why}");
    let moved = copy.pgdata.join("PG_VERSION.directory");
    let command = format!("mv {} {}", path.display(), moved.display());
    assert_eq!(found.not_healed[0].commands, [command]);
    fs::remove_dir(&path).expect("a directory");
    let cures = plan(&copy.pgdata).expect("a plan").cures;
    assert_eq!(cures.len(), 1, "{cures:?}");
}

/// A server of the other major would start on these catalogs.
#[test]
fn wal_of_another_major_is_not_given_up_for_what_all_version_files_say() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    fs::remove_file(copy.pgdata.join("global/pg_control")).expect("a control file");
    let homes = fs::read_dir(copy.pgdata.join("base")).expect("databases");
    let homes = homes.map(|home| home.expect("a database").path());
    for path in homes.chain([copy.pgdata.clone()]) {
        fs::write(path.join("PG_VERSION"), "14\n").expect("a version");
    }
    let plan = plan(&copy.pgdata).expect("a plan");
    assert!(
        !plan.cures.iter().any(|cure| cure.name == "reset-wal"),
        "{plan:?}"
    );
    let mut why = plan.not_healed.iter().flat_map(|own| &own.why);
    assert!(
        why.any(|why| why.contains("WAL is of PostgreSQL 15")),
        "{plan:?}"
    );
}
