//! Folders of the laboratory beside each other: merged, compared, copied, short of blocks or of
//! files. No server is needed.

use crate::common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::{Ran, pgclinic, text};
use pgclinic_lab::{Outcome, OwnExperiment, Plan, PlanOptions, RunFolder, RunResult};

/// An experiment of one's own.
const MINE: &str = r#"
name = "mine"
question = "Which is faster?"
blocks = 4
[[arm]]
name = "old"
[[arm]]
name = "new"
[run]
sql = "SELECT 1"
[[metric]]
name = "run_s"
"#;

/// What the journal says where the budget did not hold the third block.
const DROPPED: &str = r#"{"at":1,"event":"began"}
{"at":2,"event":"dropped","block":3,"outcome":"runs take 3.0 times as long as was estimated"}
{"at":3,"event":"ended"}
"#;

fn plan(file: &str) -> Plan {
    let own = OwnExperiment::parse(file).expect("an experiment");
    Plan::make(&own, Some(file.to_owned()), &PlanOptions::default()).expect("a plan")
}

/// A folder with the results of the first blocks, begun in this second: the new arm takes half the
/// time.
fn folder(home: &Path, name: &str, plan: &Plan, blocks: u32, started: u64) -> PathBuf {
    let path = home.join(name);
    RunFolder::create(&path, plan.clone()).expect("a run directory");
    for cell in plan.cells.iter().filter(|cell| cell.block <= blocks) {
        let wobble = 1.0 + f64::from(cell.block) * 0.1 + f64::from(cell.repeat) * 0.002;
        let seconds = if cell.arm == "new" {
            wobble
        } else {
            2.0 * wobble
        };
        let result = RunResult {
            cell: cell.clone(),
            outcome: Outcome::Done,
            metrics: BTreeMap::from([("run_s".to_owned(), seconds)]),
            series: BTreeMap::new(),
            environment: BTreeMap::from([("server_version".to_owned(), "15.9".to_owned())]),
            overlaps: Vec::new(),
            files: Vec::new(),
            started,
            elapsed_s: seconds,
        };
        let run = path.join("runs").join(&cell.id);
        fs::create_dir(&run).expect("a run's directory");
        let written = serde_json::to_vec(&result).expect("JSON");
        fs::write(run.join("run.json"), written).expect("a result");
    }
    path
}

/// `pgclinic lab WORK FOLDER… MORE… --format json --quiet`.
fn lab(work: &str, folders: &[&Path], more: &[&str]) -> Ran {
    let mut line = vec!["lab", work];
    line.extend(folders.iter().map(|path| text(path)));
    line.extend(more);
    line.extend(["--format", "json", "--quiet"]);
    pgclinic(&line)
}

#[track_caller]
fn json(ran: &Ran) -> serde_json::Value {
    serde_json::from_str(&ran.out).expect("JSON")
}

/// Whether a remark holds these words.
fn remarks_say(document: &serde_json::Value, words: &str) -> bool {
    let remarks = document["remarks"].as_array().into_iter().flatten();
    remarks
        .filter_map(|remark| remark.as_str())
        .any(|remark| remark.contains(words))
}

#[test]
fn machines_that_ran_fewer_blocks_are_whole_when_merged_and_can_be_judged_anew() {
    let home = tempfile::tempdir().expect("a directory");
    let plan = plan(MINE);
    let (a, b) = (
        folder(home.path(), "a", &plan, 2, 100),
        folder(home.path(), "b", &plan, 2, 200),
    );
    for folder in [&a, &b] {
        fs::write(folder.join("journal.jsonl"), DROPPED).expect("a journal");
        lab("report", &[folder], &[]).exits(0);
    }
    let into = home.path().join("merged");
    let merged = lab("merge", &[&a, &b], &["--into", text(&into)]).exits(0);
    let merged = json(&merged);
    assert_eq!(merged["plan"]["blocks"], 4);
    assert!(remarks_say(&merged, "left out of the plan: 2 of 4 blocks"));
    let page = fs::read_to_string(into.join("report.html")).expect("a page");
    let run = format!("machines/b/runs/{}/run.json", plan.cells[0].id);
    assert!(page.contains(&run) && into.join(&run).exists());

    let anew = json(&lab("report", &[&into], &["--margin", "30"]).exits(0));
    assert_eq!(anew["complete"], true);
    assert_eq!(anew["plan"]["margin"], 0.3);
    for key in ["runs", "machines", "started"] {
        assert_eq!(anew[key], merged[key], "{key}");
    }

    let now = folder(home.path(), "now", &plan, 4, 300);
    let compared = json(&lab("compare", &[&into, &now], &[]).exits(0));
    assert_eq!(compared["complete"], true);
    assert!(remarks_say(&compared, "was merged from several machines"));
    let refused = lab("compare", &[&into, &b], &[]).exits(2);
    assert!(refused.err.contains("hold the same run"), "{}", refused.err);
}

#[test]
fn a_folder_that_lost_its_runs_or_a_result_is_merged_and_compared_with_what_is_left() {
    let home = tempfile::tempdir().expect("a directory");
    let plan = plan(MINE);
    let (a, b) = (
        folder(home.path(), "a", &plan, 4, 100),
        folder(home.path(), "b", &plan, 4, 200),
    );
    let torn = a.join("runs").join(&plan.cells[0].id).join("run.json");
    fs::write(&torn, "{\"cell\":").expect("half a result");
    let words = format!("{} cannot be read and does not count", torn.display());
    let compared = json(&lab("compare", &[&a, &b], &[]).exits(0));
    assert!(remarks_say(&compared, &words), "{compared}");

    fs::remove_dir_all(b.join("runs")).expect("no runs");
    let into = home.path().join("merged");
    let merged = json(&lab("merge", &[&a, &b], &["--into", text(&into)]).exits(3));
    assert!(remarks_say(&merged, &words), "{merged}");
    let runs = merged["runs"].as_array().expect("runs");
    let done = runs.iter().filter(|run| run["outcome"] == "done");
    assert_eq!(
        (runs.len(), done.count()),
        (2 * plan.cells.len(), plan.cells.len() - 1)
    );
    lab("report", &[&into], &[]).exits(3);
}

#[test]
fn a_copy_is_refused_and_so_is_a_file_that_asks_something_else() {
    let home = tempfile::tempdir().expect("a directory");
    let mine = plan(MINE);
    let folder =
        |name: &str, plan: &Plan, started: u64| folder(home.path(), name, plan, 4, started);
    let (a, copy) = (folder("a", &mine, 100), folder("copy", &mine, 100));
    for other in [&a, &copy] {
        let refused = lab("compare", &[&a, other], &[]).exits(2);
        assert!(refused.err.contains("hold the same run"), "{}", refused.err);
    }
    let commented = plan(&MINE.replace("SELECT 1", "SELECT  1 -- as ever"));
    let commented = folder("commented", &commented, 200);
    lab("compare", &[&a, &commented], &[]).exits(0);
    let other = plan(&MINE.replace(
        "name = \"new\"",
        "name = \"new\"\nsql = \"CREATE TABLE t ()\"",
    ));
    let other = folder("other", &other, 300);
    let refused = lab("compare", &[&a, &other], &[]).exits(2);
    let words = "the files of the two experiments differ: arm \"new\": sql";
    assert!(refused.err.contains(words), "{}", refused.err);
}
