//! A run that ended in the middle goes on from each state that it left, and says in the end what an
//! undisturbed run says.

use std::cell::RefCell;
use std::fs::File;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use pgclinic_cluster::Cluster;
use pgclinic_diagnose::{
    CheckDocument, CheckOptions, Course, Level, RunState, Selection, StateKeeper, check_cluster,
    check_cluster_on,
};
use pgclinic_servers::{Checksums, Scratch};
use pgclinic_source::{Overlay, OverlayPatch};
use pgclinic_testkit::{
    Quiet, as_primary, copy_of, directory, open, plain_backup, run_as, seed, server,
};

/// Few enough that a database takes several rounds.
const ROUND_BYTES: u64 = 1 << 20;

/// Every state, as the file has it.
#[derive(Default)]
struct Shelf(RefCell<Vec<String>>);

impl StateKeeper for Shelf {
    fn keep(&self, state: &RunState) {
        let text = serde_json::to_string(state).expect("plain data");
        self.0.borrow_mut().push(text);
    }
}

fn options() -> CheckOptions {
    CheckOptions {
        level: Level::Full,
        threads: NonZeroUsize::MIN.saturating_add(1),
        evidence: 3,
        selection: Selection::default(),
        spec: "a cluster".into(),
        memory_bytes: CheckOptions::MEMORY_BYTES,
        spill_folder: std::env::temp_dir(),
        since: None,
    }
}

/// Some pages of the cluster are zero in their middle.
fn hurt() -> Cluster {
    let pgdata = seed(&server(18), Checksums::On).pgdata;
    let cluster = open(&pgdata);
    let mut patches = Vec::new();
    for home in &cluster.homes {
        for files in cluster.files(home).expect("files") {
            if files.filenode % 7 == 0 && files.bytes() >= 16384 {
                patches.push(OverlayPatch::Bytes {
                    path: files.path(0),
                    offset: 8192 + 4096,
                    bytes: vec![0; 512],
                });
            }
        }
    }
    assert!(patches.len() >= 5, "{} files are hurt", patches.len());
    let overlay = Overlay::new(directory(&pgdata), patches).expect("plain paths");
    Cluster::open(Arc::new(overlay)).expect("a cluster")
}

fn course<'a>(cluster: &Cluster, shelf: &'a Shelf, from: Option<RunState>) -> Course<'a> {
    let mut course = match from {
        None => Course::new(cluster, &options(), Some(shelf)),
        Some(state) => {
            Course::resumed(cluster, &options(), Some(shelf), state).expect("the state holds")
        }
    };
    course.round_bytes = ROUND_BYTES;
    course
}

/// What does not depend on the order of the rounds.
fn sorted(mut document: CheckDocument) -> CheckDocument {
    let coverage = &mut document.coverage;
    coverage
        .not_checked
        .sort_by(|a, b| (&a.what, &a.why).cmp(&(&b.what, &b.why)));
    document
        .relations
        .sort_by(|a, b| (&a.path, a.fork).cmp(&(&b.path, b.fork)));
    document
}

/// An undisturbed run, one in rounds, and some that go on from where another ended, all say the same.
fn goes_on_from_each_state(cluster: &Cluster) -> CheckDocument {
    let whole = sorted(check_cluster(cluster, &options(), &Quiet));
    let shelf = Shelf::default();
    let in_rounds = check_cluster_on(course(cluster, &shelf, None), cluster, &options(), &Quiet);
    assert_eq!(sorted(in_rounds), whole);

    let states = shelf.0.into_inner();
    assert!(states.len() >= 10, "{} states", states.len());
    for text in states.iter().step_by(states.len().div_ceil(4)) {
        let state: RunState = serde_json::from_str(text).expect("a state");
        if state.complete {
            continue;
        }
        let later = Shelf::default();
        let course = course(cluster, &later, Some(state));
        let resumed = check_cluster_on(course, cluster, &options(), &Quiet);
        assert_eq!(sorted(resumed), whole);
    }
    whole
}

#[test]
fn a_run_goes_on_from_each_of_its_states() {
    let whole = goes_on_from_each_state(&hurt());
    assert!(whole.findings.len() >= 5);
}

/// No file is read again to be summed, and none is counted twice.
#[test]
fn so_does_a_run_over_a_base_backup() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let server = copy.start_with(&as_primary()).expect("a server");
    let scratch = Scratch::new(&run_as(), None).expect("a folder");
    let folder = scratch.path().join("backup");
    plain_backup(&copy, &server, &folder, &[]);
    drop(server);
    for (path, offset) in [("postgresql.conf", 0), ("base/1/1259", 8192 + 4096)] {
        let file = File::options().write(true).open(folder.join(path));
        let file = file.expect("a file of every backup");
        file.write_all_at(&[0x5A; 8], offset).expect("a write");
    }
    let whole = goes_on_from_each_state(&open(&folder));
    let mut changed: Vec<&str> = whole
        .findings
        .iter()
        .filter(|finding| finding.rule == "backup-file-changed")
        .map(|finding| finding.place.path.as_str())
        .collect();
    changed.sort_unstable();
    assert_eq!(changed, ["base/1/1259", "postgresql.conf"]);
}

#[test]
fn a_state_of_something_else_is_refused() {
    let cluster = hurt();
    let shelf = Shelf::default();
    check_cluster_on(course(&cluster, &shelf, None), &cluster, &options(), &Quiet);
    let states = shelf.0.into_inner();
    let state = |text: &String| serde_json::from_str::<RunState>(text).expect("a state");
    let refused = |state: RunState, options: &CheckOptions| {
        let resumed = Course::resumed(&cluster, options, None, state);
        resumed.map(drop).expect_err("refused")
    };
    let (first, last) = (states.first().expect("one"), states.last().expect("one"));
    assert!(refused(state(last), &options()).contains("nothing is left to do"));
    let other_level = CheckOptions {
        level: Level::Pages,
        ..options()
    };
    assert!(refused(state(first), &other_level).contains("level full"));
    let mut other = state(first);
    other.target.system_identifier = Some("1".into());
    assert!(refused(other, &options()).contains("the cluster 1"));
    let mut older = state(first);
    older.checkpoint = "0/28".into();
    assert!(refused(older, &options()).contains("begin anew"));
}
