//! What goes on beside a run is told, and what a person's own file asks for before and in a run is
//! done.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use common::{Nobody, metric, options};
use pgclinic_lab::{OwnExperiment, Plan, PlanOptions, RunFolder, RunResult, carry_out};

/// Runs the text of a file; gives the results and the names and bytes of `watched.json`.
fn run(text: &str) -> (Vec<RunResult>, Vec<String>) {
    let own = OwnExperiment::parse(text).expect("an experiment");
    let plan = Plan::make(&own, Some(text.to_owned()), &PlanOptions::default()).expect("a plan");
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("run");
    let folder = RunFolder::create(&path, plan).expect("a run directory");
    let stop = Arc::new(AtomicBool::new(false));
    let results = carry_out(&own, &folder, &options(None), stop, &mut Nobody).expect("results");
    let watched = |result: &RunResult| {
        let file = path.join("runs").join(&result.cell.id).join("watched.json");
        std::fs::read_to_string(file).unwrap_or_default()
    };
    let watched = results.iter().map(watched).collect();
    (results, watched)
}

#[test]
fn a_checkpoint_in_a_run_is_an_overlap_and_one_before_it_is_none() {
    let text = r#"
name = "checkpoints"
question = "Is a checkpoint told?"
blocks = 1
watch = ["wait"]
[setup]
sql = "CREATE TABLE t (a integer); INSERT INTO t SELECT generate_series(1, 1000);"
checkpoint = true
[[arm]]
name = "quiet"
run = "SELECT count(*) FROM t"
[[arm]]
name = "busy"
run = "CHECKPOINT"
[run]
[[metric]]
name = "run_s"
"#;
    let (results, watched) = run(text);
    for (result, watched) in results.iter().zip(&watched) {
        let arm = &result.cell.arm;
        let told = result
            .overlaps
            .iter()
            .any(|words| words.starts_with("a checkpoint ended"));
        assert_eq!(told, arm == "busy", "{arm}: {:?}", result.overlaps);
        for name in ["checkpoints", "autovacuum", "processor", "wait", "session"] {
            assert!(
                watched.contains(&format!("\"name\": \"{name}\"")),
                "{name} in {watched}"
            );
        }
        assert!(result.metrics.contains_key("watching.cpu_s"));
    }
    assert_eq!(results.len(), 3);
}

#[test]
fn a_mix_draws_by_weight_and_an_arm_may_have_a_script_of_its_own() {
    let text = r#"
name = "mix"
question = "Are scripts drawn by weight?"
blocks = 1
[setup]
sql = "CREATE TABLE seen (what text);"
before = "ALTER SYSTEM SET max_locks_per_transaction = 77"
restart = true
[[arm]]
name = "mixed"
[[arm]]
name = "own"
script = "INSERT INTO seen VALUES ('own');"
[load]
seconds = 1
clients = "2"
[[load.mix]]
script = "INSERT INTO seen VALUES ('often');"
weight = 9
[[load.mix]]
script = "INSERT INTO seen VALUES ('seldom');"
[[metric]]
name = "often_share"
sql = "SELECT coalesce(avg((what = 'often')::integer), 0) FROM seen"
[[metric]]
name = "locks"
sql = "SELECT current_setting('max_locks_per_transaction')"
[[metric]]
name = "seldom_share"
sql = "SELECT coalesce(avg((what = 'seldom')::integer), 0) FROM seen"
[[metric]]
name = "own_share"
sql = "SELECT coalesce(avg((what = 'own')::integer), 0) FROM seen"
"#;
    let (results, _) = run(text);
    let of = |arm: &str, name: &str| metric(&results, arm, &[], name);
    assert_eq!(of("own", "own_share"), 1.0);
    // What only a restart takes up was set before the run.
    assert_eq!(of("own", "locks"), 77.0);
    let (often, seldom) = (of("mixed", "often_share"), of("mixed", "seldom_share"));
    assert!((often + seldom - 1.0).abs() < 1e-9, "{often} and {seldom}");
    // Nine of ten; a thousand draws stray by less than a tenth of that.
    assert!((0.8..1.0).contains(&often), "{often}");
}
