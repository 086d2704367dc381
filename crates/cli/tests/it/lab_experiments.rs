//! What a person brings to an experiment on the command line.

use crate::common;

use std::process::Command;

use common::{pgclinic, text};
use pgclinic_servers::Checksums;
use pgclinic_testkit::{busy, copy_of, execute, seed, server, started};

#[test]
fn a_named_folder_is_an_arm_and_two_on_one_disk_are_told() {
    let homes = [tempfile::tempdir(), tempfile::tempdir()].map(|home| home.expect("a directory"));
    let named = format!("zfs-module-and-log={}", text(homes[0].path()));
    let line = [
        "lab",
        "plan",
        "filesystem",
        "--scale",
        "smallest",
        "--folder",
        &named,
        "--folder",
        text(homes[1].path()),
    ];
    let plan = pgclinic(&line).exits(0).out;
    assert!(plan.contains("zfs-module-and-log"), "{plan}");
    assert!(plan.contains("on one disk with"), "{plan}");
    let wrong = pgclinic(&["lab", "plan", "filesystem", "--folder", "=/tmp"]).exits(2);
    assert!(wrong.err.contains("write DIR or NAME=DIR"), "{}", wrong.err);
}

#[test]
fn traffic_has_a_place_in_one_experiment_only() {
    let home = tempfile::tempdir().expect("a directory");
    let table = home.path().join("traffic.csv");
    std::fs::write(&table, "when,logins\nBlack Friday,60000\n").expect("a file");
    let plan = |name: &str| pgclinic(&["lab", "plan", name, "--traffic", text(&table)]);
    plan("catalog-churn").exits(0);
    let refused = plan("uuid-keys").exits(2).err;
    assert!(refused.contains("catalog-churn has"), "{refused}");
    std::fs::write(&table, "Black Friday\nsixty thousand\n").expect("a file");
    let slip = plan("catalog-churn").exits(2).err;
    assert!(slip.contains("line 2"), "{slip}");
}

/// What was learned stands in the plan, and so does why a rate was not.
#[test]
fn a_rate_that_cannot_be_learned_is_told_in_the_plan() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let plan = |name: &str| {
        let mut line = vec!["lab", "plan", name, "--learn-from", text(&copy.pgdata)];
        line.extend(["--relation", "pg_catalog.pg_class", "--database", "clinic"]);
        pgclinic(&line)
    };
    let learned = plan("catalog-churn").exits(0).out;
    assert!(learned.contains("\nwritten: "), "{learned}");
    let wal = std::fs::read_dir(copy.pgdata.join("pg_wal")).expect("a directory");
    for file in wal.map(|entry| entry.expect("an entry").path()) {
        if file.is_file() {
            std::fs::remove_file(&file).expect("it is removed");
        }
    }
    let without = plan("catalog-churn").exits(0).out;
    assert!(
        without.contains("\nwritten: not known, as pg_wal holds no WAL\n"),
        "{without}"
    );
    assert!(
        without.contains("rate=learned") && without.contains("max, 50\n"),
        "{without}"
    );

    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("mine.toml");
    pgclinic(&["lab", "new", text(&file)]).exits(0);
    let made = std::fs::read_to_string(&file).expect("a file");
    let paced = made.replace("# rate = \"learned\"", "rate = \"learned\"");
    assert_ne!(made, paced);
    std::fs::write(&file, paced).expect("a file");
    for refused in [
        plan(text(&file)).exits(2).err,
        pgclinic(&["lab", "plan", text(&file)]).exits(2).err,
    ] {
        assert!(
            refused.contains("line ") && refused.contains("cannot be had, as "),
            "{refused}"
        );
    }
}

/// Its server may be at work, and what it wrote since its last checkpoint is in its WAL alone.
#[test]
fn a_server_at_work_is_learned_from() {
    let (copy, server) = started(18, Checksums::On, &busy());
    let writes = "CREATE TABLE hurried AS SELECT 1 AS a; CHECKPOINT; INSERT INTO hurried VALUES (2); SELECT pg_sleep(0.1); INSERT INTO hurried VALUES (3)";
    execute(&server, writes);
    let pgdata = text(&copy.pgdata);
    let line = ["lab", "plan", "uuid-keys", "--learn-from", pgdata];
    let learned = pgclinic(&[&line[..], &["--relation", "public.hurried"]].concat());
    let learned = learned.exits(0).out;
    assert!(learned.contains("public.hurried: about "), "{learned}");
    assert!(learned.contains("\nwritten: "), "{learned}");
}

/// The salvage beside `pg_dump` finds every object in the files of the stopped server, and writes
/// one file.
#[test]
fn large_objects_are_salvaged_into_one_file() {
    let home = tempfile::tempdir().expect("a directory");
    let folder = home.path().join("run");
    let mut line = vec!["lab", "run", "large-object-dump", "--scale", "smallest"];
    line.extend(["--arm", "salvage,pg-dump-16", "--only", "format=custom"]);
    line.extend(["--into", text(&folder), "--quiet"]);
    // The arm runs this program once more.
    let program = env!("CARGO_BIN_EXE_pgclinic");
    let ran = Command::new(program).args(&line).output();
    let ran = ran.expect("the program");
    assert!(ran.status.success(), "{ran:?}");
    let runs = std::fs::read_dir(folder.join("runs")).expect("runs");
    let results = runs.map(|run| {
        let path = run.expect("a run").path().join("run.json");
        let bytes = std::fs::read(&path).expect("a result");
        serde_json::from_slice::<serde_json::Value>(&bytes).expect("JSON")
    });
    let salvaged = results.filter(|result| result["cell"]["arm"] == "salvage");
    let salvaged: Vec<_> = salvaged.collect();
    assert!(!salvaged.is_empty());
    for result in &salvaged {
        assert_eq!(result["outcome"]["is"], "done", "{result}");
        assert_eq!(result["metrics"]["entries"], 500.0, "{result}");
        // One archive, and the account of it with its page.
        assert_eq!(result["metrics"]["files"], 3.0, "{result}");
    }
}
