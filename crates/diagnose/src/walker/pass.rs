//! The pass over the pages: threads take chunks in order until none is left.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use pgclinic_cluster::Segment;
use pgclinic_format::backup_manifest::BackupManifest;
use pgclinic_format::digest::Digest;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Fork, Oid, Page};
use pgclinic_model::Progress;
use pgclinic_model::document::{CheckDocument, Coverage, NotChecked, Target};
use pgclinic_source::{Source, SourceErrorKind};
use pgclinic_spill::Budget;

use crate::btree::Faces;
use crate::check::ForkCx;
use crate::findings::Findings;
use crate::named_blocks::{NamedBlocks, is_witness};
use crate::pass_records::{PassRecords, ZeroedBlocks};
use crate::walker::books::{Books, DamagedBlocks, Pages};
use crate::walker::look::{Looker, Notes, Seen};
use crate::walker::suspects::{Spot, Suspects};
use crate::walker::{CheckOptions, document};

/// Bytes of one read: few enough that they are still in the core's own cache when they are looked at.
const CHUNK_BYTES: u64 = 256 << 10;
/// Bytes of a page of memory.
const MEMORY_PAGE: usize = 4096;
/// Chunks asked for ahead, so many at a time.
const AHEAD: usize = 32;
/// Damaged pages of a thread whose cause is searched for: the search costs milliseconds a page.
const CAUSES_MAX: u32 = 500;

/// A segment and the number of its first chunk.
struct Stretch {
    first_chunk: usize,
    job: usize,
    segment: Segment,
    path: String,
    /// Bytes at its begin that an earlier pass has looked at.
    done: u64,
}

impl Stretch {
    fn bytes(&self) -> u64 {
        self.segment.len - self.done
    }
}

/// What one thread has seen.
struct Share {
    coverage: Coverage,
    notes: Notes,
    faces: Vec<(usize, Faces)>,
    evidence: Pages,
    damaged: Vec<(usize, DamagedBlocks)>,
    /// Those of them that are damaged only if the commit log is right.
    contradicted: Vec<(usize, DamagedBlocks)>,
    /// Checksums of whole files that a manifest has some of.
    sums: Vec<(String, Vec<u8>)>,
    suspects: Suspects,
    /// Pages of tables that are all zero, by job.
    zeroed: Vec<(usize, ZeroedBlocks)>,
    /// Pages that were looked at again, though they have not changed.
    unchanged: Vec<(String, BlockNo)>,
    /// Files of which some bytes were not read.
    unread: BTreeSet<String>,
}

/// Bytes that a pass over these forks will look at.
pub(crate) fn bytes(jobs: &[ForkCx<'_>], books: &Books) -> u64 {
    let (stretches, _) = stretches(jobs, &books.looked_at);
    stretches.iter().map(Stretch::bytes).sum()
}

/// Looks at every page of every job, and gives what the comparisons of relations ask for.
pub(crate) fn run(
    jobs: &[ForkCx<'_>],
    source: &dyn Source,
    system_identifier: u64,
    options: &CheckOptions,
    budget: &Budget,
    progress: &dyn Progress,
    books: &mut Books,
) -> PassRecords {
    let (stretches, chunks) = stretches(jobs, &books.looked_at);
    let pass = Pass {
        jobs,
        source,
        system_identifier,
        options,
        budget,
        progress,
        stretches,
        chunks,
        next: AtomicUsize::new(0),
        manifest: manifest(jobs, options),
        named: named_blocks(jobs, options, budget),
    };
    let threads = options.threads.get().min(chunks.max(1));
    let shares = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(|| pass.work())).collect();
        let mut shares = vec![pass.work()];
        shares.extend(
            others
                .into_iter()
                .map(|other| other.join().expect("a thread of the pass does not panic")),
        );
        shares
    });
    let mut records = settle(shares, options, books);
    records.named = pass.named;
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

fn stretches(jobs: &[ForkCx<'_>], looked_at: &BTreeMap<String, u64>) -> (Vec<Stretch>, usize) {
    let mut chunks = 0;
    let mut stretches = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        for segment in job.files.segments.iter().filter(|segment| segment.len > 0) {
            let path = job.files.path(segment.number);
            let done = looked_at.get(&path).copied().unwrap_or(0);
            if done >= segment.len {
                continue;
            }
            let stretch = Stretch {
                first_chunk: chunks,
                job: index,
                segment: *segment,
                path,
                done,
            };
            let own = stretch.bytes().div_ceil(CHUNK_BYTES);
            stretches.push(stretch);
            chunks += usize::try_from(own).unwrap_or(usize::MAX);
        }
    }
    (stretches, chunks)
}

struct Pass<'a> {
    jobs: &'a [ForkCx<'a>],
    source: &'a dyn Source,
    system_identifier: u64,
    options: &'a CheckOptions,
    budget: &'a Budget,
    progress: &'a dyn Progress,
    stretches: Vec<Stretch>,
    chunks: usize,
    next: AtomicUsize,
    manifest: Option<&'a BackupManifest>,
    named: BTreeMap<usize, NamedBlocks>,
}

impl Pass<'_> {
    fn work(&self) -> Share {
        let mut share = Share::new();
        // The kernel copies faster to where a page of memory begins.
        let mut memory = vec![0; usize::try_from(CHUNK_BYTES).unwrap_or(0) + MEMORY_PAGE];
        let aligned = memory.as_ptr().align_offset(MEMORY_PAGE);
        let Some(buffer) = memory.get_mut(aligned..) else {
            return share;
        };
        let mut looker: Option<(usize, Looker<'_>)> = None;
        while let Some((stretch, chunks)) = self.claim() {
            if self.progress.is_interrupted() {
                chunks
                    .for_each(|chunk| self.skip(stretch, self.offset(stretch, chunk), &mut share));
                continue;
            }
            if looker.as_ref().is_none_or(|(job, _)| *job != stretch.job) {
                let Some(job) = self.jobs.get(stretch.job) else {
                    break;
                };
                let named = self.named.get(&stretch.job);
                let next = Looker::new(job, self.system_identifier).holding_back();
                let next = next.noting(named);
                share.begin(stretch.job, next.wants_faces().then_some(self.budget));
                looker = Some((stretch.job, next));
            }
            let Some((_, looker)) = &looker else { break };
            self.chunks(stretch, chunks, buffer, looker, &mut share);
        }
        share.end_of_fork();
        share
    }

    /// What a thread takes next: a chunk, or a whole file where it is summed from its begin to its end.
    fn claim(&self) -> Option<(&Stretch, Range<usize>)> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        if self.manifest.is_none() {
            return Some((self.stretch_of(next)?, next..next + 1));
        }
        let stretch = self.stretches.get(next)?;
        let behind = self.stretches.get(next + 1);
        let end = behind.map_or(self.chunks, |behind| behind.first_chunk);
        Some((stretch, stretch.first_chunk..end))
    }

    /// Chunks of one file, one after the other.
    fn chunks(
        &self,
        stretch: &Stretch,
        chunks: Range<usize>,
        buffer: &mut [u8],
        looker: &Looker<'_>,
        share: &mut Share,
    ) {
        let mut sum = self.digest_of(stretch);
        for chunk in chunks {
            let offset = self.offset(stretch, chunk);
            if self.progress.is_interrupted() {
                self.skip(stretch, offset, share);
                sum = None;
                continue;
            }
            self.read_ahead(chunk);
            let len = (stretch.segment.len - offset).min(CHUNK_BYTES);
            let Some(room) = buffer.get_mut(..usize::try_from(len).unwrap_or(0)) else {
                return;
            };
            let whole = self.chunk(stretch, offset, room, looker, share);
            sum = sum.filter(|_| whole);
            if let Some(sum) = &mut sum {
                sum.update(room);
            }
            self.progress.advance(len);
        }
        if let Some(sum) = sum {
            share.sums.push((stretch.path.clone(), sum.finish()));
        }
    }

    /// A checksum that the manifest has of the file, if it has one and the length is its own.
    fn digest_of(&self, stretch: &Stretch) -> Option<Digest> {
        let cluster = self.jobs.get(stretch.job)?.cluster?;
        // What passed by is shown as zeros.
        if cluster.known_sums.is_some() {
            return None;
        }
        let file = self.manifest?.files.get(&stretch.path)?;
        let (algorithm, _) = file.sum.as_ref()?;
        (file.size == stretch.segment.len).then(|| Digest::new(*algorithm))
    }

    fn offset(&self, stretch: &Stretch, chunk: usize) -> u64 {
        stretch.done + chunk.saturating_sub(stretch.first_chunk) as u64 * CHUNK_BYTES
    }

    /// The segment that a chunk lies in.
    fn stretch_of(&self, chunk: usize) -> Option<&Stretch> {
        (chunk < self.chunks).then_some(())?;
        let after = self
            .stretches
            .partition_point(|stretch| stretch.first_chunk <= chunk);
        self.stretches.get(after.checked_sub(1)?)
    }

    /// Asks for the chunks after the next ones, once for each run of them.
    fn read_ahead(&self, chunk: usize) {
        if !chunk.is_multiple_of(AHEAD) {
            return;
        }
        if let Some(stretch) = self.stretch_of(chunk + AHEAD) {
            let len = CHUNK_BYTES * AHEAD as u64;
            self.source.prefetch(&[pgclinic_source::Range {
                path: stretch.path.clone(),
                offset: self.offset(stretch, chunk + AHEAD),
                len,
            }]);
        }
    }

    fn skip(&self, stretch: &Stretch, offset: u64, share: &mut Share) {
        let len = (stretch.segment.len - offset).min(CHUNK_BYTES);
        share.coverage.bytes_seen += len;
        share.coverage.bytes_skipped += len;
    }

    /// Reads a chunk and looks at its pages; says whether all of its bytes are there.
    fn chunk(
        &self,
        stretch: &Stretch,
        offset: u64,
        room: &mut [u8],
        looker: &Looker<'_>,
        share: &mut Share,
    ) -> bool {
        let expected = room.len();
        let read = match self.source.read_at(&stretch.path, offset, room) {
            Ok(read) => read,
            // Dropped or rewritten: what stands in its place has a file of its own.
            Err(error) if looker.is_running() && error.kind == SourceErrorKind::NotFound => {
                return false;
            }
            Err(error) => {
                share.coverage.bytes_seen += expected as u64;
                share.coverage.bytes_unreadable += expected as u64;
                share.not_read(&stretch.path, error.to_string());
                return false;
            }
        };
        // Half a page is no page: where the file shrank, what is left of the last one is lost too.
        let block_size = looker.block_bytes();
        let read = match read < expected {
            true => read - read % block_size,
            false => read,
        };
        let gone = if looker.is_running() {
            expected - read
        } else {
            0
        };
        let expected = expected - gone;
        if read < expected {
            let why = format!(
                "the file shrank while it was read: {} bytes are gone",
                expected - read
            );
            share.not_read(&stretch.path, why);
        }
        share.coverage.bytes_seen += expected as u64;
        share.coverage.bytes_unreadable += (expected - read) as u64;
        self.pages(
            stretch,
            offset,
            room.get(..read).unwrap_or_default(),
            looker,
            share,
        );
        read == expected && gone == 0
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

    /// That run did not look at all of the file.
    fn is_half_read(&self, stretch: &Stretch, job: &ForkCx<'_>) -> bool {
        let since = self.options.since.as_ref();
        since.is_some_and(|since| since.has_half_read(&stretch.path, job))
    }

    fn pages(
        &self,
        stretch: &Stretch,
        offset: u64,
        bytes: &[u8],
        looker: &Looker<'_>,
        share: &mut Share,
    ) {
        let Some(job) = self.jobs.get(stretch.job) else {
            return;
        };
        let block_size = u64::from(job.build.block_size);
        let first = u64::from(stretch.segment.number).saturating_mul(job.build.segment_blocks())
            + offset / block_size;
        let pages = bytes.chunks_exact(usize::try_from(block_size).unwrap_or(8192));
        share.coverage.bytes_checked += pages.remainder().len() as u64;
        let (known, half_read) = (self.known(job), self.is_half_read(stretch, job));
        let mut hashes = looker.hashes(pages.clone()).into_iter();
        for (page, block) in pages.zip(first..) {
            let hash = hashes.next();
            if !self.options.selection.takes_block(block) {
                share.coverage.bytes_seen -= page.len() as u64;
                continue;
            }
            let Ok(number) = BlockNo::try_from(block) else {
                continue;
            };
            if self.is_unchanged(page, job) {
                if known.is_some_and(|known| known.has(block)) {
                    share.unchanged.push((stretch.path.clone(), number));
                } else if !half_read {
                    share.coverage.bytes_seen -= page.len() as u64;
                    share.coverage.pages_unchanged += 1;
                    continue;
                }
            }
            share.coverage.bytes_checked += page.len() as u64;
            share.coverage.pages += 1;
            let seen = looker.look((page, hash), number, &mut share.notes);
            if is_zeroed(seen, page) {
                share.zeroed(stretch.job, job, block);
            }
            match seen {
                Seen::Quiet | Seen::Noted => {}
                Seen::Zeroed => share.coverage.zeroed_pages += 1,
                Seen::Suspect => share.suspects.add(spot(job, number)),
                Seen::Young(lsn) => share.suspects.add_young(spot(job, number), lsn),
                Seen::Damaged | Seen::Contradicted => {
                    Books::keep_evidence(
                        &mut share.evidence,
                        self.options.evidence,
                        &stretch.path,
                        number,
                        page,
                    );
                    damage(&mut share.damaged, stretch.job, block);
                    if seen == Seen::Contradicted {
                        damage(&mut share.contradicted, stretch.job, block);
                    }
                }
            }
        }
    }
}

impl Share {
    fn new() -> Self {
        Share {
            coverage: Coverage::default(),
            notes: Notes {
                findings: Findings::default(),
                causes_left: CAUSES_MAX,
                faces: None,
            },
            faces: Vec::new(),
            evidence: Pages::new(),
            damaged: Vec::new(),
            contradicted: Vec::new(),
            sums: Vec::new(),
            suspects: Suspects::default(),
            zeroed: Vec::new(),
            unchanged: Vec::new(),
            unread: BTreeSet::new(),
        }
    }

    /// Some bytes of the file are missing.
    fn not_read(&mut self, path: &str, why: String) {
        self.unread.insert(path.to_owned());
        self.coverage.not_checked.push(NotChecked {
            what: path.to_owned(),
            why,
            inherent: false,
        });
    }

    /// Goes on with another fork, whose faces are kept within `budget`.
    fn begin(&mut self, job: usize, budget: Option<&Budget>) {
        self.end_of_fork();
        self.notes.faces = budget.map(|budget| (job, Faces::new(budget)));
    }

    fn end_of_fork(&mut self) {
        self.faces.extend(self.notes.faces.take());
    }

    /// A page of a table that is all zero: its indexes may know better.
    fn zeroed(&mut self, number: usize, job: &ForkCx<'_>, block: u64) {
        if job.fork() != Fork::Main || job.method != Some(AccessMethod::Heap) {
            return;
        }
        match self.zeroed.last_mut() {
            Some((last, blocks)) if *last == number => blocks.add(block),
            _ => {
                let mut blocks = ZeroedBlocks::default();
                blocks.add(block);
                self.zeroed.push((number, blocks));
            }
        }
    }
}

fn damage(damaged: &mut Vec<(usize, DamagedBlocks)>, job: usize, block: u64) {
    match damaged.last_mut() {
        Some((last, blocks)) if *last == job => blocks.add(block),
        _ => {
            let mut blocks = DamagedBlocks::default();
            blocks.add(block);
            damaged.push((job, blocks));
        }
    }
}

/// All zeros, whether or not something else says that it was another page.
fn is_zeroed(seen: Seen, page: &[u8]) -> bool {
    let is_zero = || Page::parse(page).is_some_and(Page::is_zeroed);
    seen == Seen::Zeroed || (seen == Seen::Damaged && is_zero())
}

fn spot(job: &ForkCx<'_>, block: BlockNo) -> Spot {
    Spot {
        file: job.file_number(),
        fork: job.fork(),
        block,
    }
}

/// Adds up what the threads have seen.
fn settle(shares: Vec<Share>, options: &CheckOptions, books: &mut Books) -> PassRecords {
    let mut records = PassRecords::default();
    for share in shares {
        let (ours, theirs) = (&mut books.coverage, share.coverage);
        ours.bytes_seen += theirs.bytes_seen;
        ours.bytes_checked += theirs.bytes_checked;
        ours.bytes_skipped += theirs.bytes_skipped;
        ours.bytes_unreadable += theirs.bytes_unreadable;
        ours.pages += theirs.pages;
        ours.zeroed_pages += theirs.zeroed_pages;
        ours.pages_unchanged += theirs.pages_unchanged;
        theirs
            .not_checked
            .into_iter()
            .for_each(|entry| books.not_checked(entry));
        let mut findings = share.notes.findings;
        std::mem::take(&mut findings.not_checked)
            .into_iter()
            .for_each(|entry| books.not_checked(entry));
        books.findings.absorb(findings);
        for ((path, block), page) in share.evidence {
            Books::keep_evidence(&mut books.evidence, options.evidence, &path, block, &page);
        }
        for (job, blocks) in &share.damaged {
            books.damaged.entry(*job).or_default().absorb(blocks);
        }
        for (job, blocks) in &share.contradicted {
            books.contradicted.entry(*job).or_default().absorb(blocks);
        }
        books.sums.extend(share.sums);
        books.suspects.absorb(share.suspects);
        books.unchanged.extend(share.unchanged);
        books.unread.extend(share.unread);
        for (job, faces) in share.faces {
            records.faces.entry(job).or_default().add(faces);
        }
        for (job, blocks) in &share.zeroed {
            records.zeroed.entry(*job).or_default().absorb(blocks);
        }
    }
    records
}

/// Checks bare forks: relation files without their cluster.
pub fn check_file(
    forks: &[ForkCx<'_>],
    source: &dyn Source,
    target: Target,
    options: &CheckOptions,
    progress: &dyn Progress,
) -> CheckDocument {
    let mut books = Books::new();
    books.coverage.relations = 1;
    if options.level > pgclinic_model::document::Level::Pages {
        let why = "a bare file tells neither its columns nor whether data checksums are on";
        books.not_checked(NotChecked {
            what: "rows and checksums".into(),
            why: why.into(),
            inherent: false,
        });
    }
    let budget = Budget::new(options.memory_bytes);
    progress.expect(bytes(forks, &books));
    run(forks, source, 0, options, &budget, progress, &mut books);
    books.settle_damage(forks);
    books.interrupted = progress.is_interrupted();
    document::assemble(target, false, options, books)
}
