//! After the pass over the pages: the checks that compare the pages of a relation, the largest
//! first.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_cluster::{Catalog, RelKind, file_place};
use pgclinic_format::Fork;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::document::{FileKind, Finding, Level, NotChecked};
use pgclinic_model::{Progress, Severity};
use pgclinic_scan::{WorkerPool, guarded};
use pgclinic_source::Source;
use pgclinic_spill::{Budget, Part};

use crate::check::ForkCx;
use crate::consequences;
use crate::findings::Findings;
use crate::register::RELATION_CHECKS;
use crate::relation_check::{Believes, RelationCheck, RelationCx};
use crate::run_state::Owner;
use crate::walker::database_relations::DatabaseRelations;
use crate::walker::resting_tables::kept_by_recovery;
use crate::walker::run_ledger::{DamagedBlocks, RunLedger};
use crate::walker::state::owner;
use crate::walker::{CheckOptions, counted_rows, left_out};

/// One check of one relation.
struct Task<'a> {
    /// Its place among all, in the order in which they begin and in which their findings are kept.
    number: usize,
    job: usize,
    fork: &'a ForkCx<'a>,
    check: &'static dyn RelationCheck,
    believes: Believes,
}

/// What a check of a relation gave.
struct Compared {
    findings: Findings,
    /// The run was interrupted before its end.
    is_broken_off: bool,
}

impl Task<'_> {
    fn is_wide(&self) -> bool {
        self.check.is_wide(self.fork.blocks)
    }
}

/// What the comparisons of some relations are of the whole run: as much as their pass was where all
/// that lies ahead was foreseen, so that the share which is done never falls and the bar is full at
/// the end; else the bytes that they read.
struct Share<'a> {
    progress: &'a dyn Progress,
    foreseen: Option<u64>,
}

impl<'a> Share<'a> {
    fn after_pass_of(jobs: &[ForkCx<'_>], progress: &'a dyn Progress, books: &RunLedger) -> Self {
        let bytes = || jobs.iter().map(|job| job.files.bytes()).sum();
        Share {
            progress,
            foreseen: books.is_foreseen.then(bytes),
        }
    }

    fn begins(&self, bytes: u64) {
        match self.foreseen {
            None => self.progress.expect(bytes),
            Some(all) if bytes == 0 => self.progress.advance(all),
            Some(_) => {}
        }
    }

    /// So many of all bytes were compared.
    fn advance(&self, bytes: u64, of: u64) {
        let share = match self.foreseen {
            Some(all) => {
                let share = u128::from(bytes) * u128::from(all) / u128::from(of.max(1));
                u64::try_from(share).unwrap_or(all)
            }
            None => bytes,
        };
        self.progress.advance(share);
    }
}

/// Runs every check that fits, and keeps what it finds: those that use all threads one after the
/// other, then one of the others a thread.
pub(crate) fn run(
    (neighbours, catalog): (&DatabaseRelations<'_>, &Catalog),
    source: &dyn Source,
    system_identifier: u64,
    options: &CheckOptions,
    budget: &Budget,
    progress: &dyn Progress,
    books: &mut RunLedger,
) {
    let jobs = neighbours.forks();
    let share = Share::after_pass_of(jobs, progress, books);
    left_out::tell(jobs, catalog, options, books);
    if options.selection.blocks.is_some() {
        return;
    }
    tell_unfinished(jobs, options, books);
    tell_partitions(catalog, options, books);
    let mut tasks = tasks(jobs, options);
    let kept = kept_by_recovery(jobs, catalog);
    for task in tasks.iter_mut().filter(|task| kept.contains(&task.job)) {
        task.believes = Believes::WhatRestsWhole;
    }
    tasks.retain(|task| neighbours.is_in_reach(task.job));
    let bytes: u64 = tasks.iter().map(bytes_of).sum();
    share.begins(bytes);
    let one = |task: &Task<'_>, threads: usize| {
        let mut findings = Findings::of_relation();
        let relation = RelationCx {
            fork: task.fork,
            catalog,
            neighbours,
            budget,
            spill_folder: &options.spill_folder,
            threads,
            believes: task.believes,
            source,
            progress,
        };
        if !progress.is_interrupted() {
            task.check.check(&relation, &mut findings);
        }
        share.advance(bytes_of(task), bytes);
        Compared {
            findings,
            is_broken_off: progress.is_interrupted(),
        }
    };
    let (wide, narrow): (Vec<Task<'_>>, Vec<Task<'_>>) = tasks.into_iter().partition(Task::is_wide);
    let all_threads = options.threads.get();
    let mut compared: Vec<_> = wide
        .iter()
        .map(|task| guarded(|| one(task, all_threads)))
        .collect();
    let pool = WorkerPool::new(options.threads);
    compared.extend(pool.each(&narrow, |_, task| one(task, 1)));
    let tasks = wide.iter().chain(&narrow);
    let mut compared: Vec<_> = tasks.zip(compared).collect();
    compared.sort_by_key(|(task, _)| task.number);
    // Relations whose comparisons did not come to their end.
    let mut broken_off = BTreeSet::new();
    for (task, compared) in &compared {
        match compared {
            Ok(own) if !own.is_broken_off => {}
            _ => drop(broken_off.insert(task.job)),
        }
    }
    book_broken_off(jobs, &broken_off, books);
    for (task, compared) in compared {
        let path = task.fork.files.path(0);
        match compared {
            Ok(own) => keep(task, own.findings, system_identifier, books),
            Err(failure) => {
                let what = format!("the comparison of {path}");
                books.stays_open(Some(path), failure.not_checked(what));
            }
        }
    }
    if let Some(fork) = jobs.first() {
        let any = RelationCx {
            fork,
            catalog,
            neighbours,
            budget,
            spill_folder: &options.spill_folder,
            threads: 1,
            believes: Believes::WhatRests,
            source,
            progress,
        };
        counted_rows::fill(&any, books);
    }
}

/// Tables with an index or a sequence whose pages seem not to hang together. A server that writes
/// meanwhile makes some of them seem so, and one that holds pages in memory: those count only when
/// they are found again after a checkpoint.
pub(super) fn disconnected(
    (neighbours, catalog): (&DatabaseRelations<'_>, &Catalog),
    options: &CheckOptions,
    progress: &dyn Progress,
) -> BTreeSet<Owner> {
    let mut tasks = tasks(neighbours.forks(), options);
    tasks.retain(|task| {
        task.check.method() != AccessMethod::Heap && neighbours.is_in_reach(task.job)
    });
    let budget = options.memory.part(Part::Comparisons);
    let is_odd = |task: &Task<'_>| {
        let relation = RelationCx {
            fork: task.fork,
            catalog,
            neighbours,
            budget: &budget,
            spill_folder: &options.spill_folder,
            threads: 1,
            believes: Believes::WhatRestsWhole,
            source: task.fork.source?,
            progress,
        };
        let mut found = Findings::of_relation();
        task.check.check(&relation, &mut found);
        let mut drafts = found.take_drafts().into_iter();
        let is_odd = drafts.any(|draft| draft.severity != Severity::Note);
        is_odd.then(|| owner(task.fork, catalog))
    };
    let pool = WorkerPool::new(options.threads);
    let found = pool.each(&tasks, |_, task| is_odd(task));
    // One on which our own code fails is looked at again, and its failure reported there.
    let owners = tasks
        .iter()
        .zip(found)
        .filter_map(|(task, found)| found.unwrap_or_else(|_| Some(owner(task.fork, catalog))));
    owners.collect()
}

/// The pages of these relations were read, and what the level promises of them was not done.
fn book_broken_off(jobs: &[ForkCx<'_>], broken_off: &BTreeSet<usize>, books: &mut RunLedger) {
    let forks = broken_off.iter().filter_map(|job| jobs.get(*job));
    forks.for_each(|fork| books.half_checked(fork.files.bytes()));
}

/// The largest first, so that no thread ends with a large one alone.
fn tasks<'a>(jobs: &'a [ForkCx<'a>], options: &CheckOptions) -> Vec<Task<'a>> {
    let mut tasks = Vec::new();
    for (job, fork) in jobs.iter().enumerate() {
        let fits = |check: &&&'static dyn RelationCheck| {
            fork.fork() == Fork::Main
                && fork.relation.is_some()
                && !is_unfinished(fork)
                && check.level() <= options.level
                && Some(check.method()) == fork.method
        };
        let checks = RELATION_CHECKS.iter().filter(fits);
        tasks.extend(checks.map(|check| Task {
            number: 0,
            job,
            fork,
            check: *check,
            believes: Believes::WhatRests,
        }));
    }
    tasks.sort_by_key(|task| (std::cmp::Reverse(task.fork.blocks), task.job));
    for (number, task) in tasks.iter_mut().enumerate() {
        task.number = number;
    }
    tasks
}

/// An index whose building broke off: nobody looks into it, and its pages need not hang together.
fn is_unfinished(fork: &ForkCx<'_>) -> bool {
    let index = fork.relation.and_then(|relation| relation.index.as_ref());
    fork.fork() == Fork::Main && index.is_some_and(|index| !index.ready)
}

fn tell_unfinished(jobs: &[ForkCx<'_>], options: &CheckOptions, books: &mut RunLedger) {
    let unfinished = jobs.iter().filter(|fork| is_unfinished(fork));
    let names = unfinished.filter_map(|fork| fork.relation);
    for relation in names.filter(|_| options.level >= Level::Structure) {
        let why = "its building did not come to its end, and the server does not use it";
        books.not_checked(NotChecked {
            what: format!(
                "how the pages of {} hang together",
                relation.qualified_name()
            ),
            why: why.into(),
            inherent: true,
        });
    }
}

/// Rows that stand in another partition than their key belongs to are seen by nobody here.
fn tell_partitions(catalog: &Catalog, options: &CheckOptions, books: &mut RunLedger) {
    let mut relations = catalog.relations.values();
    let has_partitions = relations.any(|own| own.kind == RelKind::PartitionedTable);
    if has_partitions && options.level >= Level::Full {
        let database = catalog.database_name.as_deref().unwrap_or("a database");
        books.not_checked(NotChecked {
            what: format!(
                "rows of partitions in {database} against the bounds of their partitions"
            ),
            why: "the expressions of partition bounds are not computed here".into(),
            inherent: true,
        });
    }
}

fn bytes_of(task: &Task<'_>) -> u64 {
    task.fork
        .blocks
        .saturating_mul(u64::from(task.fork.build.block_size))
}

fn keep(task: &Task<'_>, mut findings: Findings, system_identifier: u64, books: &mut RunLedger) {
    let recovering = task.fork.replay_is_due() && task.believes == Believes::WhatRests;
    let partial = task
        .fork
        .cluster
        .is_some_and(pgclinic_cluster::Cluster::is_partial);
    for mut draft in findings.take_drafts() {
        draft.links.compared = true;
        if partial {
            consequences::leave_to_the_whole(&mut draft);
        } else if recovering && !draft.links.root {
            // Those that found out what became of a page or a file have asked the WAL.
            consequences::leave_to_recovery(&mut draft);
        }
        consequences::complete_file(&mut draft);
        let nowhere = file_place("", FileKind::File);
        let finding = draft.finish(&nowhere, system_identifier);
        book_damage(task, &finding, books);
        books.findings.keep(finding);
    }
    for (draft, more) in findings.take_surplus() {
        let like = draft.finish(&file_place("", FileKind::File), system_identifier);
        books.findings.count(&like, more);
    }
    for entry in findings.not_checked {
        if entry.inherent {
            books.not_checked(entry)
        } else {
            books.stays_open(Some(task.fork.files.path(0)), entry)
        }
    }
}

/// A block that only a comparison found is damaged all the same.
fn book_damage(task: &Task<'_>, finding: &Finding, books: &mut RunLedger) {
    let own = finding.place.filenode == Some(task.fork.files.filenode);
    let (Some(block), true, Severity::Damage) = (finding.place.block, own, finding.severity) else {
        return;
    };
    let damaged: &mut BTreeMap<usize, DamagedBlocks> = &mut books.damaged;
    damaged.entry(task.job).or_default().add(u64::from(block));
}
