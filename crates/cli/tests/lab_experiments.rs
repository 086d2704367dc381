//! Experiments that need the program itself, and what a person brings to one on the command line.

mod common;

use common::{pgclinic, text};

/// Results of one arm as `run.json` has them.
fn metric(folder: &std::path::Path, run: &str, name: &str) -> f64 {
    let file = folder.join("runs").join(run).join("run.json");
    let json = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let run: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let value = run["metrics"][name].as_f64();
    value.unwrap_or_else(|| panic!("no {name} in {run}"))
}

#[test]
fn salvage_writes_every_large_object_into_one_file() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join("run");
    let line = [
        "lab",
        "run",
        "large-object-dump",
        "--scale",
        "smallest",
        "--arm",
        "salvage",
        "--only",
        "format=custom",
        "--into",
        text(&folder),
        "--wait-for-calm",
        "0",
        "--quiet",
    ];
    pgclinic(&line).exits(0);
    let run = "b01-salvage-format_custom-objects_500-object-bytes_0-owners_one";
    assert_eq!(metric(&folder, run, "entries"), 500.0);
    assert_eq!(metric(&folder, run, "files"), 1.0);
    assert!(metric(&folder, run, "peak_memory_kb") > 0.0);
}

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
