//! One pass over the files: every page once, on all threads, handed to every check that asked.
//!
//! Databases come one after the other, so that one database's catalogs are in memory at a time.
//! Within one, the forks are cut into chunks that threads take in order; what they find does not
//! depend on who took which.

mod backup_sums;
mod chain_links;
mod contradicted_status;
mod counted_rows;
pub(crate) mod database_relations;
mod document;
mod expected;
mod half_dropped;
mod job;
mod known;
mod left_out;
mod missing_wal;
mod owners;
mod page_checker;
mod partial;
mod pass;
pub(crate) mod pass_records;
#[cfg(test)]
mod planted;
mod recheck;
mod recovered;
mod relations;
mod resting_tables;
mod root_causes;
mod run_ledger;
mod running;
mod running_losses;
mod since;
mod state;
mod suspects;
mod vouched;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use pgclinic_cluster::unreachable::{OutOfReach, tell_files, tell_relations};
use pgclinic_cluster::wal::ReplaySpace;
use pgclinic_cluster::{
    Catalog, Cluster, Column, DatabaseContext, DatabaseDirectory, ForkFiles, ReadGap, Relation,
    file_place, selected,
};
use pgclinic_format::{ColumnLayout, Fork};
use pgclinic_model::document::{CheckDocument, FileKind, Level, NotChecked, Place};
use pgclinic_model::{Progress, Rule, Selection};
use pgclinic_scan::{Companion, DatabaseCompanion, Panicked, guarded};
use pgclinic_spill::{MemoryPlan, Part};

use crate::check::ForkCx;
use crate::findings::Findings;
use crate::register::{CLUSTER_CHECKS, DATABASE_CHECKS};
use crate::walker::database_relations::DatabaseRelations;

pub use job::fork_cx;
pub use page_checker::{check_page, is_asked};
pub use partial::account_for_remains;
pub use pass::check_file;
pub use root_causes::is_expected;
pub use running::check_running;
pub use since::Since;
pub use state::{ResumableRun, StateKeeper};

use job::jobs_of;
pub(crate) use page_checker::{PageChecker, PageOutcome, ThreadFindings};
#[cfg(test)]
pub(crate) use planted::{empty_page, page_that_asks};
use recovered::Clusters;
pub(crate) use run_ledger::DamagedBlocks;
use run_ledger::RunLedger;

/// What a run is asked to do.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// How deep.
    pub level: Level,
    /// Threads that read and look.
    pub threads: NonZeroUsize,
    /// Damaged pages kept as evidence.
    pub evidence: usize,
    /// What part of the cluster.
    pub selection: Selection,
    /// How the person named the target.
    pub spec: String,
    /// Who holds how much memory; what does not fit is sorted on disk.
    pub memory: MemoryPlan,
    /// The folder for what does not fit in memory; it lies in no cluster.
    pub spill_folder: PathBuf,
    /// Only pages that changed since another run.
    pub since: Option<Since>,
}

impl CheckOptions {
    /// What a recovery that only looks for names may take.
    pub(crate) fn names_space(&self) -> ReplaySpace<'_> {
        ReplaySpace {
            memory: self.memory.part(Part::ReplayedNames),
            spill_folder: Some(&self.spill_folder),
        }
    }
}

/// Checks a cluster. `elapsed_s` is left at 0: the clock is the caller's.
pub fn check_cluster(
    cluster: &Cluster,
    options: &CheckOptions,
    progress: &dyn Progress,
) -> CheckDocument {
    check_cluster_on(
        ResumableRun::new(cluster, options, None),
        cluster,
        options,
        progress,
    )
}

/// The same from where the course begins, with a state of it kept from time to time.
pub fn check_cluster_on(
    course: ResumableRun<'_>,
    cluster: &Cluster,
    options: &CheckOptions,
    progress: &dyn Progress,
) -> CheckDocument {
    check_cluster_with(course, cluster, options, progress, None)
}

/// The same, and hands every page to a companion as well.
pub fn check_cluster_with(
    mut course: ResumableRun<'_>,
    cluster: &Cluster,
    options: &CheckOptions,
    progress: &dyn Progress,
    companion: Option<&dyn DatabaseCompanion>,
) -> CheckDocument {
    let mut books = course.books();
    // What was made since the last checkpoint has its names and columns in the WAL.
    let replayed = if cluster.is_partial() {
        None
    } else {
        cluster.replayed_catalogs(&options.names_space())
    };
    let names = replayed.as_ref().map_or(cluster, |(after, _)| after);
    let clusters = Clusters {
        cluster,
        recovered: Some(names).filter(|after| after.recovered().is_some()),
    };
    let left_behind = selected::left_behind(&options.selection, names);
    if !course.is_whole_done() {
        books.troubles(&cluster.troubles);
        partial::tell(cluster, &mut books);
        half_dropped::tell(cluster, &half_dropped::all(cluster), &mut books);
        for gap in selected::passed_over(names, &left_behind) {
            books.not_checked(gap);
        }
        if options.selection.is_everything() {
            check_whole(clusters, options, &mut books);
        }
        course.whole_is_done(&books);
    }
    let mut databases = selected::databases(&options.selection, cluster);
    databases.retain(|database| !left_behind.contains(database) && !course.is_done(*database));
    let mut left = expected::bytes(cluster, options, &databases);
    progress.expect(left.values().sum());
    books.is_foreseen = !left.is_empty();
    for some in databases.chunks(catalogs_at_once(options)) {
        for catalog in catalogs(names, some, options.level) {
            if progress.is_interrupted() {
                continue;
            }
            let database = catalog.database;
            left.remove(&database);
            let mut check = |companion: Option<&dyn Companion>| {
                check_database(
                    clusters,
                    &catalog,
                    options,
                    (progress, companion),
                    &mut course,
                    &mut books,
                );
            };
            match companion {
                None => check(None),
                Some(companion) => {
                    let is_plain = clusters.recovered.is_none() && options.level > Level::Pages;
                    let catalog = Some(&catalog).filter(|_| is_plain);
                    companion.database(database, catalog, &mut |pages| check(Some(pages)));
                }
            }
        }
    }
    left.values().for_each(|bytes| books.skip(*bytes));
    backup_sums::compare(cluster, options, progress, &mut books);
    chain_links::compare(cluster, options, progress, &mut books);
    carry(cluster, options, &mut books);
    books.leave_unsettled(cluster, options.level);
    books.interrupted = progress.is_interrupted();
    if !books.interrupted {
        course.is_complete(&books);
    }
    if books.interrupted {
        let what = "what was not reached when the run was interrupted";
        books.not_checked(NotChecked {
            what: what.into(),
            why: "somebody stopped it".into(),
            inherent: false,
        });
    }
    document::write(cluster, options, books)
}

/// Tells what another run found and this one did not look for.
fn carry(cluster: &Cluster, options: &CheckOptions, books: &mut RunLedger) {
    if let Some(since) = &options.since {
        since.known().carry(cluster, options.level, books);
    }
}

pub(crate) fn system_identifier(cluster: &Cluster) -> u64 {
    cluster
        .control
        .trusted()
        .map_or(0, |control| control.system_identifier)
}

fn check_whole(clusters: Clusters<'_>, options: &CheckOptions, books: &mut RunLedger) {
    let cluster = clusters.cluster;
    let mut findings = Findings::default();
    for check in CLUSTER_CHECKS
        .iter()
        .filter(|check| check.level() <= options.level)
    {
        let known = findings.drafts.len();
        let done = guarded(|| check.check(cluster, &mut findings));
        keep_failure(done, check.rules(), &mut findings);
        if check.asks_recovered() {
            clusters.ask_again(known, &mut findings, |after, out| check.check(after, out));
        }
    }
    keep_drafts(cluster, &mut findings, books);
    for path in ["global/pg_control", "global/pg_filenode.map", "PG_VERSION"] {
        books.file(cluster, path);
    }
    books.status_files(cluster);
    books.wal(cluster, options.level);
}

/// A failure of ours in a check of files is an entry of the report, and the other checks go on.
fn keep_failure(done: Result<(), Panicked>, rules: &[&'static Rule], findings: &mut Findings) {
    if let Err(failure) = done {
        let names = rules.iter().map(|rule| rule.name);
        let names: Vec<&str> = names.collect();
        let entry = failure.not_checked(format!("the check for {}", names.join(", ")));
        findings.not_checked.push(entry);
    }
}

/// Keeps drafts that carry their own places; of a cluster whose server is at work, until they are
/// found again.
fn keep_drafts(cluster: &Cluster, findings: &mut Findings, books: &mut RunLedger) {
    for entry in std::mem::take(&mut findings.not_checked) {
        books.not_checked(entry);
    }
    for mut draft in findings.take_drafts() {
        crate::consequences::complete_file(&mut draft);
        partial::forgive(cluster, &mut draft);
        let nowhere = file_place("", FileKind::File);
        let finding = draft.finish(&nowhere, system_identifier(cluster));
        if cluster.is_running() {
            drop(books.held.insert(finding.id.clone(), finding))
        } else {
            books.findings.keep(finding)
        }
    }
}

/// Names alone are small, so that all threads may read some.
fn catalogs_at_once(options: &CheckOptions) -> usize {
    match options.level {
        Level::Pages => options.threads.get(),
        Level::Structure | Level::Full => 1,
    }
}

/// The catalogs of these databases, each read by a thread.
fn catalogs(cluster: &Cluster, databases: &[u32], level: Level) -> Vec<Catalog> {
    let read = |database: u32| match level {
        Level::Pages => cluster.catalog_names(database),
        Level::Structure | Level::Full => cluster.catalog(database),
    };
    let Some((last, others)) = databases.split_last() else {
        return Vec::new();
    };
    std::thread::scope(|scope| {
        let others = others
            .iter()
            .map(|database| scope.spawn(|| read(*database)));
        let others: Vec<_> = others.collect();
        let last = read(*last);
        let others = others
            .into_iter()
            .map(|other| other.join().expect("a reader of catalogs does not panic"));
        others.chain([last]).collect()
    })
}

fn check_database(
    clusters: Clusters<'_>,
    catalog: &Catalog,
    options: &CheckOptions,
    (progress, companion): (&dyn Progress, Option<&dyn Companion>),
    course: &mut ResumableRun<'_>,
    books: &mut RunLedger,
) {
    let cluster = clusters.cluster;
    let reading = pass::Reading {
        source: cluster.source().as_ref(),
        progress,
        companion,
    };
    // What the run told that began with this database is told to nobody.
    let mut told_before = RunLedger::new();
    let is_begun = course.is_begun(catalog.database);
    let first = if is_begun {
        &mut told_before
    } else {
        &mut *books
    };
    if !half_dropped::is_one(cluster, catalog.database) {
        first.troubles(&catalog.troubles);
    }
    let (forks, troubles) = forks_of(cluster, catalog);
    first.unlisted(&troubles);
    tell_relations(cluster, catalog, &troubles, &mut first.coverage);
    if options.selection.is_everything() {
        tell_files(cluster, catalog, &forks, &mut first.coverage);
    }
    let view = DatabaseContext {
        cluster,
        catalog,
        forks: &forks,
    };
    check_against_files(clusters, &view, options, first);
    let jobs = jobs_of(&view, options, first);
    if is_begun {
        // Files may have gone since.
        books.findings.keep_unknown(told_before.findings);
    } else {
        course.round_is_done(catalog, &[], books);
    }
    for jobs in course.rounds(catalog, jobs) {
        if progress.is_interrupted() {
            books.not_reached(&jobs);
            continue;
        }
        check_relations(catalog, &jobs, cluster, options, reading, books);
        if !progress.is_interrupted() {
            course.round_is_done(catalog, &jobs, books);
        }
    }
    if progress.is_interrupted() {
        return;
    }
    course.database_is_done(catalog.database, books);
}

fn forks_of(cluster: &Cluster, catalog: &Catalog) -> (Vec<ForkFiles>, Vec<ReadGap>) {
    let (mut forks, mut troubles) = (Vec::new(), Vec::new());
    for home in homes_of(cluster, catalog) {
        match cluster.files(home) {
            Ok(mut files) => forks.append(&mut files),
            Err(trouble) => troubles.push(trouble),
        }
    }
    (forks, troubles)
}

/// Without those of relations whose storage is not known here: their lengths and names mean
/// nothing. Nothing where all are known.
fn known_forks(catalog: &Catalog, forks: &[ForkFiles]) -> Option<Vec<ForkFiles>> {
    let is_unknown = |files: &&ForkFiles| {
        let relation = catalog.by_file(files.home.tablespace, files.filenode);
        relation.is_some_and(|own| own.unknown_storage().is_some())
    };
    forks.iter().any(|files| is_unknown(&files)).then(|| {
        let known = forks.iter().filter(|files| !is_unknown(files));
        known.cloned().collect()
    })
}

fn homes_of<'a>(
    cluster: &'a Cluster,
    catalog: &Catalog,
) -> impl Iterator<Item = &'a DatabaseDirectory> {
    let database = catalog.database;
    let homes = cluster.homes.iter();
    homes.filter(move |home| home.database == database)
}

/// The checks of a database's catalogs against its files, and its small files.
fn check_against_files(
    clusters: Clusters<'_>,
    view: &DatabaseContext<'_>,
    options: &CheckOptions,
    books: &mut RunLedger,
) {
    let (cluster, catalog) = (view.cluster, view.catalog);
    let known = known_forks(catalog, view.forks);
    let view = &DatabaseContext {
        forks: known.as_deref().unwrap_or(view.forks),
        ..*view
    };
    let mut findings = Findings::default();
    for check in DATABASE_CHECKS
        .iter()
        .filter(|check| check.level() <= options.level)
    {
        let known = findings.drafts.len();
        let done = guarded(|| check.check(view, &mut findings));
        keep_failure(done, check.rules(), &mut findings);
        if check.asks_recovered() {
            clusters.ask_again(known, &mut findings, |after, out| {
                let (forks, _told_already) = forks_of(after, catalog);
                let known = known_forks(catalog, &forks);
                let view = DatabaseContext {
                    cluster: after,
                    catalog,
                    forks: known.as_deref().unwrap_or(&forks),
                };
                check.check(&view, out);
            });
        }
    }
    let selected = |place: &Place| selected::dependent_place(&options.selection, place, catalog);
    findings
        .drafts
        .retain(|draft| draft.place.as_ref().is_none_or(selected));
    keep_drafts(cluster, &mut findings, books);
    vouched::tell_unwitnessed(view, options, books);
    if catalog.database != 0 && options.selection.is_everything() {
        for home in homes_of(cluster, catalog) {
            books.small_files(cluster, &home.folder);
        }
    }
}

/// The pages of these forks, then each relation as a whole.
fn check_relations(
    catalog: &Catalog,
    jobs: &[ForkCx<'_>],
    cluster: &Cluster,
    options: &CheckOptions,
    reading: pass::Reading<'_>,
    books: &mut RunLedger,
) {
    let budget = options.memory.part(Part::Comparisons);
    let _catalog = budget.take(bytes_of(catalog));
    if !books.is_foreseen {
        reading.progress.expect(pass::bytes(jobs, books));
    }
    let records = pass::run(
        jobs,
        reading,
        system_identifier(cluster),
        options,
        &options.memory.part(Part::LeafSummaries),
        books,
    );
    books.passed(jobs.iter());
    let mut unvouched = BTreeSet::new();
    if options.since.is_none() {
        let neighbours = DatabaseRelations::new(jobs, records).without(&OutOfReach::of(cluster));
        relations::run(
            (&neighbours, catalog),
            reading.source,
            system_identifier(cluster),
            options,
            &budget,
            reading.progress,
            books,
        );
        if options.level >= Level::Structure {
            let lost_maps = vouched::lost_maps(&neighbours);
            vouched::count(&neighbours, &lost_maps, &mut books.coverage);
            unvouched = vouched::without_voucher(&neighbours, &lost_maps);
            vouched::leave_open((&neighbours, catalog), &unvouched, options, books);
        }
    }
    books.settle_damage(jobs);
    owners::name(catalog, jobs, &unvouched, options, books);
    let main = jobs.iter().filter(|job| job.fork() == Fork::Main);
    books.main_bytes += main
        .map(|job| job.blocks * u64::from(job.build.block_size))
        .sum::<u64>();
}

/// About how many bytes of memory the names and columns of a database take.
fn bytes_of(catalog: &Catalog) -> u64 {
    // A name, and the tables in which a relation is found again.
    const BESIDE: usize = 128;
    let of_one = |relation: &Relation| {
        let columns = relation.columns.as_ref().map_or(0, Vec::len);
        let layouts = relation.layouts.as_ref().map_or(0, Vec::len);
        let columns = columns * (size_of::<Column>() + BESIDE / 4);
        size_of::<Relation>() + BESIDE + columns + layouts * size_of::<ColumnLayout>()
    };
    let relations = catalog.relations.values();
    relations.map(|relation| of_one(relation) as u64).sum()
}

/// What a database check or the page pass could not do for want of catalogs.
fn not_checked(trouble: &ReadGap) -> NotChecked {
    NotChecked {
        what: trouble.what.clone(),
        why: trouble.why.clone(),
        inherent: false,
    }
}
