//! The pass over the main forks: every measure at once, as a consumer of the scan.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::Progress;
use pgclinic_model::document::{Coverage, NotChecked};
use pgclinic_scan::{
    Companion, Consumer, Cursor, Fault, ForkTask, InternalFault, Ledger, LegOf, Passenger, Scan,
    UnitSize, Window, Writes, lease_of_windows,
};
use pgclinic_source::Source;
use pgclinic_spill::{Budget, Lease};

use super::columns::{PlacedRow, RowWalk};
use super::compression_trial::Picked;
use super::job::Job;
use super::page_rows::{PageRow, judge};
use super::places::Places;
use super::tally::Tally;
use super::{LeafLook, MeasureOptions, PageAt, Sums, losses};

/// What cannot be read is one entry of the report for each MiB.
const UNIT_BYTES: u64 = 1 << 20;

/// What the pass has gathered of a relation.
#[derive(Default)]
pub(super) struct Gathered {
    /// One, or for a sample one for each part of the jackknife.
    pub(super) parts: Vec<Tally>,
    /// Where its rows or leaves stand, if there was room for all of it.
    pub(super) places: Option<Places>,
    /// Values for a trial of their compression, by column.
    pub(super) picked: Vec<Picked>,
    /// The server has removed or truncated the file since it was listed.
    pub(super) is_moved: bool,
    /// Some of its bytes are there and could not be read.
    pub(super) is_unread: bool,
    /// The room that the places take, for as long as they are kept.
    room: Vec<Lease>,
}

impl Gathered {
    /// Of all its parts.
    pub(super) fn sum(&self, count: fn(&Tally) -> u64) -> u64 {
        self.parts.iter().map(count).sum()
    }
}

/// Who reads the pages.
pub(super) enum Reader<'a> {
    /// A pass for the measures alone.
    Own,
    /// Somebody whose pass they take part in.
    Other(&'a mut dyn FnMut(&dyn Companion)),
}

/// Reads every page of the jobs, and notes in each what was gathered of it.
pub(super) fn run(
    source: &dyn Source,
    jobs: &mut [Job<'_>],
    options: &MeasureOptions,
    (reader, progress): (Reader<'_>, &dyn Progress),
    coverage: &mut Coverage,
) {
    let is_running = jobs.iter().any(|job| job.fork.is_running());
    let pass = MeasurePass {
        room: options.memory.part(pgclinic_spill::Part::RowPlaces),
        has_room: jobs.iter().map(|_| AtomicBool::new(true)).collect(),
        merged: Mutex::default(),
        jobs,
    };
    let mut forks: Vec<ForkTask<'_>> = pass.jobs.iter().enumerate().map(task).collect();
    if let Reader::Other(read) = reader {
        let passenger = Passenger::new(&pass, forks);
        read(&passenger);
        let (ledger, left) = passenger.finish();
        add_ledger(coverage, &ledger);
        forks = left;
    }
    let scan = Scan {
        source,
        forks,
        threads: options.threads,
        progress,
        writes: if is_running {
            Writes::Server
        } else {
            Writes::Nobody
        },
    };
    let _windows = lease_of_windows(&options.memory, options.threads);
    progress.expect(scan.bytes());
    let report = scan.run(&pass);
    add_ledger(coverage, &report.ledger);
    drop(scan);
    let merged = pass.merged.into_inner();
    let mut merged = merged.unwrap_or_else(PoisonError::into_inner);
    for (number, job) in jobs.iter_mut().enumerate() {
        let (gathered, not_checked) = merged.remove(&number).unwrap_or_default();
        // A relation without pages has all its places.
        let is_empty = gathered.parts.is_empty();
        job.gathered = gathered;
        if is_empty && job.wants_places() {
            job.gathered.places = Some(Places::default());
        }
        job.gathered.is_unread |= !not_checked.is_empty();
        coverage.not_checked.extend(not_checked);
    }
    let internal = report.internal.iter().map(InternalFault::not_checked);
    coverage.not_checked.extend(internal);
}

/// Of what an interruption left out nothing is said: the document is marked as interrupted.
fn add_ledger(coverage: &mut Coverage, ledger: &Ledger) {
    coverage.pages += ledger.pages;
    coverage.bytes_seen += ledger.seen - ledger.skipped;
    coverage.bytes_checked += ledger.checked;
    coverage.bytes_unreadable += ledger.unreadable;
}

fn task<'a>((number, job): (usize, &'a Job<'_>)) -> ForkTask<'a> {
    let (files, build) = (job.fork.files, job.fork.build);
    match &job.groups {
        Some(groups) => ForkTask::groups(number, files, build, groups),
        None => ForkTask::whole(number, files, build),
    }
}

struct MeasurePass<'p, 'a> {
    jobs: &'p [Job<'a>],
    /// For the places of all jobs.
    room: Budget,
    /// Whether there was room for the places of a job so far.
    has_room: Vec<AtomicBool>,
    /// By job: what was gathered, and what could not be read.
    merged: Mutex<BTreeMap<usize, (Gathered, Vec<NotChecked>)>>,
}

/// What one worker adds up of a relation.
struct MeasureShare<'p> {
    parts: Vec<Part<'p>>,
    places: Option<(Places, Lease)>,
    is_moved: bool,
    /// Its job.
    number: usize,
    /// What could not be read, by unit.
    not_read: Vec<(u64, NotChecked)>,
}

/// Sums of one part of a relation.
struct Part<'p> {
    tally: Tally,
    walk: Option<RowWalk<'p>>,
}

impl<'p, 'a> Consumer for MeasurePass<'p, 'a> {
    type Worker = ();
    type Share = Option<MeasureShare<'p>>;

    fn unit(&self) -> UnitSize {
        UnitSize::Bytes(UNIT_BYTES)
    }

    fn begin_worker(&self) {}

    fn begin_fork(&self, fork: &ForkTask<'_>, (): &mut ()) -> Option<MeasureShare<'p>> {
        let job = self.jobs.get(fork.number)?;
        let parts = (0..job.parts()).map(|_| Part::new(job));
        Some(MeasureShare {
            parts: parts.collect(),
            places: job
                .wants_places()
                .then(|| (Places::default(), self.room.take(0))),
            is_moved: false,
            number: fork.number,
            not_read: Vec::new(),
        })
    }

    fn window(&self, window: &Window<'_>, cursor: &Cursor, leg: &mut LegOf<Self>) -> u64 {
        let job = self.jobs.get(window.fork.number);
        let (Some(job), Some(share)) = (job, leg.share.as_mut()) else {
            return 0;
        };
        let mut places = share.places.as_ref().map(|_| Places::default());
        if let Some(part) = share.parts.get_mut(job.part_of(window.first_block)) {
            let mut rows = Vec::new();
            for (block, bytes) in window.pages() {
                cursor.at(block);
                part.page(job, bytes, block, &mut rows, &mut places);
            }
        }
        if let Some(more) = places {
            self.keep_places(window.fork.number, share, more);
        }
        0
    }

    fn fault(&self, fault: &Fault<'_>, leg: &mut LegOf<Self>) {
        let Some(share) = leg.share.as_mut() else {
            return;
        };
        let Some(job) = self.jobs.get(share.number) else {
            return;
        };
        if job.fork.is_running() {
            // Its file was removed or truncated since it was listed: a newer view decides.
            share.is_moved = true;
            return;
        }
        let block = u64::from(job.fork.build.block_size);
        if let Some(part) = share.parts.get_mut(job.part_of(fault.first_block)) {
            part.tally.add_unread(fault.len.div_ceil(block));
        }
        let entry = NotChecked {
            what: fault.path.to_owned(),
            why: fault.kind.why(),
            inherent: false,
        };
        share.not_read.push((fault.unit, entry));
    }

    fn after_panic(&self, fault: &InternalFault, leg: &mut LegOf<Self>) -> bool {
        let part = leg.share.as_mut().and_then(|share| {
            let job = self.jobs.get(share.number)?;
            let block = fault.block?;
            share.parts.get_mut(job.part_of(block.into()))
        });
        if let Some(part) = part {
            part.tally.broken_pages += 1;
        }
        true
    }

    fn merge(&self, fork: &ForkTask<'_>, shares: Vec<Option<MeasureShare<'p>>>) {
        let mut gathered = Gathered::default();
        let mut not_read = Vec::new();
        let has_room = self.has_room.get(fork.number);
        if has_room.is_some_and(|has| has.load(Ordering::Relaxed)) {
            let wanted = self.jobs.get(fork.number).is_some_and(Job::wants_places);
            gathered.places = wanted.then(Places::default);
        }
        for share in shares.into_iter().flatten() {
            gathered.is_moved |= share.is_moved;
            not_read.extend(share.not_read);
            if let (Some(places), Some((more, lease))) = (&mut gathered.places, share.places) {
                places.absorb(more);
                gathered.room.push(lease);
            }
            let mut tallies = Vec::new();
            for part in share.parts {
                let (tally, picked) = part.finish();
                tallies.push(tally);
                absorb_picked(&mut gathered.picked, picked);
            }
            if gathered.parts.is_empty() {
                gathered.parts = tallies
            } else {
                gathered.parts.absorb(&tallies)
            }
        }
        if let Some(places) = &mut gathered.places {
            places.sort();
        }
        not_read.sort_by_key(|(unit, _)| *unit);
        let not_read = not_read.into_iter().map(|(_, entry)| entry).collect();
        let merged = self.merged.lock();
        merged
            .unwrap_or_else(PoisonError::into_inner)
            .insert(fork.number, (gathered, not_read));
    }
}

impl MeasurePass<'_, '_> {
    /// Where there is no room for all places of a relation, none are kept.
    fn keep_places(&self, number: usize, share: &mut MeasureShare<'_>, more: Places) {
        let Some(has_room) = self.has_room.get(number) else {
            return;
        };
        let bytes = u64::try_from(more.bytes()).unwrap_or(u64::MAX);
        let fits = has_room.load(Ordering::Relaxed)
            && share
                .places
                .as_mut()
                .is_some_and(|(_, lease)| lease.try_grow(bytes));
        match &mut share.places {
            Some((places, _)) if fits => places.absorb(more),
            _ => {
                has_room.store(false, Ordering::Relaxed);
                share.places = None;
            }
        }
    }
}

impl<'p> Part<'p> {
    fn new(job: &'p Job<'_>) -> Self {
        Part {
            tally: job.nothing(),
            walk: job.columns.walk(&job.fork, job.tries),
        }
    }

    fn page<'b>(
        &mut self,
        job: &Job<'_>,
        bytes: &'b [u8],
        block: BlockNo,
        rows: &mut Vec<PageRow<'b>>,
        places: &mut Option<Places>,
    ) {
        self.tally.pages += 1;
        let page = Page::parse(bytes);
        let Some(page) = page.filter(|page| page.is_new() || page.header_is_sane_to_the_server())
        else {
            self.tally.broken_pages += 1;
            return;
        };
        if page.is_new() {
            self.tally.empty_pages += 1;
            self.tally.emptied_pages += u64::from(losses::held_rows(&job.fork, block));
            return;
        }
        let fork = &job.fork;
        let is_heap = fork.method == Some(AccessMethod::Heap);
        let is_btree = fork.method == Some(AccessMethod::Btree) && block > 0;
        let heap = is_heap.then(|| judge(page, fork, rows));
        let leaf = is_btree.then(|| LeafLook::of(page)).flatten();
        let at = PageAt {
            page,
            fork,
            block,
            heap: heap.as_ref(),
            leaf: leaf.as_ref(),
        };
        if let Some(heap) = &heap {
            self.tally.pages_against_status += u64::from(heap.is_against_status);
            self.tally.rows_undecided += heap.unknown;
        }
        let whole = self.tally.of_pages.add(&at);
        self.tally.broken_pages += u64::from(!whole);
        if let Some(walk) = &mut self.walk {
            walk_rows(walk, block, rows);
        }
        match (places, leaf) {
            (Some(places), Some(look)) => places.add_leaf(block, &look),
            (Some(places), None) if is_heap => places.add_heap(page, block, rows),
            _ => {}
        }
    }

    fn finish(mut self) -> (Tally, Vec<Picked>) {
        let Some(walk) = self.walk else {
            return (self.tally, Vec::new());
        };
        let (sums, picked) = walk.finish();
        self.tally.of_columns = sums;
        (self.tally, picked)
    }
}

fn walk_rows(walk: &mut RowWalk<'_>, block: BlockNo, rows: &[PageRow<'_>]) {
    for row in rows.iter().filter(|row| row.is_live()) {
        let place = u64::from(block) << 16 | u64::from(row.number);
        if let Some(tuple) = row.tuple {
            walk.row(PlacedRow { tuple, place });
        }
    }
}

fn absorb_picked(own: &mut Vec<Picked>, more: Vec<Picked>) {
    own.resize(own.len().max(more.len()), Picked::default());
    for (own, more) in own.iter_mut().zip(more) {
        own.absorb(more);
    }
}
