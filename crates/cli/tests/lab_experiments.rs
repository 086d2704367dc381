//! What a person brings to an experiment on the command line.

mod common;

use std::process::Command;

use common::{pgclinic, text};

#[test]
fn a_named_folder_is_an_arm_and_two_on_one_disk_are_told() {
    let homes = [tempfile::tempdir(), tempfile::tempdir()].map(|home| home.expect("a folder"));
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
    let home = tempfile::tempdir().expect("a folder");
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

/// The salvage beside `pg_dump` finds every object in the files of the stopped server, and writes one file.
#[test]
fn large_objects_are_salvaged_into_one_file() {
    let home = tempfile::tempdir().expect("a folder");
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
