//! The laboratory is killed at random points, again and again: resuming gives the same set of
//! results, no server is left, and no half file counts.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use pgclinic_lab::{RunFolder, RunResult};

/// Kills before it is left to finish.
const KILLS: u64 = 5;

fn start(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgclinic"));
    command.args(["lab", "run", "duplicate-inserts", "--scale", "smallest"]);
    command.args(["--arm", "insert,do-nothing", "--only", "collides=second"]);
    command.args(["--only", "created-first=primary", "--progress", "plain"]);
    command.arg("--into").arg(folder).stdout(Stdio::null());
    command
}

/// Kills it behind a line of its progress and some more looks at its journal; gives its process
/// number.
fn run_and_kill(folder: &Path, random: &mut fastrand::Rng) -> u32 {
    let mut child = start(folder)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    let stderr = child.stderr.take().expect("it is piped");
    let mut lines = BufReader::new(stderr).lines();
    for _ in 0..random.u32(0..4) {
        lines.next();
    }
    for _ in 0..random.u32(0..20_000) {
        let _ = std::fs::read(folder.join("journal.jsonl"));
    }
    child.kill().expect("a kill");
    child.wait().expect("its end");
    child.id()
}

fn results(folder: &Path) -> Vec<RunResult> {
    let open = RunFolder::open(folder).expect("a plan");
    let (results, unreadable) = open.results().expect("results");
    assert_eq!(unreadable, [], "no half file counts");
    results
}

/// What does not depend on speed, by run.
fn exact(results: &[RunResult]) -> BTreeMap<String, Vec<u64>> {
    let numbers = |result: &RunResult| {
        let of = |name: &&str| {
            result
                .metrics
                .get(*name)
                .map_or(u64::MAX, |value| value.to_bits())
        };
        ["dead_bytes", "xids", "index_entries"]
            .iter()
            .map(of)
            .collect()
    };
    results
        .iter()
        .map(|result| (result.cell.id.clone(), numbers(result)))
        .collect()
}

/// Processes of servers whose folders a killed process has made.
fn servers_of(killed: &[u32]) -> Vec<String> {
    let commands = std::fs::read_dir("/proc").expect("/proc").flatten();
    let commands =
        commands.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    let theirs = |command: &String| {
        killed
            .iter()
            .any(|pid| command.contains(&format!("/scratch/{pid}-")))
    };
    commands.filter(theirs).collect()
}

#[test]
fn killed_at_random_points_it_gives_the_same_results_and_leaves_no_server() {
    let home = tempfile::tempdir().expect("a directory");
    let (killed_folder, whole_folder) = (home.path().join("killed"), home.path().join("whole"));
    let mut random = fastrand::Rng::with_seed(7);
    let mut killed = Vec::new();
    for _ in 0..KILLS {
        killed.push(run_and_kill(&killed_folder, &mut random));
        if killed_folder.join("plan.json").exists() {
            results(&killed_folder);
        }
    }
    for folder in [&killed_folder, &whole_folder] {
        let ended = start(folder)
            .stderr(Stdio::null())
            .status()
            .expect("the program");
        assert!(ended.success(), "{ended}");
    }
    assert_eq!(
        exact(&results(&killed_folder)),
        exact(&results(&whole_folder))
    );
    assert_eq!(exact(&results(&whole_folder)).len(), 3);
    let names = std::fs::read_dir(killed_folder.join("runs"))
        .expect("runs")
        .flatten();
    let unfinished = names.filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
    assert_eq!(unfinished.count(), 0);
    // The resumed run has swept what the killed ones left.
    assert_eq!(servers_of(&killed), Vec::<String>::new());
}
