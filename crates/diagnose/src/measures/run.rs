//! One pass over the main forks of a cluster, on all threads, every measure at once.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use pgclinic_cluster::{Cluster, ForkFiles, Trouble, selected, target_of};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{Fork, Oid};
use pgclinic_model::document::{
    Counters, Coverage, Level, MEASURE_SCHEMA, MeasureDocument, MeasuredDatabase, MeasuredRelation,
    NotChecked, Sections, Tool,
};
use pgclinic_model::{Progress, Selection};
use pgclinic_source::{BufferPool, Chunk, ChunkReader, Presence, Range, Source, for_each_chunk};

use super::job::{Job, Tally};
use super::key_order::KeyOrder;
use super::toasted::Toasted;
use super::{catalogs, index_hints, key_order, large_objects, running};
use crate::check::DatabaseCx;
use crate::inventory::Inventory;
use crate::unknown_storage;
use crate::unreachable::tell_relations;
use crate::walker::fork_cx;

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
    /// The share of each large relation that is read; all of it without.
    pub sample_percent: Option<f64>,
    /// Memory for where rows stand.
    pub memory_bytes: u64,
    /// Long values are tried with each way to pack them, by this clock.
    pub trial_clock: Option<fn() -> std::time::Duration>,
}

/// Measures a cluster, also one whose server is at work. `elapsed_s` is left at 0: the clock is the caller's.
pub fn measure_cluster(
    cluster: &Cluster,
    options: &MeasureOptions,
    progress: &dyn Progress,
) -> MeasureDocument {
    let mut document = new_document(cluster, options);
    match cluster.is_running() {
        true => running::measure(cluster, options, progress, &mut document),
        false => {
            tell_troubles(cluster, &mut document.coverage);
            for database in databases(cluster, options) {
                if !progress.is_interrupted() {
                    measure_database(cluster, database, options, progress, &mut document);
                }
            }
        }
    }
    crate::unreachable::tell(cluster, &mut document.coverage);
    document.interrupted = progress.is_interrupted();
    document
}

fn new_document(cluster: &Cluster, options: &MeasureOptions) -> MeasureDocument {
    MeasureDocument {
        schema: MEASURE_SCHEMA.into(),
        tool: Tool::this(),
        target: target_of(cluster, &options.spec),
        level: Level::Structure,
        coverage: Coverage::default(),
        relations: Vec::new(),
        databases: Vec::new(),
        hints: Vec::new(),
        growth: None,
        counters: counters(cluster),
        sample_percent: options.sample_percent,
        notes: Vec::new(),
        interrupted: false,
        elapsed_s: 0.0,
    }
}

/// Those that are asked for, with 0 for the shared relations.
pub(super) fn databases(cluster: &Cluster, options: &MeasureOptions) -> Vec<Oid> {
    let all = std::iter::once(0).chain(cluster.databases.keys().copied());
    all.filter(|database| selected::database(&options.selection, cluster, *database))
        .collect()
}

pub(super) fn tell_troubles(cluster: &Cluster, coverage: &mut Coverage) {
    for trouble in &cluster.troubles {
        leave_out(coverage, trouble.what.clone(), trouble.why.clone());
    }
}

fn counters(cluster: &Cluster) -> Counters {
    let Some(control) = cluster.control.trusted() else {
        return Counters::default();
    };
    let checkpoint = &control.checkpoint;
    let age = |next: u32, oldest: u32| u64::from(next.wrapping_sub(oldest));
    Counters {
        time: checkpoint.time,
        next_xid: checkpoint.next_full_xid,
        next_multixact: checkpoint.next_multi.0,
        xid_age: age(checkpoint.next_xid().0, checkpoint.oldest_xid.0),
        multixact_age: age(checkpoint.next_multi.0, checkpoint.oldest_multi.0),
        wal_bytes: control.checkpoint_lsn.0,
    }
}

pub(super) fn leave_out(coverage: &mut Coverage, what: String, why: String) {
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
    let catalog = cluster.catalog(database);
    let (forks, troubles) = forks_of(cluster, database);
    for trouble in troubles.iter().chain(&catalog.troubles) {
        let (what, why) = (trouble.what.clone(), trouble.why.clone());
        leave_out(&mut document.coverage, what, why);
    }
    tell_relations(cluster, &catalog, &troubles, &mut document.coverage);
    let view = DatabaseCx {
        cluster,
        catalog: &catalog,
        forks: &forks,
    };
    tell_missing(&view, options, &mut document.coverage);
    let chosen = forks.iter().filter(|files| is_measured(files));
    let chosen = chosen.filter(|files| selected::dependent(&options.selection, files, &catalog));
    let coverage = &mut document.coverage;
    let chosen = chosen.filter(|files| !is_unknown(&view, files, coverage));
    let jobs: Vec<Job<'_>> = chosen
        .map(|files| fork_cx(&view, files, Level::Pages))
        .map(|fork| Job::new(fork, &catalog, options))
        .collect();
    document.coverage.relations += jobs.len() as u64;
    let source = cluster.source().as_ref();
    run(source, &jobs, options, progress, &mut document.coverage);
    let mut measured = figures(jobs, options, progress, &mut document.coverage);
    if database != 0 && !progress.is_interrupted() {
        tell_database(&view, options, &measured, document);
    }
    document.relations.append(&mut measured);
}

/// Relations of which nothing can be measured: their file is not there, or is none that can be read. What recovery makes or
/// removes proves nothing.
fn tell_missing(view: &DatabaseCx<'_>, options: &MeasureOptions, coverage: &mut Coverage) {
    let Some(inventory) = Inventory::comparable(view) else {
        return;
    };
    let source = view.cluster.source().as_ref();
    for relation in inventory.relations() {
        let files = inventory.fork(relation, Fork::Main);
        let begins = files.is_some_and(|files| !files.segments.is_empty());
        let Some(home) = inventory.home(relation).filter(|_| !begins) else {
            continue;
        };
        let own = inventory.files(relation, home, Fork::Main);
        if !selected::dependent(&options.selection, &own, view.catalog) {
            continue;
        }
        let why = match Presence::of_file(source, &own.path(0)) {
            Presence::Missing => "its file is missing".into(),
            Presence::Unreadable(error) => error.to_string(),
            Presence::There(_) => "it is a link, which is not followed".into(),
        };
        let what = format!("{} ({})", own.path(0), relation.qualified_name());
        leave_out(coverage, what, why);
    }
}

/// The forks in the folders of a database, and what cannot be listed.
pub(super) fn forks_of(cluster: &Cluster, database: Oid) -> (Vec<ForkFiles>, Vec<Trouble>) {
    let (mut forks, mut troubles) = (Vec::new(), Vec::new());
    let homes = cluster.homes.iter();
    for home in homes.filter(|home| home.database == database) {
        match cluster.files(home) {
            Ok(mut files) => forks.append(&mut files),
            Err(trouble) => troubles.push(trouble),
        }
    }
    (forks, troubles)
}

/// What was added up of the relations, in the order of their names.
pub(super) fn figures(
    jobs: Vec<Job<'_>>,
    options: &MeasureOptions,
    progress: &dyn Progress,
    coverage: &mut Coverage,
) -> Vec<MeasuredRelation> {
    let keys = key_sections(&jobs, options, progress);
    keys_left_out(&jobs, coverage);
    let trials = trials(&jobs, options);
    let finished = jobs.into_iter().zip(keys).zip(trials);
    let mut measured: Vec<_> = finished
        .map(|((job, keys), trials)| job.finish(keys, trials))
        .collect();
    measured
        .sort_by(|a, b| (&a.schema, &a.relation, &a.path).cmp(&(&b.schema, &b.relation, &b.path)));
    measured
}

/// Hints, and what is said of the database as a whole.
pub(super) fn tell_database(
    view: &DatabaseCx<'_>,
    options: &MeasureOptions,
    measured: &[MeasuredRelation],
    document: &mut MeasureDocument,
) {
    let mut hints = index_hints::hints(view.catalog, measured);
    document.hints.append(&mut hints);
    let whole = whole_database(view, options, measured);
    document.databases.extend(whole);
}

/// What is said of a database as a whole, where all of it was asked for.
fn whole_database(
    view: &DatabaseCx<'_>,
    options: &MeasureOptions,
    measured: &[MeasuredRelation],
) -> Option<MeasuredDatabase> {
    let selection = &options.selection;
    let all = selection.relations.is_empty() && selection.filenodes.is_empty();
    let name = view.catalog.database_name.clone().filter(|_| all)?;
    let mut sections =
        Sections::from([(catalogs::SECTION.to_owned(), catalogs::measure(measured))]);
    sections
        .extend(large_objects::measure(view).map(|own| (large_objects::SECTION.to_owned(), own)));
    Some(MeasuredDatabase {
        database: name,
        database_oid: view.catalog.database,
        sections,
    })
}

/// Nothing can be told of its pages, which is told.
pub(super) fn is_unknown(
    view: &DatabaseCx<'_>,
    files: &ForkFiles,
    coverage: &mut Coverage,
) -> bool {
    let relation = view.catalog.by_file(files.home.tablespace, files.filenode);
    let why = relation.and_then(|own| unknown_storage::why(view, files, own));
    let is_unknown = why.is_some();
    coverage.not_checked.extend(why);
    is_unknown
}

/// Main forks that outlive the server's next start.
pub(super) fn is_measured(files: &ForkFiles) -> bool {
    files.fork == Fork::Main && files.temporary.is_none() && !files.segments.is_empty()
}

/// The order of each btree against its table's, one index a thread.
fn key_sections(
    jobs: &[Job<'_>],
    options: &MeasureOptions,
    progress: &dyn Progress,
) -> Vec<Option<Sections>> {
    let memory_bytes = options.memory_bytes / options.threads.get() as u64;
    let next = AtomicUsize::new(0);
    let sections: Vec<Mutex<Option<Sections>>> = jobs.iter().map(|_| Mutex::default()).collect();
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let (Some(job), Some(slot)) = (jobs.get(at), sections.get(at)) else {
                return;
            };
            if !progress.is_interrupted() {
                let section = key_section(job, jobs, memory_bytes);
                *slot.lock().expect("no thread panics with a section") = section;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..options.threads.get() {
            scope.spawn(work);
        }
        work();
    });
    let sections = sections.into_iter();
    sections
        .map(|slot| slot.into_inner().expect("no thread panics with a section"))
        .collect()
}

fn key_section(job: &Job<'_>, jobs: &[Job<'_>], memory_bytes: u64) -> Option<Sections> {
    (job.fork.method == Some(AccessMethod::Btree)).then_some(())?;
    let relation = job.fork.relation?;
    let index = relation.index.as_ref().filter(|index| index.valid)?;
    let own = job.places()?;
    let is_table = |other: &&Job<'_>| {
        other
            .fork
            .relation
            .is_some_and(|own| own.oid == index.table)
    };
    let table = jobs.iter().find(is_table);
    let rows = table.and_then(Job::places);
    let columns = relation.layouts.as_deref().unwrap_or_default();
    let forecast = index.unique && matches!(columns, [only] if matches!(only.attlen, 8 | 16));
    // Of a table that is too large for its rows to be kept, or for --memory, dead ones count too; of one that was not
    // asked for, nothing is told.
    (rows.is_some() || table.is_some_and(Job::is_too_large)).then_some(())?;
    let order = KeyOrder {
        own: &own,
        table: rows.as_deref(),
        forecast,
        memory_bytes,
    };
    key_order::measure(&job.fork, &order)
}

/// Indexes whose leaves did not fit: nothing is told of the order of their keys.
fn keys_left_out(jobs: &[Job<'_>], coverage: &mut Coverage) {
    let indexes = jobs
        .iter()
        .filter(|job| job.fork.method == Some(AccessMethod::Btree) && job.has_lost_places());
    for relation in indexes.filter_map(|job| job.fork.relation) {
        let what = format!("the order of keys of {}", relation.qualified_name());
        let why = "the places of its leaves take more than --memory".into();
        leave_out(coverage, what, why);
    }
}

/// The trials of each job's columns, one after the other: times would disturb each other.
fn trials(jobs: &[Job<'_>], options: &MeasureOptions) -> Vec<Vec<Option<Sections>>> {
    let of_job = |job: &Job<'_>| {
        let Some(clock) = options.trial_clock else {
            return Vec::new();
        };
        let picked = job.take_picked().into_iter();
        picked
            .map(|picked| picked.try_all(toasted(job, jobs), clock))
            .collect()
    };
    jobs.iter().map(of_job).collect()
}

/// The long values of a job's table, where they are at hand.
fn toasted<'a>(job: &Job<'_>, jobs: &'a [Job<'a>]) -> Option<Toasted<'a>> {
    let wanted = job.fork.relation?.toast;
    let is = |other: &&Job<'_>| other.fork.relation.is_some_and(|own| own.oid == wanted);
    let heap = jobs.iter().find(is)?;
    let is_its_index = |other: &&Job<'_>| {
        let index = other.fork.relation.and_then(|own| own.index.as_ref());
        index.is_some_and(|index| index.table == wanted)
    };
    let index = jobs.iter().find(is_its_index)?;
    Toasted::new(&heap.fork, &index.fork)
}

/// A stretch of a job's file.
struct Stretch {
    job: usize,
    first_block: u64,
}

pub(super) fn run(
    source: &dyn Source,
    jobs: &[Job<'_>],
    options: &MeasureOptions,
    progress: &dyn Progress,
    coverage: &mut Coverage,
) {
    let (stretches, files) = stretches(jobs);
    progress.expect(files.iter().map(|file| file.len).sum());
    let pool = BufferPool::new(CHUNK_BYTES, options.threads.get());
    let reader = ChunkReader::new(source, &pool, files, READ_AHEAD);
    let room = AtomicI64::new(i64::try_from(options.memory_bytes).unwrap_or(i64::MAX));
    let seen = Mutex::new(Coverage::default());
    for_each_chunk(&reader, options.threads, &|chunk| {
        if progress.is_interrupted() {
            return ControlFlow::Break(());
        }
        let stretch = stretches.get(chunk.file);
        if let Some((stretch, job)) = stretch.and_then(|own| Some((own, jobs.get(own.job)?))) {
            let block = u64::from(job.fork.build.block_size);
            let offset = chunk.range.offset / block;
            let first = stretch.first_block + offset;
            if let Ok(bytes) = &chunk.bytes {
                job.chunk(bytes, first, &room);
            }
            let mut seen = seen.lock().expect("no thread panics with the books");
            book(&chunk, job, first, &mut seen);
        }
        progress.advance(chunk.range.len);
        ControlFlow::Continue(())
    });
    let seen = seen.into_inner().expect("no thread panics with the books");
    coverage.pages += seen.pages;
    coverage.bytes_seen += seen.bytes_seen;
    coverage.bytes_checked += seen.bytes_checked;
    coverage.bytes_unreadable += seen.bytes_unreadable;
    coverage.not_checked.extend(seen.not_checked);
}

/// What is read of each job: its segments, or the groups of its sample. `first_block` is the first of the segment.
fn stretches(jobs: &[Job<'_>]) -> (Vec<Stretch>, Vec<Range>) {
    let mut stretches = Vec::new();
    let mut files = Vec::new();
    for (job, own) in jobs.iter().enumerate() {
        let per_segment = own.fork.build.segment_blocks().max(1);
        let block = u64::from(own.fork.build.block_size);
        let mut add = |segment: u32, offset: u64, len: u64| {
            let first_block = u64::from(segment) * per_segment;
            stretches.push(Stretch { job, first_block });
            let path = own.fork.files.path(segment);
            files.push(Range { path, offset, len });
        };
        match &own.groups {
            None => {
                for segment in &own.fork.files.segments {
                    add(segment.number, 0, segment.len);
                }
            }
            Some(groups) => {
                for group in groups {
                    let segment = u32::try_from(group.start / per_segment).unwrap_or(u32::MAX);
                    let within = group.start % per_segment;
                    let pages = (group.end - group.start).min(per_segment - within);
                    add(segment, within * block, pages * block);
                }
            }
        }
    }
    (stretches, files)
}

/// Books what came of a chunk and what did not.
fn book(chunk: &Chunk, job: &Job<'_>, first: u64, seen: &mut Coverage) {
    let block = u64::from(job.fork.build.block_size);
    let (read, why) = match &chunk.bytes {
        Ok(bytes) => (
            bytes.len() as u64,
            "the file shrank while it was read".to_owned(),
        ),
        Err(error) => (0, error.to_string()),
    };
    let missing = chunk.range.len.saturating_sub(read);
    if missing > 0 && job.fork.is_running() {
        // Its file was removed or cut since it was listed: a newer look tells.
        job.has_moved();
        seen.bytes_seen += read;
        seen.bytes_checked += read;
        seen.pages += read / block;
        return;
    }
    seen.bytes_seen += chunk.range.len;
    seen.bytes_checked += read;
    seen.bytes_unreadable += missing;
    seen.pages += read / block;
    if missing > 0 {
        job.absorb(first, &Tally::broken(missing.div_ceil(block)));
        leave_out(seen, chunk.range.path.clone(), why);
    }
}
