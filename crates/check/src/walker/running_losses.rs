//! Tables of a running server that lack pages which their indexes know.
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

use pgclinic_cluster::{Catalog, DatabaseContext, ForkFiles, Persistence, read_block};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Fork, Oid, Page};
use pgclinic_model::Progress;
use pgclinic_model::document::{Finding, Kind, NotChecked};
use pgclinic_scan::live::{FreshView, ViewPosition};
use pgclinic_spill::Part;

use crate::check::ForkCx;
use crate::consequences;
use crate::files::file_truncated::FileTruncated;
use crate::findings::Findings;
use crate::page::zeroed_page::ZeroedPage;
use crate::relation_check::{Believes, RelationCheck, RelationCx};
use crate::walker::database_relations::DatabaseRelations;
use crate::walker::job::fork_cx;
use crate::walker::pass_records::PassRecords;
use crate::walker::run_ledger::RunLedger;
use crate::walker::{CheckOptions, catalogs, forks_of, pass, system_identifier};

/// What is asked of a table.
const CHECKS: [&dyn RelationCheck; 2] = [&FileTruncated, &ZeroedPage];
/// Pages of a table that are read once more before it is called suspicious.
const TRIED_MAX: usize = 1000;

/// A table by its database and its OID.
type Table = (Oid, Oid);

/// Tables in which the pass over the pages met what an index contradicts.
#[derive(Default)]
pub(super) struct SuspiciousTables(BTreeSet<Table>);

/// What one look found of a table, by the finding's id.
#[derive(Default)]
pub(super) struct TableLosses {
    /// No record of WAL since the last checkpoint touches any of it.
    proven: BTreeMap<String, Finding>,
    /// The same and what such records touch.
    possible: BTreeMap<String, Finding>,
}

pub(super) type Losses = BTreeMap<Table, TableLosses>;

impl SuspiciousTables {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds those of a pass whose pages are still not there.
    pub(super) fn add(&mut self, jobs: &[ForkCx<'_>], records: PassRecords) {
        let neighbours = DatabaseRelations::new(jobs, records);
        for job in jobs.iter().filter(|job| is_lasting_table(job)) {
            let Some(oid) = job.relation.map(|own| own.oid) else {
                continue;
            };
            let contradicted = neighbours.indexes_of(oid).any(|index| {
                let named = neighbours.named_by(index);
                named.is_some_and(|named| {
                    let last = named
                        .end()
                        .checked_sub(1)
                        .filter(|last| *last >= job.blocks);
                    last.is_some_and(|last| is_nothing(job, last))
                        || zeroed(&neighbours, job).any(|block| named.may_name(block))
                })
            });
            if contradicted {
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
        let mut losses = Losses::new();
        let (view, names) = (fresh.cluster(), fresh.replayed_cluster());
        let databases: BTreeSet<Oid> = self.0.iter().map(|(database, _)| *database).collect();
        for database in databases {
            for catalog in catalogs(names, &[database], options.level) {
                let (forks, _told_already) = forks_of(view, &catalog);
                let cx = DatabaseContext {
                    cluster: view,
                    catalog: &catalog,
                    forks: &forks,
                };
                self.database(&cx, options, progress, &mut losses);
            }
        }
        losses
    }

    fn database(
        &self,
        cx: &DatabaseContext<'_>,
        options: &CheckOptions,
        progress: &dyn Progress,
        losses: &mut Losses,
    ) {
        let forks = cx
            .forks
            .iter()
            .filter(|files| self.concerns(files, cx.catalog));
        let jobs: Vec<ForkCx<'_>> = forks
            .map(|files| fork_cx(cx, files, options.level))
            .collect();
        let source = cx.cluster.source().as_ref();
        let budget = options.memory.part(Part::Comparisons);
        let summaries = options.memory.part(Part::LeafSummaries);
        // Bytes and findings of these pages were told by the pass that met them first.
        let mut told_already = RunLedger::new();
        let quiet = Quiet(progress);
        let sender = system_identifier(cx.cluster);
        let records = pass::run(
            &jobs,
            source,
            sender,
            options,
            &summaries,
            &quiet,
            &mut told_already,
        );
        let neighbours = DatabaseRelations::new(&jobs, records);
        for job in jobs.iter().filter(|job| is_lasting_table(job)) {
            let Some(oid) = job.relation.map(|own| own.oid) else {
                continue;
            };
            let found = |believes| {
                let relation = RelationCx {
                    fork: job,
                    catalog: cx.catalog,
                    neighbours: &neighbours,
                    budget: &budget,
                    spill_folder: &options.spill_folder,
                    threads: options.threads.get(),
                    believes,
                    source,
                    progress: &quiet,
                };
                findings(&relation, sender)
            };
            let own = TableLosses {
                proven: found(Believes::WhatWalLeftAlone),
                possible: found(Believes::AllPages),
            };
            losses.insert((job.files.home.database, oid), own);
        }
    }

    /// The table, its visibility map, or an index of it.
    fn concerns(&self, files: &ForkFiles, catalog: &Catalog) -> bool {
        let relation = catalog.by_file(files.home.tablespace, files.filenode);
        let table = relation.map(|own| own.index.as_ref().map_or(own.oid, |index| index.table));
        let is_suspicious = table.is_some_and(|oid| self.0.contains(&(files.home.database, oid)));
        is_suspicious && files.temporary.is_none()
    }

    /// Leaves those in which both looks found the same: what one of them did not find was on its
    /// way, as what is lost stays lost.
    pub(super) fn keep_contradicted(&mut self, first: &Losses, second: &Losses) {
        self.0.retain(|table| {
            let looks = first.get(table).zip(second.get(table));
            looks.is_some_and(|(then, now)| {
                let mut ids = now.possible.keys();
                ids.any(|id| then.possible.contains_key(id))
            })
        });
    }

    /// Nobody could look twice between two checkpoints.
    pub(super) fn tell_unsettled(&self, books: &mut RunLedger) {
        let gap = NotChecked {
            what: format!("whether {} tables lack pages that their indexes know", self.0.len()),
            why: "the server finished checkpoints between any two looks: check the tables again while it writes less".into(),
            inherent: false,
        };
        books.stays_open(None, gap);
    }
}

/// The second look began under WAL that was there at the first: no checkpoint between them hides a
/// change of what the first read.
pub(super) fn overlap(first: ViewPosition, second: ViewPosition) -> bool {
    let positions = first.wal_end.zip(second.redo);
    positions.is_some_and(|(end, redo)| redo <= end)
}

/// What both looks found counts; what both found only with pages that records of WAL touch stays
/// open.
pub(super) fn settle(first: &Losses, second: Losses, books: &mut RunLedger) {
    for (table, own) in second {
        let Some(before) = first.get(&table) else {
            continue;
        };
        let TableLosses { proven, possible } = own;
        for (id, finding) in possible {
            let was_proven = before.proven.get(&id).zip(proven.get(&id));
            match was_proven {
                Some((then, now)) if then.message == now.message => {
                    books.findings.keep(now.clone())
                }
                _ if before.possible.contains_key(&id) => tell_open(&finding, books),
                _ => {}
            }
        }
    }
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
        let nowhere = pgclinic_cluster::file_place("", Kind::File);
        draft.finish(&nowhere, system_identifier)
    });
    roots.map(|finding| (finding.id.clone(), finding)).collect()
}

/// A table whose pages reach its files by checkpoints.
fn is_lasting_table(job: &ForkCx<'_>) -> bool {
    let permanent = |own: &pgclinic_cluster::Relation| own.persistence == Persistence::Permanent;
    job.fork() == Fork::Main
        && job.method == Some(AccessMethod::Heap)
        && job.relation.is_some_and(permanent)
}

/// Blocks that were zero in the pass and are now.
fn zeroed<'n>(
    neighbours: &'n DatabaseRelations<'_>,
    job: &'n ForkCx<'_>,
) -> impl Iterator<Item = BlockNo> + use<'n> {
    let blocks = neighbours.zeroed_in(job).into_iter();
    let blocks = blocks
        .flat_map(|zeroed| zeroed.blocks.iter())
        .take(TRIED_MAX);
    blocks
        .filter(|block| is_nothing(job, *block))
        .filter_map(|block| BlockNo::try_from(block).ok())
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
