//! One pass over the main forks of a cluster, on all threads, every measure at once.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Mutex;

use pgclinic_cluster::{Cluster, ForkFiles};
use pgclinic_format::{BlockNo, Fork, Oid, Page};
use pgclinic_source::{BufferPool, Chunk, ChunkReader, Range, for_each_chunk};

use super::{MEASURES, Measure, PageAt, Sums, Whole};
use crate::check::{DatabaseCx, ForkCx};
use crate::document::{
    Coverage, Figure, Level, MEASURE_SCHEMA, MeasureDocument, MeasuredRelation, NotChecked, Tool,
};
use crate::walker::{Progress, Selection, fork_cx, target_of};

/// Bytes of one read.
const CHUNK_BYTES: usize = 1 << 20;
/// Reads asked for ahead.
const READ_AHEAD: usize = 8;

/// What a measurement is asked to do.
#[derive(Clone, Debug)]
pub struct MeasureOptions {
    /// Threads that read and look.
    pub threads: NonZeroUsize,
    /// What part of the cluster.
    pub selection: Selection,
    /// How the person named the target.
    pub spec: String,
}

/// Measures a cluster. `elapsed_s` is left at 0: the clock is the caller's.
pub fn measure_cluster(
    cluster: &Cluster,
    options: &MeasureOptions,
    progress: &dyn Progress,
) -> MeasureDocument {
    let mut document = MeasureDocument {
        schema: MEASURE_SCHEMA.into(),
        tool: Tool::this(),
        target: target_of(cluster, &options.spec),
        level: Level::Structure,
        coverage: Coverage::default(),
        relations: Vec::new(),
        interrupted: false,
        elapsed_s: 0.0,
    };
    for trouble in &cluster.troubles {
        let (what, why) = (trouble.what.clone(), trouble.why.clone());
        leave_out(&mut document.coverage, what, why);
    }
    for database in std::iter::once(0).chain(cluster.databases.keys().copied()) {
        if options.selection.takes_database(cluster, database) && !progress.is_interrupted() {
            measure_database(cluster, database, options, progress, &mut document);
        }
    }
    document.interrupted = progress.is_interrupted();
    document
}

fn leave_out(coverage: &mut Coverage, what: String, why: String) {
    coverage.not_checked.push(NotChecked {
        what,
        why,
        inherent: false,
    });
}

fn measure_database(
    cluster: &Cluster,
    database: Oid,
    options: &MeasureOptions,
    progress: &dyn Progress,
    document: &mut MeasureDocument,
) {
    let catalog = cluster.catalog_names(database);
    let mut forks: Vec<ForkFiles> = Vec::new();
    let homes = cluster.homes.iter();
    for home in homes.filter(|home| home.database == database) {
        match cluster.files(home) {
            Ok(mut files) => forks.append(&mut files),
            Err(trouble) => leave_out(&mut document.coverage, trouble.what, trouble.why),
        }
    }
    for trouble in &catalog.troubles {
        let (what, why) = (trouble.what.clone(), trouble.why.clone());
        leave_out(&mut document.coverage, what, why);
    }
    let view = DatabaseCx {
        cluster,
        catalog: &catalog,
        forks: &forks,
    };
    let all = forks.iter().filter(|files| is_measured(files));
    let all = all.map(|files| fork_cx(&view, files, Level::Pages));
    let jobs: Vec<Job<'_>> = all
        .filter(|fork| options.selection.takes_fork(fork.files, fork.relation))
        .map(Job::new)
        .collect();
    run(cluster, &jobs, options, progress, &mut document.coverage);
    let mut measured: Vec<MeasuredRelation> = jobs.into_iter().map(Job::finish).collect();
    measured
        .sort_by(|a, b| (&a.schema, &a.relation, &a.path).cmp(&(&b.schema, &b.relation, &b.path)));
    document.relations.append(&mut measured);
}

/// Main forks that outlive the server's next start.
fn is_measured(files: &ForkFiles) -> bool {
    files.fork == Fork::Main && files.temporary.is_none() && !files.segments.is_empty()
}

/// A relation, its measures, and what they have added up.
struct Job<'a> {
    fork: ForkCx<'a>,
    measures: Vec<&'static dyn Measure>,
    tally: Mutex<Tally>,
}

#[derive(Default)]
struct Tally {
    sums: Vec<Sums>,
    empty_pages: u64,
    broken_pages: u64,
}

impl<'a> Job<'a> {
    fn new(fork: ForkCx<'a>) -> Self {
        let measures = MEASURES.iter().copied();
        let measures: Vec<_> = measures.filter(|measure| measure.fits(&fork)).collect();
        let tally = Tally {
            sums: measures.iter().map(|_| Sums::default()).collect(),
            ..Tally::default()
        };
        Job {
            fork,
            measures,
            tally: Mutex::new(tally),
        }
    }

    /// Adds up the pages of a chunk.
    fn chunk(&self, bytes: &[u8], first: u64) {
        let mut tally = Tally {
            sums: self.measures.iter().map(|_| Sums::default()).collect(),
            ..Tally::default()
        };
        let size = usize::try_from(self.fork.build.block_size).unwrap_or(8192);
        for (bytes, block) in bytes.chunks_exact(size).zip(first..) {
            let block = BlockNo::try_from(block).unwrap_or(BlockNo::MAX);
            self.page(bytes, block, &mut tally);
        }
        self.absorb(tally);
    }

    fn page(&self, bytes: &[u8], block: BlockNo, tally: &mut Tally) {
        let page = Page::parse(bytes);
        let Some(page) = page.filter(|page| page.is_new() || page.header_is_sane_to_the_server())
        else {
            tally.broken_pages += 1;
            return;
        };
        if page.is_new() {
            tally.empty_pages += 1;
            return;
        }
        let at = PageAt {
            fork: &self.fork,
            block,
        };
        let mut whole = true;
        for (measure, sums) in self.measures.iter().zip(&mut tally.sums) {
            whole &= measure.page(page, &at, sums);
        }
        tally.broken_pages += u64::from(!whole);
    }

    fn absorb(&self, other: Tally) {
        let mut own = self.tally.lock().expect("no thread panics with a tally");
        for (sums, more) in own.sums.iter_mut().zip(other.sums) {
            sums.absorb(more);
        }
        own.empty_pages += other.empty_pages;
        own.broken_pages += other.broken_pages;
    }

    fn finish(self) -> MeasuredRelation {
        let fork = &self.fork;
        let tally = self
            .tally
            .into_inner()
            .expect("no thread panics with a tally");
        let whole = Whole {
            fork,
            empty_pages: tally.empty_pages,
            broken_pages: tally.broken_pages,
        };
        let mut sections: BTreeMap<String, BTreeMap<String, Option<Figure>>> = BTreeMap::new();
        for (measure, sums) in self.measures.iter().zip(&tally.sums) {
            let section = sections.entry(measure.section().into()).or_default();
            let values = measure.total(sums, &whole);
            assert_eq!(
                values.len(),
                measure.figures().len(),
                "a value for each figure"
            );
            let named = measure.figures().iter().zip(values);
            section.extend(named.map(|(kind, value)| (kind.name.to_owned(), value)));
        }
        let relation = fork.relation;
        MeasuredRelation {
            database: fork.database.map(str::to_owned),
            schema: relation.map(|own| own.schema.clone()),
            relation: relation.map(|own| own.name.clone()),
            database_oid: fork.files.home.database,
            relation_oid: relation.map(|own| own.oid),
            filenode: fork.files.filenode,
            path: fork.files.path(0),
            kind: fork.kind,
            access_method: fork.method.map(|method| method.name().to_owned()),
            blocks: fork.blocks,
            bytes: whole.bytes(fork.blocks),
            pages_not_measured: tally.broken_pages,
            sections,
        }
    }
}

/// A segment of a job.
struct Stretch {
    job: usize,
    first_block: u64,
}

fn run(
    cluster: &Cluster,
    jobs: &[Job<'_>],
    options: &MeasureOptions,
    progress: &dyn Progress,
    coverage: &mut Coverage,
) {
    let (stretches, files) = stretches(jobs);
    progress.expect(files.iter().map(|file| file.len).sum());
    let pool = BufferPool::new(CHUNK_BYTES, options.threads.get());
    let reader = ChunkReader::new(cluster.source().as_ref(), &pool, files, READ_AHEAD);
    let seen = Mutex::new(Coverage::default());
    for_each_chunk(&reader, options.threads, &|chunk| {
        if progress.is_interrupted() {
            return ControlFlow::Break(());
        }
        let stretch = stretches.get(chunk.file);
        if let Some((stretch, job)) = stretch.and_then(|own| Some((own, jobs.get(own.job)?))) {
            let block = u64::from(job.fork.build.block_size);
            let first = stretch.first_block + chunk.range.offset / block;
            if let Ok(bytes) = &chunk.bytes {
                job.chunk(bytes, first);
            }
            book(
                &chunk,
                job,
                &mut seen.lock().expect("no thread panics with the books"),
            );
        }
        progress.advance(chunk.range.len);
        ControlFlow::Continue(())
    });
    let seen = seen.into_inner().expect("no thread panics with the books");
    coverage.relations += jobs.len() as u64;
    coverage.pages += seen.pages;
    coverage.bytes_seen += seen.bytes_seen;
    coverage.bytes_checked += seen.bytes_checked;
    coverage.bytes_unreadable += seen.bytes_unreadable;
    coverage.not_checked.extend(seen.not_checked);
}

fn stretches(jobs: &[Job<'_>]) -> (Vec<Stretch>, Vec<Range>) {
    let mut stretches = Vec::new();
    let mut files = Vec::new();
    for (job, own) in jobs.iter().enumerate() {
        for segment in &own.fork.files.segments {
            let first_block = u64::from(segment.number) * own.fork.build.segment_blocks();
            stretches.push(Stretch { job, first_block });
            files.push(Range {
                path: own.fork.files.path(segment.number),
                offset: 0,
                len: segment.len,
            });
        }
    }
    (stretches, files)
}

/// Books what came of a chunk and what did not.
fn book(chunk: &Chunk, job: &Job<'_>, seen: &mut Coverage) {
    let block = u64::from(job.fork.build.block_size);
    let (read, why) = match &chunk.bytes {
        Ok(bytes) => (
            bytes.len() as u64,
            "the file shrank while it was read".to_owned(),
        ),
        Err(error) => (0, error.to_string()),
    };
    let missing = chunk.range.len.saturating_sub(read);
    seen.bytes_seen += chunk.range.len;
    seen.bytes_checked += read;
    seen.bytes_unreadable += missing;
    seen.pages += read / block;
    if missing > 0 {
        job.absorb(Tally {
            broken_pages: missing.div_ceil(block),
            ..Tally::default()
        });
        leave_out(seen, chunk.range.path.clone(), why);
    }
}
