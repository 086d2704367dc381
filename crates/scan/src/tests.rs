//! The engine over files in memory: every byte in one place of the ledger, the same result for
//! every number of threads, and what becomes of bytes that do not come and of pages on which a
//! consumer fails.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use pgclinic_cluster::{Build, DatabaseDirectory, ForkFiles, Segment};
use pgclinic_format::{BlockNo, Fork};
use pgclinic_model::Progress;
use pgclinic_source::{Entry, Result, Source, SourceError, SourceErrorKind, SourceSpec};

use crate::{
    Consumer, Cursor, Fault, FaultKind, ForkTask, InternalFault, LegOf, Passenger, Scan,
    ScanReport, Unit, UnitEnd, UnitSize, Window, WorkerPool, Writes,
};

const BLOCK: u64 = 8192;

/// Files of pages whose bytes are their number, with ranges that cannot be read.
struct Files {
    spec: SourceSpec,
    lens: BTreeMap<String, u64>,
    unreadable: Option<(u64, u64)>,
    unaligned: AtomicU64,
}

impl Files {
    fn new(lens: &[(&str, u64)]) -> Self {
        Files {
            spec: SourceSpec::Memory {
                name: "pages".into(),
            },
            lens: lens
                .iter()
                .map(|(path, len)| ((*path).to_owned(), *len))
                .collect(),
            unreadable: None,
            unaligned: AtomicU64::new(0),
        }
    }
}

impl Source for Files {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn list(&self, _: &str) -> Result<Vec<Entry>> {
        Ok(Vec::new())
    }

    fn len(&self, path: &str) -> Result<u64> {
        let missing = || SourceError::new(path, SourceErrorKind::NotFound, "no such file");
        self.lens.get(path).copied().ok_or_else(missing)
    }

    fn read_at(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize> {
        if !(buf.as_ptr() as usize).is_multiple_of(4096) {
            self.unaligned.fetch_add(1, Ordering::Relaxed);
        }
        let len = self.len(path)?;
        let end = len.min(offset + buf.len() as u64);
        if self
            .unreadable
            .is_some_and(|(from, to)| offset < to && end > from)
        {
            return Err(SourceError::new(path, SourceErrorKind::Io, "bad sector"));
        }
        let count = usize::try_from(end.saturating_sub(offset)).unwrap_or(0);
        for (at, byte) in buf.iter_mut().take(count).enumerate() {
            *byte = u8::try_from((offset + at as u64) / BLOCK % 251).unwrap_or(0);
        }
        Ok(count)
    }
}

/// Stops after so many bytes.
struct Until(u64, AtomicU64);

impl Progress for Until {
    fn expect(&self, _: u64) {}

    fn advance(&self, bytes: u64) {
        self.1.fetch_add(bytes, Ordering::Relaxed);
    }

    fn is_interrupted(&self) -> bool {
        self.1.load(Ordering::Relaxed) >= self.0
    }
}

const NEVER: u64 = u64::MAX;

/// Notes pages, faults and the ends of units; fails on the pages that it is told to.
#[derive(Default)]
struct Notes {
    unit: Option<UnitSize>,
    fails_on: Vec<BlockNo>,
    goes_on: bool,
    merged: Mutex<Vec<(usize, Vec<BlockNo>)>>,
    ends: Mutex<BTreeMap<u64, UnitEnd>>,
    faults: Mutex<Vec<(u64, u64, FaultKind)>>,
}

impl Consumer for Notes {
    type Worker = ();
    type Share = Vec<BlockNo>;

    fn unit(&self) -> UnitSize {
        self.unit.unwrap_or(UnitSize::Bytes(1 << 20))
    }

    fn begin_worker(&self) {}

    fn begin_fork(&self, _: &ForkTask<'_>, (): &mut ()) -> Vec<BlockNo> {
        Vec::new()
    }

    fn window(&self, window: &Window<'_>, cursor: &Cursor, leg: &mut LegOf<Self>) -> u64 {
        for (block, page) in window.pages() {
            cursor.at(block);
            assert!(!self.fails_on.contains(&block), "planted in block {block}");
            let expected = u8::try_from(block % 251).unwrap_or(0);
            assert!(page.iter().all(|byte| *byte == expected));
            leg.share.push(block);
        }
        0
    }

    fn fault(&self, fault: &Fault<'_>, _: &mut LegOf<Self>) {
        let mut faults = self.faults.lock().expect("no fault panics");
        faults.push((fault.offset, fault.len, fault.kind.clone()));
    }

    fn end_unit(&self, unit: &Unit<'_>, end: UnitEnd, _: &mut LegOf<Self>) {
        let mut ends = self.ends.lock().expect("no end panics");
        assert_eq!(ends.insert(unit.number, end), None, "a unit ends once");
    }

    fn after_panic(&self, _: &InternalFault, _: &mut LegOf<Self>) -> bool {
        self.goes_on
    }

    fn merge(&self, fork: &ForkTask<'_>, shares: Vec<Vec<BlockNo>>) {
        let mut blocks = shares.concat();
        blocks.sort_unstable();
        let mut merged = self.merged.lock().expect("no merge panics");
        merged.push((fork.number, blocks));
    }
}

fn build() -> Build {
    Build {
        block_size: 8192,
        segment_bytes: 1 << 30,
        toast_chunk: 1996,
    }
}

fn fork(filenode: u32, len: u64) -> ForkFiles {
    ForkFiles {
        home: DatabaseDirectory {
            tablespace: 1663,
            database: 5,
            folder: "base/5".into(),
        },
        filenode,
        fork: Fork::Main,
        temporary: None,
        segments: vec![Segment { number: 0, len }],
    }
}

fn run(source: &Files, forks: &[ForkFiles], threads: usize, notes: &Notes) -> ScanReport {
    run_until(source, forks, threads, notes, NEVER, Writes::Nobody)
}

fn run_until(
    source: &Files,
    forks: &[ForkFiles],
    threads: usize,
    notes: &Notes,
    end: u64,
    writes: Writes,
) -> ScanReport {
    let progress = Until(end, AtomicU64::new(0));
    let tasks = forks.iter().enumerate();
    let scan = Scan {
        source,
        forks: tasks
            .map(|(number, files)| ForkTask::whole(number, files, build()))
            .collect(),
        threads: NonZeroUsize::new(threads).expect("a thread"),
        progress: &progress,
        writes,
    };
    scan.run(notes)
}

fn blocks(notes: &Notes) -> Vec<(usize, Vec<BlockNo>)> {
    notes.merged.lock().expect("no merge panics").clone()
}

#[test]
fn every_page_comes_once_whatever_the_threads_and_units() {
    let lens = [(7, 300 * BLOCK), (8, 5 * BLOCK), (9, 0), (10, 129 * BLOCK)];
    let paths: Vec<(String, u64)> = lens
        .iter()
        .map(|(node, len)| (format!("base/5/{node}"), *len))
        .collect();
    let paths: Vec<(&str, u64)> = paths
        .iter()
        .map(|(path, len)| (path.as_str(), *len))
        .collect();
    let source = Files::new(&paths);
    let forks: Vec<ForkFiles> = lens.iter().map(|(node, len)| fork(*node, *len)).collect();
    for threads in [1, 2, 8] {
        for unit in [
            UnitSize::File,
            UnitSize::Bytes(256 << 10),
            UnitSize::Bytes(1 << 20),
        ] {
            let notes = Notes {
                unit: Some(unit),
                ..Notes::default()
            };
            let report = run(&source, &forks, threads, &notes);
            let all = |pages: u32| (0..pages).collect::<Vec<_>>();
            let expected = vec![(0, all(300)), (1, all(5)), (3, all(129))];
            assert_eq!(blocks(&notes), expected, "{threads} threads, {unit:?}");
            assert_eq!(report.ledger.checked, 434 * BLOCK);
            assert_eq!(report.ledger.seen, report.ledger.checked);
            assert_eq!(report.ledger.pages, 434);
        }
    }
    assert_eq!(source.unaligned.load(Ordering::Relaxed), 0);
}

#[test]
fn neighbouring_windows_that_fail_alike_are_one_fault() {
    let mut source = Files::new(&[("base/5/7", 256 * BLOCK)]);
    source.unreadable = Some((256 << 10, 1 << 20));
    let notes = Notes::default();
    let report = run(&source, &[fork(7, 256 * BLOCK)], 2, &notes);
    let faults = notes.faults.into_inner().expect("no fault panics");
    let places: Vec<(u64, u64)> = faults.iter().map(|(at, len, _)| (*at, *len)).collect();
    assert_eq!(places, [(256 << 10, 768 << 10)]);
    assert_eq!(report.ledger.unreadable, 768 << 10);
}

#[test]
fn half_a_page_of_a_file_that_shrank_is_lost_and_beside_a_server_booked_nowhere() {
    let source = Files::new(&[("base/5/7", 10 * BLOCK + 100)]);
    let files = [fork(7, 20 * BLOCK)];
    let notes = Notes::default();
    let report = run(&source, &files, 1, &notes);
    assert_eq!(
        (report.ledger.checked, report.ledger.unreadable),
        (10 * BLOCK, 10 * BLOCK)
    );
    let notes = Notes::default();
    let report = run_until(&source, &files, 1, &notes, NEVER, Writes::Server);
    assert_eq!(
        (report.ledger.seen, report.ledger.unreadable),
        (10 * BLOCK, 0)
    );
    let faults = notes.faults.into_inner().expect("no fault panics");
    assert!(matches!(faults.as_slice(), [(_, _, FaultKind::Shrunk)]));
}

#[test]
fn an_interrupted_scan_books_the_rest_as_skipped() {
    let source = Files::new(&[("base/5/7", 640 * BLOCK)]);
    for threads in [1, 2] {
        let notes = Notes::default();
        let files = [fork(7, 640 * BLOCK)];
        let report = run_until(&source, &files, threads, &notes, 1 << 20, Writes::Nobody);
        assert!(report.interrupted && report.ledger.skipped > 0);
        assert_eq!(report.ledger.seen, 640 * BLOCK);
    }
}

#[test]
fn a_page_on_which_the_consumer_fails_ends_neither_the_fork_nor_the_run() {
    let source = Files::new(&[("base/5/7", 200 * BLOCK), ("base/5/8", 3 * BLOCK)]);
    let files = [fork(7, 200 * BLOCK), fork(8, 3 * BLOCK)];
    let notes = Notes {
        fails_on: vec![5, 150],
        goes_on: true,
        ..Notes::default()
    };
    let report = run(&source, &files, 2, &notes);
    let places: Vec<_> = report.internal.iter().map(|own| own.block).collect();
    assert_eq!(places, [Some(5), Some(150)]);
    assert_eq!(report.ledger.skipped, 2 * BLOCK);
    assert_eq!(report.ledger.pages, 201);
    let pages: usize = blocks(&notes).iter().map(|(_, own)| own.len()).sum();
    assert_eq!(pages, 201);
    let entry = report.internal.first().map(InternalFault::not_checked);
    let entry = entry.expect("a failure is reported");
    assert_eq!(entry.what, "internal: block 5 of base/5/7");
    assert!(entry.why.contains("planted in block 5") && !entry.inherent);
}

#[test]
fn a_fork_that_is_given_up_is_skipped_and_the_next_one_examined() {
    let source = Files::new(&[("base/5/7", 600 * BLOCK), ("base/5/8", 3 * BLOCK)]);
    let files = [fork(7, 600 * BLOCK), fork(8, 3 * BLOCK)];
    let notes = Notes {
        fails_on: vec![5],
        ..Notes::default()
    };
    let report = run(&source, &files, 1, &notes);
    assert_eq!(report.ledger.seen, 603 * BLOCK);
    assert_eq!(report.ledger.checked, 3 * BLOCK);
    let notes = Notes {
        fails_on: vec![500],
        ..Notes::default()
    };
    let report = run(&source, &files, 1, &notes);
    assert!(report.ledger.skipped > 0 && report.ledger.checked >= 3 * BLOCK);
    let ends = notes.ends.into_inner().expect("no end panics");
    assert!(ends.values().any(|end| *end == UnitEnd::Internal));
}

#[test]
fn work_on_items_comes_in_their_order_and_a_failure_is_one_items_own() {
    let pool = WorkerPool::new(NonZeroUsize::new(3).expect("three"));
    let results = pool.each(&[1, 2, 3, 4], |number, item| {
        assert!(*item != 3, "three is planted");
        number * 10 + item
    });
    let words: Vec<String> = results
        .into_iter()
        .map(|result| result.map_or_else(|fault| fault.message, |value| value.to_string()))
        .collect();
    assert_eq!(words, ["1", "12", "three is planted", "34"]);
}

#[test]
fn shares_meet_in_the_order_of_forks_while_the_scan_goes_on() {
    let paths: Vec<String> = (0..500).map(|node| format!("base/5/{node}")).collect();
    let lens: Vec<(&str, u64)> = paths.iter().map(|path| (path.as_str(), BLOCK)).collect();
    let source = Files::new(&lens);
    let forks: Vec<ForkFiles> = (0..500).map(|node| fork(node, BLOCK)).collect();
    for threads in [1, 4] {
        let notes = Notes::default();
        run(&source, &forks, threads, &notes);
        let merged: Vec<usize> = blocks(&notes).into_iter().map(|(fork, _)| fork).collect();
        assert_eq!(merged, (0..500).collect::<Vec<_>>());
    }
}

/// Of a fork it failed on, or of which bytes did not come, a passenger has nothing: it is given
/// back.
#[test]
fn a_passenger_has_whole_forks_only() {
    let mut source = Files::new(&[
        ("base/5/7", 300 * BLOCK),
        ("base/5/8", 40 * BLOCK),
        ("base/5/9", 20 * BLOCK),
    ]);
    source.unreadable = Some((100 * BLOCK, 101 * BLOCK));
    let forks = [
        fork(7, 300 * BLOCK),
        fork(8, 40 * BLOCK),
        fork(9, 20 * BLOCK),
    ];
    let tasks = || {
        let tasks = forks.iter().enumerate();
        tasks.map(|(number, files)| ForkTask::whole(number, files, build()))
    };
    for threads in [1, 3] {
        let scan = Scan {
            source: &source,
            forks: tasks().collect(),
            threads: NonZeroUsize::new(threads).expect("a thread"),
            progress: &Until(NEVER, AtomicU64::new(0)),
            writes: Writes::Nobody,
        };
        let own = Notes::default();
        let guest = Notes {
            fails_on: vec![30],
            ..Notes::default()
        };
        let passenger = Passenger::new(&guest, tasks().collect());
        let report = scan.run_with(&own, Some(&passenger));
        let (ledger, left) = passenger.finish();
        assert_eq!(
            report.internal,
            [],
            "what the guest does is nothing to the host"
        );
        assert_eq!(blocks(&own).len(), 3);
        let expected: Vec<BlockNo> = (0..20).collect();
        assert_eq!(blocks(&guest), [(2, expected)]);
        assert_eq!((ledger.pages, ledger.checked), (20, 20 * BLOCK));
        let left: Vec<usize> = left.iter().map(|fork| fork.number).collect();
        assert_eq!(left, [0, 1]);
    }
}
