//! Tables of a running server that lack pages which their indexes or their visibility maps know.
//!
//! A page may be all zero, or not there yet, while its content waits in the server's memory. So
//! nothing is believed of blocks that WAL has touched since the last checkpoint: what it left alone
//! is in the files as the server knows it.
//!
//! ```text
//! the pass meets zero pages or entries past the end ──► look: pages, then entries, under the WAL up to that moment
//!                                                       look again, under newer WAL that begins before the first look
//!   both find it, no record since the checkpoint touches it      damage
//!   only with what records touch                                 nobody knows before the next checkpoint
//!   not any more                                                 it was on its way
//! ```

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_cluster::wal::ReplayEffect;
use pgclinic_cluster::{
    Catalog, Cluster, Comparison, DatabaseContext, ForkFiles, MarkedBeyond, Persistence,
    file_place, read_block,
};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Fork, Oid, Page};
use pgclinic_model::document::{FileKind, Finding, NotChecked};
use pgclinic_model::{Level, Progress};
use pgclinic_scan::live::{FreshView, ViewPosition};
use pgclinic_spill::Part;

use crate::check::ForkCx;
use crate::consequences;
use crate::entries::named_blocks::NamedBlocks;
use crate::files::file_truncated::FileTruncated;
use crate::findings::Findings;
use crate::page::emptied_page::{EmptiedPage, is_emptied};
use crate::page::zeroed_page::{ZeroedPage, has_checksums, map_of};
use crate::relation_check::{Believes, RelationCheck, RelationCx};
use crate::run_state::{SuspiciousTables, Table};
use crate::walker::database_relations::DatabaseRelations;
use crate::walker::job::fork_cx;
use crate::walker::run_ledger::RunLedger;
use crate::walker::{CheckOptions, catalogs, forks_of, pass, system_identifier};

/// What is asked of a table.
const CHECKS: [&dyn RelationCheck; 3] = [&FileTruncated, &ZeroedPage, &EmptiedPage];

/// Findings by their ids.
type ById = BTreeMap<String, Finding>;

/// What is missing in a table, as one look saw it.
struct TableLosses {
    /// No record of WAL since the last checkpoint touches any of it.
    proven: ById,
    /// The same and what such records touch.
    possible: ById,
}

impl TableLosses {
    /// Tells what this look and the one before it found. True where two more are needed.
    fn stays_open(&self, before: &Self, is_settled: bool, books: &mut RunLedger) -> bool {
        let is_known = |id: &String| before.possible.contains_key(id);
        let mut in_both = self.possible.iter().filter(|(id, _)| is_known(id));
        if !is_settled {
            return in_both.next().is_some();
        }
        for (id, finding) in in_both {
            match before.proven.get(id).zip(self.proven.get(id)) {
                Some((then, now)) if then.message == now.message => {
                    books.findings.keep(now.clone());
                }
                _ => tell_open(finding, books),
            }
        }
        false
    }
}

/// Nothing where catalogs, files or the WAL since the last checkpoint could not be read.
type TableLook = Option<TableLosses>;

/// One look at all of them; a table that is gone is not among these.
pub(super) struct Losses {
    tables: BTreeMap<Table, TableLook>,
    position: ViewPosition,
}

impl SuspiciousTables {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds those of a pass whose pages are still not there.
    pub(super) fn add(&mut self, jobs: &[ForkCx<'_>], relations: &DatabaseRelations<'_>) {
        for (job, oid) in lasting_tables(jobs) {
            let mut indexes = relations.indexes_of(oid);
            let lacks = |named: &NamedBlocks| lacks_named_blocks(job, relations, named);
            let mut lacks = |index| relations.named_by(index).is_some_and(lacks);
            if indexes.any(&mut lacks) || lacks_marked_blocks(job, relations) {
                self.0.insert((job.files.home.database, oid));
            }
        }
    }

    /// Looks at them as a newer view of the cluster shows them.
    pub(super) fn look(
        &self,
        fresh: &FreshView<'_>,
        options: &CheckOptions,
        progress: &dyn Progress,
    ) -> Losses {
        let (view, names) = (fresh.cluster(), fresh.replayed_cluster());
        let mut tables = BTreeMap::new();
        if !view.may_compare(Comparison::PagesThatWalLeftAlone) {
            let unknown = self.0.iter().map(|table| (*table, None));
            tables.extend(unknown);
        } else {
            let databases: BTreeSet<Oid> = self.0.iter().map(|(database, _)| *database).collect();
            let there = |database: &Oid| *database == 0 || names.databases.contains_key(database);
            for database in databases.into_iter().filter(there) {
                for catalog in catalogs(names, &[database], options.level) {
                    self.database((view, &catalog), options, progress, &mut tables);
                }
            }
        }
        Losses {
            tables,
            position: fresh.position(),
        }
    }

    fn database(
        &self,
        (view, catalog): (&Cluster, &Catalog),
        options: &CheckOptions,
        progress: &dyn Progress,
        tables: &mut BTreeMap<Table, TableLook>,
    ) {
        let (forks, unlisted) = forks_of(view, catalog);
        // Names of rows that are lost come from the indexes of pg_class.
        let are_named = catalog.names_are_complete() || !catalog.lost_pages.is_empty();
        if !are_named || !unlisted.is_empty() {
            let own = self.0.iter().filter(|table| table.0 == catalog.database);
            tables.extend(own.map(|table| (*table, None)));
        }
        let cx = DatabaseContext {
            cluster: view,
            catalog,
            forks: &forks,
        };
        let forks = forks.iter().filter(|files| self.concerns(files, catalog));
        let jobs: Vec<ForkCx<'_>> = forks
            .map(|files| fork_cx(&cx, files, options.level))
            .collect();
        let source = view.source().as_ref();
        let sender = system_identifier(view);
        let quiet = Quiet(progress);
        // Bytes and findings of these pages were told by the pass that met them first.
        let mut told_already = RunLedger::new();
        let records = pass::run(
            &jobs,
            pass::Reading::alone(source, &quiet),
            sender,
            options,
            &options.memory.part(Part::LeafSummaries),
            &mut told_already,
        );
        let coverage = &told_already.coverage;
        let is_read = coverage.bytes_unreadable == 0 && coverage.bytes_skipped == 0;
        let relations = DatabaseRelations::new(&jobs, records);
        let budget = options.memory.part(Part::Comparisons);
        for (job, oid) in lasting_tables(&jobs) {
            let found = |believes| {
                let relation = RelationCx {
                    fork: job,
                    catalog,
                    neighbours: &relations,
                    budget: &budget,
                    spill_folder: &options.spill_folder,
                    threads: options.threads.get(),
                    believes,
                    source,
                    progress: &quiet,
                };
                findings(&relation, sender)
            };
            let possible = found(Believes::AllPages);
            let proven = if possible.is_empty() {
                ById::new()
            } else {
                found(Believes::WhatWalLeftAlone)
            };
            let own = is_read.then_some(TableLosses { proven, possible });
            tables.insert((catalog.database, oid), own);
        }
    }

    /// The table, its visibility map, or an index of it.
    fn concerns(&self, files: &ForkFiles, catalog: &Catalog) -> bool {
        let relation = catalog.by_file(files.home.tablespace, files.filenode);
        let table = relation.map(|own| own.index.as_ref().map_or(own.oid, |index| index.table));
        let is_suspicious = table.is_some_and(|oid| self.0.contains(&(files.home.database, oid)));
        is_suspicious && files.temporary.is_none()
    }

    /// Tells what both looks found, and leaves the tables that need two more: those that were out
    /// of reach, and where a checkpoint came between the looks those in which both found the same.
    /// What one did not find was on its way, as what is lost stays lost.
    pub(super) fn settle(&mut self, first: &Losses, second: &Losses, books: &mut RunLedger) {
        let is_settled = overlap(first.position, second.position);
        self.0.retain(
            |table| match (first.tables.get(table), second.tables.get(table)) {
                (Some(Some(then)), Some(Some(now))) => now.stays_open(then, is_settled, books),
                (Some(_), Some(_)) => true,
                // It is gone.
                _ => false,
            },
        );
    }

    /// Nobody could look twice between two checkpoints.
    pub(super) fn tell_unsettled(&self, books: &mut RunLedger) {
        if self.is_empty() {
            return;
        }
        let gap = NotChecked {
            what: format!("whether pages are missing that indexes or visibility maps know: {} of all tables", self.0.len()),
            why: "their catalogs, their files and all WAL since the last checkpoint could not be read twice without a checkpoint in between: check again while the server writes less, or stop it".into(),
            inherent: false,
        };
        books.stays_open(None, gap);
    }
}

/// The second look began under WAL that was there at the first: no checkpoint between them hides a
/// change of what the first read.
pub(super) fn overlap(first: ViewPosition, second: ViewPosition) -> bool {
    first.overlaps(second)
}

fn tell_open(finding: &Finding, books: &mut RunLedger) {
    let gap = NotChecked {
        what: format!("{}: {}", finding.place.path, finding.message),
        why: "the server changed these pages since its last checkpoint and may hold them in memory: check again after the \
              next one; --server URL --checkpoint asks for it"
            .into(),
        inherent: false,
    };
    books.stays_open(Some(finding.place.path.clone()), gap);
}

/// What the checks say of a table, as far as it explains the rest.
fn findings(relation: &RelationCx<'_>, system_identifier: u64) -> BTreeMap<String, Finding> {
    let mut out = Findings::of_relation();
    for check in CHECKS {
        check.check(relation, &mut out);
    }
    let drafts = out.take_drafts().into_iter();
    let roots = drafts.filter(|draft| draft.links.root).map(|mut draft| {
        draft.links.compared = true;
        consequences::complete_file(&mut draft);
        let nowhere = file_place("", FileKind::File);
        draft.finish(&nowhere, system_identifier)
    });
    roots.map(|finding| (finding.id.clone(), finding)).collect()
}

/// Tables whose pages reach their files by checkpoints, with their OIDs.
fn lasting_tables<'j, 'a>(
    jobs: &'j [ForkCx<'a>],
) -> impl Iterator<Item = (&'j ForkCx<'a>, Oid)> + use<'j, 'a> {
    let tables = jobs
        .iter()
        .filter(|job| job.fork() == Fork::Main && job.method == Some(AccessMethod::Heap));
    tables.filter_map(|job| {
        let relation = job.relation?;
        (relation.persistence == Persistence::Permanent).then_some((job, relation.oid))
    })
}

/// An entry may lead to a block that was not there or zero in the pass, and still is.
fn lacks_named_blocks(
    job: &ForkCx<'_>,
    relations: &DatabaseRelations<'_>,
    named: &NamedBlocks,
) -> bool {
    let last = named.end().checked_sub(1);
    if last.is_some_and(|last| last >= job.blocks && is_nothing(job, last)) {
        return true;
    }
    let may_name = |block: &u64| BlockNo::try_from(*block).is_ok_and(|at| named.may_name(at));
    let has_zeros = relations.zeroed_in(job).is_some_and(|zeroed| {
        let mut blocks = zeroed.blocks.iter().filter(may_name);
        zeroed.omitted > 0 || blocks.any(|block| is_nothing(job, block))
    });
    let has_emptied = || {
        relations.emptied_in(job).is_some_and(|emptied| {
            let mut blocks = emptied.blocks.iter().filter(may_name);
            blocks.any(|block| is_emptied_for_long(job, block))
        })
    };
    has_zeros || has_emptied()
}

/// The page still has no line pointer in use, and no record since the last checkpoint touches it.
fn is_emptied_for_long(job: &ForkCx<'_>, block: u64) -> bool {
    let (Some(source), Ok(block)) = (job.source, BlockNo::try_from(block)) else {
        return false;
    };
    let replay = job.cluster.and_then(Cluster::replay);
    let is_kept = replay.is_none_or(|replay| {
        replay.fate(job.file_number(), job.fork(), block) == ReplayEffect::Kept
    });
    let page = is_kept.then(|| read_block(source, job.files, job.build, block));
    let page = page.flatten();
    let page = page.as_deref().and_then(Page::parse);
    page.is_some_and(|page| !page.is_zeroed() && is_emptied(page, job.blocks))
}

/// The visibility map marks a block that was not there or zero in the pass, and still is.
fn lacks_marked_blocks(job: &ForkCx<'_>, relations: &DatabaseRelations<'_>) -> bool {
    let map = relations.beside(job, Fork::Vm);
    let compared = map.filter(|_| job.level >= Level::Structure);
    let (Some(source), Some(map)) = (job.source, compared) else {
        return false;
    };
    let pages = (map.build, has_checksums(map));
    let beyond = MarkedBeyond::of(source, map.files, pages, job.blocks, |_| true);
    if beyond.is_some_and(|marked| is_nothing(job, marked.last.into())) {
        return true;
    }
    relations.zeroed_in(job).is_some_and(|zeroed| {
        let marks = map_of(source, map);
        let is_marked =
            |block: &u64| BlockNo::try_from(*block).is_ok_and(|block| marks.of(block) != 0);
        let mut blocks = zeroed.blocks.iter().filter(is_marked);
        blocks.any(|block| is_nothing(job, block))
    })
}

/// No page is there, or one of zeros.
fn is_nothing(job: &ForkCx<'_>, block: u64) -> bool {
    let (Some(source), Ok(block)) = (job.source, BlockNo::try_from(block)) else {
        return false;
    };
    let page = read_block(source, job.files, job.build, block);
    page.is_none_or(|page| Page::parse(&page).is_some_and(Page::is_zeroed))
}

/// A second look is no progress of the run, and ends with it.
struct Quiet<'a>(&'a dyn Progress);

impl Progress for Quiet<'_> {
    fn expect(&self, _bytes: u64) {}

    fn advance(&self, _bytes: u64) {}

    fn is_interrupted(&self) -> bool {
        self.0.is_interrupted()
    }
}
