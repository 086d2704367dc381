//! Data checksums enabled and taken back, stopped anywhere in between.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pgclinic_check::CheckOptions;
use pgclinic_cluster::Cluster;
use pgclinic_model::{Level, Progress, Selection};
use pgclinic_servers::Checksums;
use pgclinic_source::DataDirectory;
use pgclinic_spill::MemoryPlan;
use pgclinic_surgery::checksums::{
    ChecksumsEnd, ChecksumsJournalDirectory, ChecksumsRun, ChecksumsState, ClosedCluster,
    Durability, Ending,
};
use pgclinic_testkit::{TempCopy, copy_of, seed, server};

/// Stops a run once it was told of so many bytes.
struct StopAfter {
    bytes: u64,
    done: AtomicU64,
}

impl StopAfter {
    fn new(bytes: u64) -> Self {
        StopAfter {
            bytes,
            done: AtomicU64::new(0),
        }
    }
}

impl Progress for StopAfter {
    fn expect(&self, _: u64) {}

    fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    fn is_interrupted(&self) -> bool {
        self.done.load(Ordering::Relaxed) >= self.bytes
    }
}

fn never() -> StopAfter {
    StopAfter::new(u64::MAX)
}

fn copy() -> TempCopy {
    copy_of(&seed(&server(15), Checksums::Off))
}

fn cluster(pgdata: &Path) -> Cluster {
    let source = DataDirectory::open(pgdata).expect("a directory");
    Cluster::open(Arc::new(source)).expect("a cluster")
}

fn check_options() -> CheckOptions {
    CheckOptions {
        level: Level::Pages,
        threads: NonZeroUsize::MIN,
        evidence: 0,
        selection: Selection::default(),
        spec: "test".into(),
        memory: MemoryPlan::new(256 << 20),
        spill_folder: std::env::temp_dir(),
        since: None,
    }
}

fn with_run<T>(progress: &dyn Progress, work: impl FnOnce(&ChecksumsRun<'_>) -> T) -> T {
    let check = check_options();
    work(&ChecksumsRun {
        threads: NonZeroUsize::new(2).expect("not zero"),
        durability: Durability::Synced,
        check: &check,
        progress,
    })
}

fn enable(
    pgdata: &Path,
    directory: &ChecksumsJournalDirectory,
    progress: &dyn Progress,
) -> ChecksumsEnd {
    let closed = ClosedCluster::new(pgdata).expect("a closed cluster");
    let prepared = with_run(&never(), |run| {
        closed.prepare(&cluster(pgdata), directory, run)
    });
    let prepared = prepared.expect("a record");
    assert!(prepared.survey.pages_to_write > 0, "pages need checksums");
    with_run(progress, |run| {
        closed.enable(prepared, Vec::new(), directory, run, None)
    })
    .expect("an end")
}

/// Every file with its bytes; the tablespaces' too.
fn files(copy: &TempCopy) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![copy.pgdata.clone()];
    left.extend(copy.tablespaces.clone());
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let kind = path.symlink_metadata().expect("metadata").file_type();
            if kind.is_dir() {
                left.push(path);
            } else if kind.is_file() {
                let bytes = fs::read(&path).expect("a file");
                found.insert(path, bytes);
            }
        }
    }
    found
}

/// What the server's own program says; nothing where the installation came without it.
fn pg_checksums(copy: &TempCopy) -> Option<String> {
    let program = server(15).bindir.join("pg_checksums");
    let command = || {
        Command::new(&program)
            .args(["--check", "-D"])
            .arg(&copy.pgdata)
            .output()
    };
    let ran = program.is_file().then(command)?.expect("a program");
    Some(String::from_utf8_lossy(&ran.stdout).into_owned())
}

fn state(pgdata: &Path) -> ChecksumsState {
    let closed = ClosedCluster::new(pgdata).expect("a closed cluster");
    closed.checksums().expect("a control file")
}

#[test]
fn what_is_enabled_verifies_and_is_taken_back_to_the_first_bytes() {
    let copy = copy();
    let before = files(&copy);
    let journals = tempfile::tempdir().expect("a directory");
    let directory = ChecksumsJournalDirectory::new(&journals.path().join("journal"));
    let end = enable(&copy.pgdata, &directory, &never());
    assert_eq!(end.ending, Ending::Whole);
    assert_eq!(state(&copy.pgdata), ChecksumsState::On);
    if let Some(told) = pg_checksums(&copy) {
        assert!(told.contains("Bad checksums:  0"), "{told}");
    }
    let mut server = copy
        .start()
        .expect("a server that accepts every page it reads");
    server
        .stop(pgclinic_servers::StopMode::Fast)
        .expect("a stop");
    drop(server);
    let closed = ClosedCluster::new(&copy.pgdata).expect("a closed cluster");
    let refused = with_run(&never(), |run| closed.undo(&directory, run));
    let refused = refused.expect_err("a server was started").to_string();
    assert!(refused.contains("a server was started"), "{refused}");
    drop(closed);

    let copy = self::copy();
    let other = ChecksumsJournalDirectory::new(&journals.path().join("other"));
    let before_other = files(&copy);
    assert_eq!(before.len(), before_other.len());
    enable(&copy.pgdata, &other, &never());
    let closed = ClosedCluster::new(&copy.pgdata).expect("a closed cluster");
    with_run(&never(), |run| closed.undo(&other, run)).expect("an undo");
    assert_eq!(files(&copy), before_other);
}

#[test]
fn a_run_that_is_stopped_anywhere_leaves_checksums_off_and_goes_on_or_back() {
    let copy = copy();
    let before = files(&copy);
    let journals = tempfile::tempdir().expect("a directory");
    for (number, bytes) in [0, 1, 400_000, 4_000_000, 9_000_000]
        .into_iter()
        .enumerate()
    {
        let path = journals.path().join(number.to_string());
        let directory = ChecksumsJournalDirectory::new(&path);
        let end = enable(&copy.pgdata, &directory, &StopAfter::new(bytes));
        assert_eq!(end.ending, Ending::Interrupted, "after {bytes} bytes");
        assert_eq!(state(&copy.pgdata), ChecksumsState::Off);
        let closed = ClosedCluster::new(&copy.pgdata).expect("a closed cluster");
        if number % 2 == 0 {
            let end = with_run(&never(), |run| closed.resume(&directory, run));
            assert_eq!(end.expect("an end").ending, Ending::Whole);
            drop(closed);
            assert_eq!(state(&copy.pgdata), ChecksumsState::On);
        }
        let closed = ClosedCluster::new(&copy.pgdata).expect("a closed cluster");
        with_run(&never(), |run| closed.undo(&directory, run)).expect("an undo");
        assert_eq!(files(&copy), before, "after {bytes} bytes");
    }
}

#[test]
fn a_journal_that_is_damaged_or_of_changed_pages_is_refused_before_a_byte_is_written() {
    let copy = copy();
    let journals = tempfile::tempdir().expect("a directory");
    let path = journals.path().join("journal");
    let directory = ChecksumsJournalDirectory::new(&path);
    enable(&copy.pgdata, &directory, &never());
    let after = files(&copy);
    let undo = || {
        let closed = ClosedCluster::new(&copy.pgdata).expect("a closed cluster");
        with_run(&never(), |run| closed.undo(&directory, run))
    };
    let record = path.join("checksums.bin");
    let whole = fs::read(&record).expect("a record");
    fs::write(&record, whole.get(..whole.len() / 2).expect("a half")).expect("a write");
    let refused = undo().expect_err("half a record").to_string();
    assert!(refused.contains("missing bytes or damaged"), "{refused}");
    fs::write(&record, &whole).expect("a write");

    let page = after
        .keys()
        .find(|path| path.ends_with("1259"))
        .expect("pg_class")
        .clone();
    let mut bytes = after.get(&page).expect("its bytes").clone();
    bytes.get_mut(8).map(|byte| *byte ^= 0xFF).expect("a byte");
    fs::write(&page, &bytes).expect("a write");
    let refused = undo().expect_err("another checksum").to_string();
    assert!(
        refused.contains("block 0 carries the checksum"),
        "{refused}"
    );
    let mut expected = after;
    expected.insert(page, bytes);
    assert_eq!(files(&copy), expected, "nothing was written");
}

#[test]
fn two_runs_do_not_work_on_one_cluster() {
    let copy = copy();
    let first = ClosedCluster::new(&copy.pgdata).expect("a closed cluster");
    let second = ClosedCluster::new(&copy.pgdata).expect_err("the first has it");
    assert!(second.to_string().contains("another pgclinic"), "{second}");
    drop(first);
    ClosedCluster::new(&copy.pgdata).expect("nobody has it");
}
