//! One pass over the main forks of a cluster, on all threads, every measure at once.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use pgclinic_cluster::unreachable::tell_relations;
use pgclinic_cluster::{
    Catalog, Cluster, DatabaseContext, ForkContext, ForkFiles, ReadGap, selected, target_of,
    unknown_storage,
};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{Fork, Oid};
use pgclinic_model::document::{
    Counters, Coverage, Level, MEASURE_SCHEMA, MeasureDocument, MeasuredDatabase, MeasuredRelation,
    NotChecked, RelationFate, Sections, Tool,
};
use pgclinic_model::{Progress, Selection};
use pgclinic_scan::{Companion, DatabaseCompanion, WorkerPool};
use pgclinic_spill::{Limit, MemoryPlan, Part};

use super::advice::{self, SeenDatabase};
use super::compression_trial::Picked;
use super::job::Job;
use super::key_order::KeyOrder;
use super::pass::Reader;
use super::server_facts::ServerFacts;
use super::toasted::Toasted;
use super::{catalogs, index_hints, key_order, large_objects, losses, pass, running};

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
    /// Who holds how much memory.
    pub memory: MemoryPlan,
    /// Long values are tried with each way to pack them, by this clock.
    pub trial_clock: Option<fn() -> std::time::Duration>,
    /// What is known of its server beside its files.
    pub server: ServerFacts,
}

/// Measures a cluster, also one whose server is at work. `elapsed_s` is left at 0: the clock is the
/// caller's.
pub fn measure_cluster(
    cluster: &Cluster,
    options: &MeasureOptions,
    progress: &dyn Progress,
) -> MeasureDocument {
    let mut document = new_document(cluster, options);
    if cluster.is_running() {
        running::measure(cluster, options, progress, &mut document)
    } else {
        tell_troubles(cluster, &mut document.coverage);
        tell_passed_over(cluster, options, &mut document.coverage);
        for database in selected::databases(&options.selection, cluster) {
            if !progress.is_interrupted() {
                let reader = (Reader::Own, progress);
                measure_database(cluster, (database, None), options, reader, &mut document);
            }
        }
    }
    finish(cluster, options, progress, document)
}

/// Measures a stopped cluster by the pages that another run reads.
pub struct MeasureCompanion<'a> {
    cluster: &'a Cluster,
    options: &'a MeasureOptions,
    progress: &'a dyn Progress,
    document: RefCell<MeasureDocument>,
    /// Databases that the other run came to.
    done: RefCell<BTreeSet<Oid>>,
}

impl<'a> MeasureCompanion<'a> {
    /// Before the other run.
    pub fn new(
        cluster: &'a Cluster,
        options: &'a MeasureOptions,
        progress: &'a dyn Progress,
    ) -> Self {
        let mut document = new_document(cluster, options);
        tell_troubles(cluster, &mut document.coverage);
        tell_passed_over(cluster, options, &mut document.coverage);
        MeasureCompanion {
            cluster,
            options,
            progress,
            document: RefCell::new(document),
            done: RefCell::default(),
        }
    }

    /// After it. What it did not come to is read now.
    pub fn finish(self) -> MeasureDocument {
        let (cluster, options, progress) = (self.cluster, self.options, self.progress);
        let (mut document, done) = (self.document.into_inner(), self.done.into_inner());
        for database in selected::databases(&options.selection, cluster) {
            if !done.contains(&database) && !progress.is_interrupted() {
                let reader = (Reader::Own, progress);
                measure_database(cluster, (database, None), options, reader, &mut document);
            }
        }
        finish(cluster, options, progress, document)
    }
}

impl DatabaseCompanion for MeasureCompanion<'_> {
    fn database(
        &self,
        database: Oid,
        catalog: Option<&Catalog>,
        read: &mut dyn FnMut(&dyn Companion),
    ) {
        let reader = (Reader::Other(read), self.progress);
        let mut document = self.document.borrow_mut();
        measure_database(
            self.cluster,
            (database, catalog),
            self.options,
            reader,
            &mut document,
        );
        self.done.borrow_mut().insert(database);
    }
}

fn finish(
    cluster: &Cluster,
    options: &MeasureOptions,
    progress: &dyn Progress,
    mut document: MeasureDocument,
) -> MeasureDocument {
    let whole = advice::of_cluster(cluster, &options.server, &document.relations);
    document.advice.splice(0..0, whole);
    pgclinic_cluster::unreachable::tell(cluster, &mut document.coverage);
    document.interrupted = progress.is_interrupted();
    assert!(
        document.coverage.is_balanced(),
        "the ledger does not balance: {:?}",
        document.coverage
    );
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
        advice: Vec::new(),
        growth: None,
        counters: counters(cluster),
        sample_percent: options.sample_percent,
        notes: Vec::new(),
        interrupted: false,
        elapsed_s: 0.0,
    }
}

/// Directories that are no databases and are passed over.
pub(super) fn tell_passed_over(
    cluster: &Cluster,
    options: &MeasureOptions,
    coverage: &mut Coverage,
) {
    let left = selected::left_behind(&options.selection, cluster);
    coverage
        .not_checked
        .extend(selected::passed_over(cluster, &left));
}

pub(super) fn tell_troubles(cluster: &Cluster, coverage: &mut Coverage) {
    losses::tell_wal(cluster, coverage);
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
    (database, catalog): (Oid, Option<&Catalog>),
    options: &MeasureOptions,
    (reader, progress): (Reader<'_>, &dyn Progress),
    document: &mut MeasureDocument,
) {
    let own;
    let catalog = if let Some(catalog) = catalog {
        catalog
    } else {
        own = cluster.catalog(database);
        &own
    };
    let (forks, troubles) = forks_of(cluster, database);
    for trouble in troubles.iter().chain(&catalog.troubles) {
        let (what, why) = (trouble.what.clone(), trouble.why.clone());
        leave_out(&mut document.coverage, what, why);
    }
    tell_relations(cluster, catalog, &troubles, &mut document.coverage);
    let view = DatabaseContext {
        cluster,
        catalog,
        forks: &forks,
    };
    losses::tell_missing(&view, options, &mut document.coverage);
    let chosen = forks.iter().filter(|files| is_measured(files));
    let chosen = chosen.filter(|files| selected::dependent(&options.selection, files, catalog));
    let mut chosen: Vec<&ForkFiles> = chosen.collect();
    let coverage = &mut document.coverage;
    let selected = chosen.len();
    chosen.retain(|files| !is_unknown(&view, files, coverage));
    skipped(selected - chosen.len(), coverage);
    let mut jobs: Vec<Job<'_>> = chosen
        .into_iter()
        .map(|files| ForkContext::new(&view, files))
        .map(|fork| Job::new(fork, catalog, options))
        .collect();
    let source = cluster.source().as_ref();
    let reader = (reader, progress);
    pass::run(source, &mut jobs, options, reader, &mut document.coverage);
    passed(&jobs, &mut document.coverage);
    let name = catalog.database_name.clone();
    let name = name.unwrap_or_else(|| database.to_string());
    losses::tell(&jobs, &name, &mut document.coverage);
    let mut measured = figures(jobs, options, progress, &mut document.coverage);
    if database != 0 && !progress.is_interrupted() {
        tell_database(&view, options, &measured, document);
    }
    document.relations.append(&mut measured);
}

/// Books relations that were left out.
pub(super) fn skipped(relations: usize, coverage: &mut Coverage) {
    coverage.book_relations(RelationFate::Skipped, relations as u64);
}

/// Books relations that a pass came to.
pub(super) fn passed(jobs: &[Job<'_>], coverage: &mut Coverage) {
    let unread = jobs.iter().filter(|job| job.gathered.is_unread).count();
    coverage.book_relations(RelationFate::Unreadable, unread as u64);
    coverage.book_relations(RelationFate::Checked, (jobs.len() - unread) as u64);
}

/// The forks in the folders of a database, and what cannot be listed.
pub(super) fn forks_of(cluster: &Cluster, database: Oid) -> (Vec<ForkFiles>, Vec<ReadGap>) {
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
    mut jobs: Vec<Job<'_>>,
    options: &MeasureOptions,
    progress: &dyn Progress,
    coverage: &mut Coverage,
) -> Vec<MeasuredRelation> {
    let keys = key_sections(&jobs, options, progress, coverage);
    keys_left_out(&jobs, coverage);
    let trials = trials(&mut jobs, options);
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
    view: &DatabaseContext<'_>,
    options: &MeasureOptions,
    measured: &[MeasuredRelation],
    document: &mut MeasureDocument,
) {
    let mut hints = index_hints::hints(view.catalog, measured);
    document.hints.append(&mut hints);
    let seen = SeenDatabase {
        view,
        measured,
        server: &options.server,
    };
    document.advice.extend(advice::of_database(&seen));
    let whole = whole_database(view, options, measured);
    document.databases.extend(whole);
}

/// What is said of a database as a whole, where all of it was asked for.
fn whole_database(
    view: &DatabaseContext<'_>,
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
    view: &DatabaseContext<'_>,
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
    coverage: &mut Coverage,
) -> Vec<Option<Sections>> {
    // What is on lease now are the places of rows, and those depend on the files alone.
    let left = options.memory.part(Part::RowPlaces).free() / options.threads.get() as u64;
    let most = options.memory.limit(Limit::KeyRanks, options.threads);
    let memory_bytes = most.min(left);
    let sections = WorkerPool::new(options.threads).each(jobs, |_, job| {
        let goes_on = !progress.is_interrupted();
        goes_on
            .then(|| key_section(job, jobs, memory_bytes))
            .flatten()
    });
    let sections = sections.into_iter().zip(jobs);
    sections
        .map(|(section, job)| {
            section.unwrap_or_else(|failure| {
                let what = format!("the order of keys of {}", job.fork.files.path(0));
                coverage.not_checked.push(failure.not_checked(what));
                None
            })
        })
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
    // Of a table that is too large for its rows to be kept, or for --memory, dead ones count too;
    // of one that was not asked for, nothing is told.
    (rows.is_some() || table.is_some_and(Job::is_too_large)).then_some(())?;
    let order = KeyOrder {
        own,
        table: rows,
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
fn trials(jobs: &mut [Job<'_>], options: &MeasureOptions) -> Vec<Vec<Option<Sections>>> {
    let picked = jobs
        .iter_mut()
        .map(|job| std::mem::take(&mut job.gathered.picked));
    let picked: Vec<Vec<Picked>> = picked.collect();
    let of_job = |(job, picked): (&Job<'_>, Vec<Picked>)| {
        let Some(clock) = options.trial_clock else {
            return Vec::new();
        };
        let picked = picked.into_iter();
        picked
            .map(|picked| picked.try_all(toasted(job, jobs), clock))
            .collect()
    };
    jobs.iter().zip(picked).map(of_job).collect()
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
