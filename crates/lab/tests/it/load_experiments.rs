//! The experiments that lean on load, at their smallest scale. Only what does not depend on speed
//! is asserted.

use crate::common;

use common::{metric, results, smallest};
use pgclinic_lab::{
    Outcome, Plan, PlanOptions, PreparedFolder, RunResult, Scale, experiment_named,
};

fn done<'a>(results: &'a [RunResult], arm: &str) -> &'a RunResult {
    let found = results.iter().find(|result| result.cell.arm == arm);
    let found = found.unwrap_or_else(|| panic!("no run of {arm}"));
    assert_eq!(found.outcome, Outcome::Done, "{arm}");
    found
}

#[test]
fn sessions_keep_what_they_have_sorted_and_seen() {
    let results = results(smallest("connection-memory", &[]), Some(15));
    let of = |arm: &str, name: &str| metric(&results, arm, &[], name);
    assert!(of("idle", "private_bytes") > 100_000.0);
    for arm in ["sort-16mb", "many-tables"] {
        assert!(
            of(arm, "private_bytes") > of("idle", "private_bytes"),
            "{arm}"
        );
    }
    let tables = |arm: &str| of(arm, "page_table_bytes");
    assert!(tables("all-buffers") > tables("idle"));
    // While it executes a session takes work_mem for each node, more for a hash, and again for each
    // worker: the talk's point, in times of work_mem.
    let times = |arm: &str| of(arm, "times_work_mem");
    assert!(
        (0.5..2.0).contains(&times("running-sort")),
        "{}",
        times("running-sort")
    );
    for arm in ["running-3-sorts", "running-hash", "running-parallel-sort"] {
        assert!(
            times(arm) > 1.4 * times("running-sort"),
            "{arm}: {}",
            times(arm)
        );
    }
    // Resident memory counts the shared buffers, private memory does not.
    let shared = of("all-buffers", "resident_bytes") - of("all-buffers", "private_bytes");
    assert!(shared > 8e6, "{shared}");
}

#[test]
fn each_round_of_the_lock_takes_one_transaction_number() {
    let plan = smallest("lock-contention", &[("clients", &["8"])]);
    let mut results = results(plan, None);
    results.retain(|result| !result.cell.is_control);
    for arm in ["15.5", "15.6"] {
        let run = done(&results, arm);
        let rounds = run.metrics["rounds"] + run.metrics["failed"];
        // Rounds that ended just after the window took a number too, and so does an autovacuum that
        // comes by.
        let xids = run.metrics["xids"];
        assert!(
            (rounds..=rounds + 108.0).contains(&xids),
            "{xids} for {rounds} rounds"
        );
        assert!(run.files.contains(&"load.json".to_owned()));
        // Beside what every load watches: what the sessions wait for.
        assert!(run.series.contains_key("wait.active_sessions"));
        assert!(run.metrics.contains_key("processor.steal_percent"));
    }
    let experiment = experiment_named("lock-contention").expect("the experiment");
    let remarks = experiment.remarks(&results);
    // An arm has its sentence where some look met a session at work; a short run may have none.
    let met = |(name, mean): (&String, &f64)| name.starts_with("wait.") && *mean > 0.0;
    let arms = ["15.5", "15.6"].into_iter();
    let arms: Vec<&str> = arms
        .filter(|arm| done(&results, arm).metrics.iter().any(met))
        .collect();
    assert_eq!(remarks.len(), arms.len(), "{remarks:?}");
    for (arm, words) in arms.iter().zip(&remarks) {
        assert!(
            words.starts_with(&format!("at 8 clients on {arm}: ")),
            "{words}"
        );
    }
}

#[test]
fn folders_are_arms_and_a_run_lies_in_its_folder() {
    let folders =
        [tempfile::tempdir(), tempfile::tempdir()].map(|folder| folder.expect("a directory"));
    let options = PlanOptions {
        scale: Scale::Smallest,
        blocks: Some(1),
        folders: folders
            .iter()
            .map(|folder| PreparedFolder {
                name: None,
                path: folder.path().to_path_buf(),
            })
            .collect(),
        ..PlanOptions::default()
    };
    for folder in &folders {
        // The server's user must reach it.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).expect("an open directory");
    }
    let experiment = experiment_named("filesystem").expect("the experiment");
    let plan = Plan::make(experiment, None, &options).expect("a plan");
    let arms = plan.matrix.arms.clone();
    assert!(
        arms[0].name.ends_with("-1") && arms[1].name.ends_with("-2"),
        "{arms:?}"
    );
    let results = results(plan, Some(15));
    for (arm, folder) in arms.iter().zip(&folders) {
        let run = done(&results, &arm.name);
        assert!(run.metrics["disk_bytes"] > 5e6, "{:?}", run.metrics);
        assert!(run.environment.contains_key("file_system.type"));
        let left = std::fs::read_dir(folder.path())
            .expect("a directory")
            .count();
        assert_eq!(left, 0, "runs leave nothing behind");
    }
    let other = experiment_named("duplicate-inserts").expect("the experiment");
    assert!(Plan::make(other, None, &options).is_err());
}

#[test]
fn a_cold_read_meets_every_page_whatever_the_method() {
    let options = PlanOptions {
        scale: Scale::Smallest,
        blocks: Some(1),
        arms: ["worker", "sync", "io-uring"].map(str::to_owned).to_vec(),
        ..PlanOptions::default()
    };
    let experiment = experiment_named("async-io").expect("the experiment");
    let plan = Plan::make(experiment, None, &options).expect("a plan");
    let results = results(plan, None);
    for arm in ["worker", "sync"] {
        let run = done(&results, arm);
        assert!(run.metrics["pages"] > 2_000.0, "{:?}", run.metrics);
        // Counted in nanoseconds: even a read of some milliseconds takes some.
        assert!(run.metrics["backend_cpu_s"] > 0.0, "{:?}", run.metrics);
    }
    let one = results.iter().find(|result| {
        let cell = &result.cell;
        cell.arm == "worker" && cell.at("read") == "analyze" && cell.at("io-concurrency") == "1"
    });
    let one = one.expect("a run that looks ahead by one page");
    for setting in ["effective_io_concurrency", "maintenance_io_concurrency"] {
        assert_eq!(one.environment[&format!("setting.{setting}")], "1");
    }
    assert!(one.files.contains(&"watched.json".to_owned()));
    let uring = results.iter().find(|result| result.cell.arm == "io-uring");
    let outcome = &uring.expect("a run").outcome;
    assert!(
        matches!(outcome, Outcome::Done | Outcome::Skipped { .. }),
        "{outcome:?}"
    );
}

/// Half a gigabyte takes the disk and the backend so long that many looks fall into the read, and
/// the worker's share of it many requests of 128 kB.
#[test]
fn workers_have_requests_in_flight_and_take_processor_time() {
    let own = |value: &str| vec![value.to_owned()];
    let options = PlanOptions {
        scale: Scale::Quick,
        blocks: Some(1),
        arms: own("worker"),
        only: vec![
            ("read".to_owned(), own("sequential")),
            ("io-concurrency".to_owned(), own("16")),
        ],
        ..PlanOptions::default()
    };
    let experiment = experiment_named("async-io").expect("the experiment");
    let plan = Plan::make(experiment, None, &options).expect("a plan");
    let results = results(plan, None);
    let run = done(&results, "worker");
    for name in [
        "in_flight",
        "aio.in_flight_max",
        "workers_cpu_s",
        "backend_cpu_s",
    ] {
        assert!(run.metrics[name] > 0.0, "{name}: {:?}", run.metrics);
    }
    assert!(run.series.contains_key("aio.in_flight"));
}

#[test]
fn a_session_without_jit_does_not_grow() {
    let options = PlanOptions {
        scale: Scale::Smallest,
        blocks: Some(1),
        arms: vec!["jit-off".to_owned(), "jit-on".to_owned()],
        ..PlanOptions::default()
    };
    let experiment = experiment_named("jit-memory").expect("the experiment");
    let plan = Plan::make(experiment, None, &options).expect("a plan");
    let results = results(plan, Some(15));
    let off = done(&results, "jit-off");
    let kept = off.metrics["private_kb_first_100"];
    assert!(kept < 100.0, "{kept} kB");
    assert_eq!(off.series["private_bytes"].len(), 13);
    // Debian's server has JIT, fetched ones have not.
    let on = results
        .iter()
        .find(|result| result.cell.arm == "jit-on")
        .expect("a run");
    match &on.outcome {
        Outcome::Skipped { why } => assert!(why.contains("has no JIT"), "{why}"),
        outcome => {
            assert_eq!(*outcome, Outcome::Done);
            // Within the first hundred queries the server keeps what it has compiled, fix or not:
            // no slope is made of it, and no advice.
            let keeps = on.metrics["private_kb_first_100"];
            assert!(keeps > kept + 1_000.0, "{keeps} and {kept} kB");
            assert!(!on.metrics.contains_key("private_kb_per_1000"));
            let experiment = experiment_named("jit-memory").expect("the experiment");
            let cards = experiment.comparisons(&experiment.matrix(Scale::Smallest));
            let withheld = experiment.withheld(&cards[0], &results);
            let why = withheld.expect("no advice").why;
            assert!(why.contains("too short"), "{why}");
            let end = |run: &RunResult| run.metrics["private_bytes_end"];
            assert!(
                end(on) > 2.0 * end(off),
                "LLVM takes memory: {} and {}",
                end(on),
                end(off)
            );
        }
    }
}
