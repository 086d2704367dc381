//! A run that ended in the middle goes on from each state that it left, and says in the end what an
//! undisturbed run says.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use pgclinic_check::{
    CheckOptions, LiveServer, ResumableRun, RunState, Since, StateKeeper, check_cluster,
    check_cluster_on, check_running,
};
use pgclinic_cluster::{Cluster, OpenOptions};
use pgclinic_format::Lsn;
use pgclinic_model::{CheckDocument, Level, Selection};
use pgclinic_servers::{Checksums, StartOptions};
use pgclinic_source::{DataDirectory, Overlay, OverlayPatch};
use pgclinic_spill::MemoryPlan;
use pgclinic_testkit::{
    Quiet, as_primary, copy_of, directory, open, plain_backup, scratch, seed, server,
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
        memory: MemoryPlan::default(),
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

fn course<'a>(
    cluster: &Cluster,
    options: &CheckOptions,
    shelf: &'a Shelf,
    from: Option<RunState>,
) -> ResumableRun<'a> {
    let mut course = match from {
        None => ResumableRun::new(cluster, options, Some(shelf)),
        Some(state) => {
            ResumableRun::resumed(cluster, options, Some(shelf), state).expect("the state holds")
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

fn check(course: ResumableRun<'_>, cluster: &Cluster, options: &CheckOptions) -> CheckDocument {
    if cluster.is_running() {
        check_running(course, cluster, options, &Quiet, &NoWait)
    } else {
        check_cluster_on(course, cluster, options, &Quiet)
    }
}

/// An undisturbed run, one in rounds, and some that go on from where another ended, all say the
/// same.
fn goes_on_from_each_state(cluster: &Cluster, options: &CheckOptions) -> CheckDocument {
    let whole = sorted(check(
        ResumableRun::new(cluster, options, None),
        cluster,
        options,
    ));
    let shelf = Shelf::default();
    let in_rounds = check(course(cluster, options, &shelf, None), cluster, options);
    assert_eq!(sorted(in_rounds), whole);

    let states = shelf.0.into_inner();
    assert!(states.len() >= 10, "{} states", states.len());
    for text in states.iter().step_by(states.len().div_ceil(4)) {
        let state: RunState = serde_json::from_str(text).expect("a state");
        if state.complete {
            continue;
        }
        let later = Shelf::default();
        let course = course(cluster, options, &later, Some(state));
        let resumed = check(course, cluster, options);
        assert_eq!(sorted(resumed), whole);
    }
    whole
}

#[test]
fn a_run_goes_on_from_each_of_its_states() {
    let whole = goes_on_from_each_state(&hurt(), &options());
    assert!(whole.findings.len() >= 5);
}

/// What the first run found is found again, though no page has changed.
#[test]
fn so_does_a_run_over_what_changed() {
    let cluster = hurt();
    let first = last_state(&cluster);
    let options = CheckOptions {
        since: Some(Since::of(&first, &cluster, &options()).expect("the state can tell")),
        ..options()
    };
    let whole = goes_on_from_each_state(&cluster, &options);
    let since = whole.since.clone().expect("a summary");
    assert!(
        since.pages_again >= 5 && since.pages_unchanged > 100,
        "{since:?}"
    );
    let ids = |document: &CheckDocument| {
        let own = document.findings.iter().map(|finding| finding.id.clone());
        own.collect::<BTreeSet<_>>()
    };
    let all = check_cluster(&cluster, &self::options(), &Quiet);
    assert_eq!(ids(&whole), ids(&all));
}

/// A state of the one is no state of the other.
#[test]
fn a_run_over_what_changed_is_not_gone_on_with_over_everything() {
    let cluster = hurt();
    let first = last_state(&cluster);
    let changed = CheckOptions {
        since: Some(Since::of(&first, &cluster, &options()).expect("the state can tell")),
        ..options()
    };
    let shelf = Shelf::default();
    check_cluster_on(
        course(&cluster, &changed, &shelf, None),
        &cluster,
        &changed,
        &Quiet,
    );
    let states = shelf.0.into_inner();
    let begun = serde_json::from_str(states.first().expect("one")).expect("a state");
    let refused = ResumableRun::resumed(&cluster, &options(), None, begun).map(drop);
    let why = refused.expect_err("refused");
    assert!(why.contains("pages that changed since"), "{why}");
}

fn last_state(cluster: &Cluster) -> RunState {
    let shelf = Shelf::default();
    let whole = course(cluster, &options(), &shelf, None);
    check_cluster_on(whole, cluster, &options(), &Quiet);
    let states = shelf.0.into_inner();
    serde_json::from_str(states.last().expect("one")).expect("a state")
}

/// Time does not pass: nobody writes.
struct NoWait;

impl LiveServer for NoWait {
    fn wait(&self) {}
}

/// Pages that wait for a second look are in the state too.
#[test]
fn so_does_a_run_beside_a_server() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    // No record of a server with nothing to do.
    let options_of_server = StartOptions::default().with("wal_level", "minimal");
    let running = copy.start_with(&options_of_server).expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    let sql = "SELECT pg_relation_filepath('public.frozen')";
    let path = session.query_value(sql).expect(sql).expect("a path");
    session.execute("CHECKPOINT").expect("written");
    let mut writing = File::options();
    let file = writing.write(true).open(copy.pgdata.join(&path));
    let file = file.expect("a table's file");
    file.write_all_at(&[7; 64], 8192 + 6000).expect("hurt");
    let source = DataDirectory::open_beside_a_server(&copy.pgdata).expect("a directory");
    let cluster = Cluster::open(OpenOptions::of(Arc::new(source)).running()).expect("a cluster");
    let whole = goes_on_from_each_state(&cluster, &options());
    let place = &whole.findings.first().expect("damage").place;
    assert_eq!((place.path.as_str(), place.block), (path.as_str(), Some(1)));
    assert_eq!(whole.relations.len(), 1);
}

/// Neither way: a server changes files under what was judged without one.
#[test]
fn a_state_from_before_a_server_was_started_or_stopped_is_refused() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let stopped = open(&copy.pgdata);
    let state_of = |cluster: &Cluster| {
        let shelf = Shelf::default();
        let course = course(cluster, &options(), &shelf, None);
        check(course, cluster, &options());
        let states = shelf.0.into_inner();
        serde_json::from_str::<RunState>(states.first().expect("one")).expect("a state")
    };
    let before = state_of(&stopped);
    let server = copy.start().expect("a server");
    let source = DataDirectory::open_beside_a_server(&copy.pgdata).expect("a directory");
    let running = Cluster::open(OpenOptions::of(Arc::new(source)).running()).expect("a cluster");
    let beside = state_of(&running);
    drop(server);
    for (state, cluster, says) in [
        (before, &running, "a server is running on it now"),
        (beside, &stopped, "none is running now"),
    ] {
        let refused = ResumableRun::resumed(cluster, &options(), None, state).map(drop);
        let why = refused.expect_err("refused");
        assert!(why.contains(says), "{why}");
    }
    let mut other = state_of(&running);
    let begin = other.begin.as_mut().expect("a begin");
    begin.redo = Lsn(u64::MAX);
    let refused = ResumableRun::resumed(&running, &options(), None, other.clone()).map(drop);
    assert!(refused.expect_err("refused").contains("set back"));
    other.begin.as_mut().expect("a begin").timeline += 1;
    let refused = ResumableRun::resumed(&running, &options(), None, other).map(drop);
    assert!(refused.expect_err("refused").contains("timeline 2"));
}

/// No file is read again to be summed, and none is counted twice.
#[test]
fn so_does_a_run_over_a_base_backup() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let server = copy.start_with(&as_primary()).expect("a server");
    let scratch = scratch();
    let folder = scratch.path().join("backup");
    plain_backup(&copy, &server, &folder, &[]);
    drop(server);
    for (path, offset) in [("postgresql.conf", 0), ("base/1/1259", 8192 + 4096)] {
        let file = File::options().write(true).open(folder.join(path));
        let file = file.expect("a file of every backup");
        file.write_all_at(&[0x5A; 8], offset).expect("a write");
    }
    let whole = goes_on_from_each_state(&open(&folder), &options());
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
    let whole = course(&cluster, &options(), &shelf, None);
    check_cluster_on(whole, &cluster, &options(), &Quiet);
    let states = shelf.0.into_inner();
    let state = |text: &String| serde_json::from_str::<RunState>(text).expect("a state");
    let refused = |state: RunState, options: &CheckOptions| {
        let resumed = ResumableRun::resumed(&cluster, options, None, state);
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
    let mut other = state(first);
    other.target.spec = "a backup of it".into();
    assert!(refused(other, &options()).contains("the files in a backup of it"));
    let mut other = state(first);
    other.target.kind = "base-backup".into();
    assert!(refused(other, &options()).contains("a target that is a base-backup"));
    let mut older = state(first);
    older.checkpoint = "0/28".into();
    assert!(refused(older, &options()).contains("begin again"));
}

/// Copies of a cluster have its number and its checkpoint, and another version looked for other
/// damage.
#[test]
fn what_changed_is_not_told_by_a_state_of_another_copy_or_another_version() {
    let cluster = hurt();
    let whole = last_state(&cluster);
    let refused = |alter: &dyn Fn(&mut RunState)| {
        let mut state = whole.clone();
        alter(&mut state);
        let since = Since::of(&state, &cluster, &options());
        let why = since.map(drop).expect_err("refused");
        assert!(why.contains("Run once without --since"), "{why}");
        why
    };
    let why = refused(&|state| state.target.spec = "a backup of it".into());
    assert!(why.contains("in a backup of it"), "{why}");
    let why = refused(&|state| state.target.kind = "base-backup".into());
    assert!(why.contains("is of the base-backup"), "{why}");
    let why = refused(&|state| state.schema = "pgclinic.state/9".into());
    assert!(why.contains("the form pgclinic.state/9"), "{why}");
    let why = refused(&|state| state.tool.version = "9.9.9".into());
    assert!(why.contains("written by pgclinic 9.9.9"), "{why}");
}
