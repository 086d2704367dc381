//! The pass over the pages: every check that needs one page, as a consumer of the scan.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use pgclinic_format::backup_manifest::BackupManifest;
use pgclinic_format::digest::Digest;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Fork, Oid, Page};
use pgclinic_model::Progress;
use pgclinic_model::document::{CheckDocument, NotChecked, Target};
use pgclinic_scan::{
    Companion, Consumer, Cursor, Fault, FaultKind, ForkTask, InternalFault, LegOf, Scan, Unit,
    UnitEnd, UnitSize, WINDOW_BYTES, Window, Writes, lease_of_windows,
};
use pgclinic_source::Source;
use pgclinic_spill::{Budget, Part};

use crate::btree::LeafSummaries;
use crate::check::ForkCx;
use crate::entries::named_blocks::{NamedBlocks, is_witness};
use crate::findings::Findings;
use crate::page::emptied_page;
use crate::run_state::Spot;
use crate::walker::page_checker::{PageChecker, PageOutcome, ThreadFindings};
use crate::walker::pass_records::{PassRecords, VacantBlocks};
use crate::walker::run_ledger::{Accuser, DamagedBlocks, Pages, RunLedger};
use crate::walker::suspects::Suspects;
use crate::walker::{CheckOptions, document};

/// Damaged pages of a worker whose cause is searched for: the search costs milliseconds a page.
const CAUSES_MAX: u32 = 500;

/// Bytes that a pass over these forks will read.
pub(crate) fn bytes(jobs: &[ForkCx<'_>], books: &RunLedger) -> u64 {
    let tasks = jobs.iter().enumerate().map(|job| task(job, books));
    tasks.map(|task| task.bytes()).sum()
}

/// What is left to read of a fork.
fn task<'a>((number, job): (usize, &'a ForkCx<'_>), books: &RunLedger) -> ForkTask<'a> {
    let done = |path: &str| books.looked_at.get(path).copied().unwrap_or(0);
    ForkTask::after(number, job.files, job.build, &done)
}

/// Where a pass reads, and who hears of it.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) source: &'a dyn Source,
    pub(crate) progress: &'a dyn Progress,
    /// Who is handed the pages as well.
    pub(crate) companion: Option<&'a dyn Companion>,
}

impl<'a> Reading<'a> {
    /// For the checks alone.
    pub(crate) fn alone(source: &'a dyn Source, progress: &'a dyn Progress) -> Self {
        Reading {
            source,
            progress,
            companion: None,
        }
    }
}

/// Examines every page of every job, and gives what the comparisons of relations ask for.
pub(crate) fn run(
    jobs: &[ForkCx<'_>],
    reading: Reading<'_>,
    system_identifier: u64,
    options: &CheckOptions,
    budget: &Budget,
    books: &mut RunLedger,
) -> PassRecords {
    let is_running = jobs.iter().any(|fork| fork.is_running());
    let scan = Scan {
        source: reading.source,
        forks: jobs
            .iter()
            .enumerate()
            .map(|job| task(job, books))
            .collect(),
        threads: options.threads,
        progress: reading.progress,
        writes: if is_running {
            Writes::Server
        } else {
            Writes::Nobody
        },
    };
    let named = named_blocks(jobs, options, budget);
    let pass = CheckPass {
        jobs,
        system_identifier,
        options,
        budget,
        manifest: manifest(jobs, options),
        named: &named,
        merged: Mutex::new((&mut *books, PassRecords::default())),
    };
    let _windows = lease_of_windows(&options.memory, options.threads);
    let report = scan.run_with(&pass, reading.companion);
    let merged = pass.merged.into_inner();
    let (_, mut records) = merged.unwrap_or_else(PoisonError::into_inner);
    let coverage = &mut books.coverage;
    coverage.bytes_seen += report.ledger.seen;
    coverage.bytes_checked += report.ledger.checked;
    coverage.bytes_skipped += report.ledger.skipped;
    coverage.bytes_unreadable += report.ledger.unreadable;
    coverage.pages += report.ledger.pages;
    for fault in &report.internal {
        books.stays_open(Some(fault.path.clone()), fault.not_checked());
    }
    records.named = named;
    records.damaged = books.damaged.clone();
    records
}

/// A set for each index whose entries prove what its table held.
fn named_blocks(
    jobs: &[ForkCx<'_>],
    options: &CheckOptions,
    budget: &Budget,
) -> BTreeMap<usize, NamedBlocks> {
    if options.since.is_some() || options.selection.blocks.is_some() {
        return BTreeMap::new();
    }
    let main = jobs.iter().filter(|job| job.fork() == Fork::Main);
    let blocks: HashMap<Oid, u64> = main
        .filter_map(|job| Some((job.relation?.oid, job.blocks)))
        .collect();
    let indexes = jobs.iter().enumerate().filter(|(_, job)| is_witness(job));
    let named = indexes.filter_map(|(number, job)| {
        let table = job.relation?.index.as_ref()?.table;
        Some((number, NamedBlocks::new(*blocks.get(&table)?, budget)))
    });
    named.collect()
}

/// What files are summed by: the manifest of a base backup that is looked at as a whole.
fn manifest<'a>(jobs: &[ForkCx<'a>], options: &CheckOptions) -> Option<&'a BackupManifest> {
    let cluster = jobs.first()?.cluster?;
    let whole = options.selection.is_everything();
    let manifest = cluster.manifest().filter(|_| whole)?;
    let summed = manifest.files.values().any(|file| file.sum.is_some());
    summed.then_some(manifest)
}

/// The checks of pages as a consumer of the scan.
struct CheckPass<'p> {
    jobs: &'p [ForkCx<'p>],
    system_identifier: u64,
    options: &'p CheckOptions,
    budget: &'p Budget,
    manifest: Option<&'p BackupManifest>,
    named: &'p BTreeMap<usize, NamedBlocks>,
    merged: Mutex<(&'p mut RunLedger, PassRecords)>,
}

/// What one worker has seen of one fork.
struct CheckShare<'p> {
    number: usize,
    job: &'p ForkCx<'p>,
    looker: PageChecker<'p>,
    notes: ThreadFindings,
    evidence: Pages,
    damaged: DamagedBlocks,
    /// Those of them that are damaged only if the commit log is right.
    contradicted: BTreeMap<Accuser, DamagedBlocks>,
    /// Of the file at hand, where a manifest has its checksum.
    sum: Option<Digest>,
    /// Checksums of whole files.
    sums: Vec<(String, Vec<u8>)>,
    suspects: Suspects,
    /// Pages of a table that are all zero.
    zeroed: VacantBlocks,
    /// Those that are no zeros and have no line pointer in use.
    emptied: VacantBlocks,
    zeroed_pages: u64,
    pages_unchanged: u64,
    /// Pages that were examined again, though they have not changed.
    unchanged: Vec<(String, BlockNo)>,
    /// What could not be read, by unit.
    not_read: Vec<(u64, NotChecked)>,
}

/// Damaged pages of a worker whose cause may still be searched for.
struct CausesLeft(u32);

impl<'p> Consumer for CheckPass<'p> {
    type Worker = CausesLeft;
    type Share = Option<CheckShare<'p>>;

    /// A file that is summed is read by one worker from its begin to its end.
    fn unit(&self) -> UnitSize {
        match self.manifest {
            Some(_) => UnitSize::File,
            None => UnitSize::Bytes(WINDOW_BYTES),
        }
    }

    fn begin_worker(&self) -> CausesLeft {
        CausesLeft(CAUSES_MAX)
    }

    fn begin_fork(&self, fork: &ForkTask<'_>, causes: &mut CausesLeft) -> Self::Share {
        let job = self.jobs.get(fork.number)?;
        let looker = PageChecker::new(job, self.system_identifier).holding_back();
        let looker = looker.noting(self.named.get(&fork.number));
        let notes = ThreadFindings {
            findings: Findings::default(),
            causes_left: causes.0,
            faces: looker
                .wants_faces()
                .then(|| LeafSummaries::new(self.budget)),
        };
        Some(CheckShare {
            number: fork.number,
            job,
            looker,
            notes,
            evidence: Pages::new(),
            damaged: DamagedBlocks::default(),
            contradicted: BTreeMap::new(),
            sum: None,
            sums: Vec::new(),
            suspects: Suspects::default(),
            zeroed: VacantBlocks::default(),
            emptied: VacantBlocks::default(),
            zeroed_pages: 0,
            pages_unchanged: 0,
            unchanged: Vec::new(),
            not_read: Vec::new(),
        })
    }

    fn begin_unit(&self, unit: &Unit<'_>, leg: &mut LegOf<Self>) -> bool {
        if let Some(share) = &mut leg.share {
            share.sum = self.digest_of(unit, share.job);
        }
        true
    }

    fn window(&self, window: &Window<'_>, cursor: &Cursor, leg: &mut LegOf<Self>) -> u64 {
        let Some(share) = &mut leg.share else {
            return 0;
        };
        if let Some(sum) = &mut share.sum {
            sum.update(window.bytes());
        }
        self.pages(window, cursor, share)
    }

    fn fault(&self, fault: &Fault<'_>, leg: &mut LegOf<Self>) {
        let Some(share) = &mut leg.share else {
            return;
        };
        share.sum = None;
        let why = match &fault.kind {
            // Dropped, rewritten or truncated: what stands in its place has a file of its own.
            FaultKind::Shrunk if share.looker.is_running() => return,
            FaultKind::Shrunk => {
                format!("{}: {} bytes are gone", fault.kind.why(), fault.len)
            }
            FaultKind::Unreadable(error) => error.to_string(),
        };
        let entry = NotChecked {
            what: fault.path.to_owned(),
            why,
            inherent: false,
        };
        share.not_read.push((fault.unit, entry));
    }

    fn end_unit(&self, unit: &Unit<'_>, end: UnitEnd, leg: &mut LegOf<Self>) {
        let Some(share) = &mut leg.share else {
            return;
        };
        leg.worker.0 = share.notes.causes_left;
        let sum = share.sum.take().filter(|_| end == UnitEnd::Whole);
        if let Some(sum) = sum {
            share.sums.push((unit.file.path.clone(), sum.finish()));
        }
    }

    /// What was drafted of the page is half a story; its bytes are no part of a checksum that
    /// proves anything.
    fn after_panic(&self, _: &InternalFault, leg: &mut LegOf<Self>) -> bool {
        if let Some(share) = &mut leg.share {
            share.notes.findings.take_drafts();
            share.sum = None;
        }
        true
    }

    fn merge(&self, task: &ForkTask<'_>, shares: Vec<Self::Share>) {
        let merged = self.merged.lock();
        let mut merged = merged.unwrap_or_else(PoisonError::into_inner);
        let (books, records) = &mut *merged;
        let mut not_read = Vec::new();
        for mut share in shares.into_iter().flatten() {
            not_read.append(&mut share.not_read);
            share.settle(self.options, books, records);
        }
        not_read.sort_by_key(|(unit, _)| *unit);
        if !not_read.is_empty() {
            books.unreadable.insert(task.files.path(0));
        }
        for (_, entry) in not_read {
            books.unread.insert(entry.what.clone());
            books.not_checked(entry);
        }
    }
}

impl CheckPass<'_> {
    /// A checksum that the manifest has of the file, if it has one and the length is its own.
    fn digest_of(&self, unit: &Unit<'_>, job: &ForkCx<'_>) -> Option<Digest> {
        // What passed by is shown as zeros.
        if job.cluster?.streamed_checksums().is_some() {
            return None;
        }
        let file = self.manifest?.files.get(&unit.file.path)?;
        let (algorithm, _) = file.sum.as_ref()?;
        let is_whole = unit.offset == 0 && file.size == unit.len;
        is_whole.then(|| Digest::new(*algorithm))
    }

    /// The page has not changed since another run.
    fn is_unchanged(&self, page: &[u8], job: &ForkCx<'_>) -> bool {
        let since = self.options.since.as_ref().zip(Page::parse(page));
        since.is_some_and(|(since, page)| since.is_unchanged(page, job))
    }

    /// Pages of the fork in which that run found something.
    fn known(&self, job: &ForkCx<'_>) -> Option<&DamagedBlocks> {
        self.options.since.as_ref()?.known().pages_of(job)
    }

    /// That run did not examine all of the file.
    fn is_half_read(&self, path: &str, job: &ForkCx<'_>) -> bool {
        let since = self.options.since.as_ref();
        since.is_some_and(|since| since.has_half_read(path, job))
    }

    /// Examines the pages of a window; gives the bytes of those that were not asked for.
    fn pages(&self, window: &Window<'_>, cursor: &Cursor, share: &mut CheckShare<'_>) -> u64 {
        let job = share.job;
        let path = window.file.path.as_str();
        let (known, half_read) = (self.known(job), self.is_half_read(path, job));
        let pages = window.pages();
        let hashes = share.looker.hashes(pages.clone().map(|(_, page)| page));
        let mut hashes = hashes.into_iter();
        let mut passed_over = 0;
        for (block, page) in pages {
            cursor.at(block);
            let hash = hashes.next();
            if !self.options.selection.takes_block(block.into()) {
                passed_over += page.len() as u64;
                continue;
            }
            if self.is_unchanged(page, job) {
                if known.is_some_and(|known| known.has(block.into())) {
                    share.unchanged.push((path.to_owned(), block));
                } else if !half_read {
                    passed_over += page.len() as u64;
                    share.pages_unchanged += 1;
                    continue;
                }
            }
            let seen = share.looker.look((page, hash), block, &mut share.notes);
            share.note(seen, (path, block, page), self.options.evidence);
        }
        passed_over
    }
}

impl CheckShare<'_> {
    fn note(
        &mut self,
        seen: PageOutcome,
        (path, block, page): (&str, BlockNo, &[u8]),
        evidence: usize,
    ) {
        if is_zeroed(seen, page) && self.is_table() {
            self.zeroed.add(block.into());
        } else if self.is_table() && self.is_emptied(seen, page) {
            self.emptied.add(block.into());
        }
        match seen {
            PageOutcome::Quiet | PageOutcome::Noted => {}
            PageOutcome::Zeroed => self.zeroed_pages += 1,
            PageOutcome::Suspect => self.suspects.add(spot(self.job, block)),
            PageOutcome::Young(lsn) => self.suspects.add_young(spot(self.job, block), lsn),
            PageOutcome::Damaged | PageOutcome::Contradicted(_) => {
                RunLedger::keep_evidence(&mut self.evidence, evidence, path, block, page);
                self.damaged.add(block.into());
                if let PageOutcome::Contradicted(accuser) = seen {
                    let own = self.contradicted.entry(accuser).or_default();
                    own.add(block.into());
                }
            }
        }
    }

    /// The indexes of a table may know better of its pages of zeros.
    fn is_table(&self) -> bool {
        self.job.fork() == Fork::Main && self.job.method == Some(AccessMethod::Heap)
    }

    /// A sound page that an entry of an index would prove to have lost rows.
    fn is_emptied(&self, seen: PageOutcome, page: &[u8]) -> bool {
        let is_sound = matches!(seen, PageOutcome::Quiet | PageOutcome::Noted);
        let page = Page::parse(page).filter(|_| is_sound);
        page.is_some_and(|page| emptied_page::is_emptied(page, self.job.blocks))
    }

    /// Adds up what the worker has seen.
    fn settle(self, options: &CheckOptions, books: &mut RunLedger, records: &mut PassRecords) {
        let number = self.number;
        books.coverage.zeroed_pages += self.zeroed_pages;
        books.coverage.pages_unchanged += self.pages_unchanged;
        let mut findings = self.notes.findings;
        std::mem::take(&mut findings.not_checked)
            .into_iter()
            .for_each(|entry| books.not_checked(entry));
        books.findings.absorb(findings);
        for ((path, block), page) in self.evidence {
            RunLedger::keep_evidence(&mut books.evidence, options.evidence, &path, block, &page);
        }
        if !self.damaged.is_empty() {
            let own = books.damaged.entry(number).or_default();
            own.absorb(&self.damaged);
        }
        for (accuser, blocks) in &self.contradicted {
            let own = books.contradicted.entry((number, *accuser)).or_default();
            own.absorb(blocks);
        }
        books.sums.extend(self.sums);
        books.suspects.absorb(self.suspects);
        books.unchanged.extend(self.unchanged);
        if let Some(faces) = self.notes.faces {
            records.faces.entry(number).or_default().add(faces);
        }
        if !self.zeroed.is_empty() {
            let own = records.zeroed.entry(number).or_default();
            own.absorb(&self.zeroed);
        }
        if !self.emptied.is_empty() {
            let own = records.emptied.entry(number).or_default();
            own.absorb(&self.emptied);
        }
    }
}

/// All zeros, whether or not something else says that it was another page.
fn is_zeroed(seen: PageOutcome, page: &[u8]) -> bool {
    let is_zero = || Page::parse(page).is_some_and(Page::is_zeroed);
    seen == PageOutcome::Zeroed || (seen == PageOutcome::Damaged && is_zero())
}

fn spot(job: &ForkCx<'_>, block: BlockNo) -> Spot {
    Spot {
        file: job.file_number(),
        fork: job.fork(),
        block,
    }
}

/// Checks bare forks: relation files without their cluster.
pub fn check_file(
    forks: &[ForkCx<'_>],
    source: &dyn Source,
    target: Target,
    options: &CheckOptions,
    progress: &dyn Progress,
) -> CheckDocument {
    let mut books = RunLedger::new();
    if options.level > pgclinic_model::document::Level::Pages {
        let why = "a bare file tells neither its columns nor whether data checksums are on";
        books.not_checked(NotChecked {
            what: "rows and checksums".into(),
            why: why.into(),
            inherent: false,
        });
    }
    let budget = options.memory.part(Part::LeafSummaries);
    progress.expect(bytes(forks, &books));
    let reading = Reading::alone(source, progress);
    run(forks, reading, 0, options, &budget, &mut books);
    books.passed(forks.iter());
    books.settle_damage(forks);
    books.interrupted = progress.is_interrupted();
    document::assemble(target, false, options, books)
}
