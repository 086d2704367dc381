//! Checks that compare the pages of one relation with each other, and with its indexes or its
//! table.

use std::path::Path;

use pgclinic_cluster::wal::ReplayEffect;
use pgclinic_cluster::{Catalog, Cluster, Comparison, fork_place};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Oid, Page};
use pgclinic_model::document::{FileKind, Level, NotChecked, Place};
use pgclinic_model::{Progress, Rule};
use pgclinic_scan::PageReader;
use pgclinic_source::Source;
use pgclinic_spill::Budget;

use crate::btree::AllLeafSummaries;
use crate::check::ForkCx;
use crate::findings::{Draft, Findings};
use crate::walker::database_relations::DatabaseRelations;

/// A check that compares the pages of one relation's main fork with each other, or a table with its
/// indexes. It runs after the pass over the pages, one relation a thread.
pub trait RelationCheck: Sync {
    /// What it can say.
    fn rules(&self) -> &'static [&'static Rule];
    /// The lowest level at which it runs.
    fn level(&self) -> Level;
    /// Whose relations it is handed; `Heap` is every table, TOAST relation and materialised view.
    fn method(&self) -> AccessMethod;
    /// It uses all threads on a relation of so many blocks: it runs alone then.
    fn is_wide(&self, _blocks: u64) -> bool {
        false
    }
    /// Looks at the relation as a whole.
    fn check(&self, relation: &RelationCx<'_>, out: &mut Findings);
}

/// Which pages of a cluster that needs recovery, or whose server runs, a check believes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Believes {
    /// None while a server runs; of a crashed cluster those that recovery leaves alone.
    WhatRests,
    /// Also while a server runs: those that no record since the last checkpoint touches.
    WhatWalLeftAlone,
    /// Those of relations to which no such record leads at all: they agree with each other.
    WhatRestsWhole,
    /// All but those that recovery begins as empty pages: what is found then is a question.
    AllPages,
}

/// One relation, its neighbours, and how to read them.
pub struct RelationCx<'a> {
    /// Its main fork.
    pub fork: &'a ForkCx<'a>,
    /// Its database's catalogs.
    pub catalog: &'a Catalog,
    /// The relations of its database that this run looks at.
    pub neighbours: &'a DatabaseRelations<'a>,
    /// Memory that may be used.
    pub budget: &'a Budget,
    /// Where what does not fit in memory is sorted.
    pub spill_folder: &'a Path,
    /// Threads that this check may use.
    pub threads: usize,
    pub(crate) believes: Believes,
    pub(crate) source: &'a dyn Source,
    pub(crate) progress: &'a dyn Progress,
}

impl<'a> RelationCx<'a> {
    /// The same of another relation of the database.
    pub fn of(&self, fork: &'a ForkCx<'a>) -> RelationCx<'a> {
        RelationCx {
            fork,
            catalog: self.catalog,
            neighbours: self.neighbours,
            budget: self.budget,
            spill_folder: self.spill_folder,
            threads: self.threads,
            believes: self.believes,
            source: self.source,
            progress: self.progress,
        }
    }

    /// Reads the relation's own pages.
    pub fn pages(&self) -> PageReader<'a> {
        PageReader::new(self.source, self.fork)
    }

    /// Reads the pages of another fork.
    pub fn pages_of(&self, fork: &'a ForkCx<'a>) -> PageReader<'a> {
        PageReader::new(self.source, fork)
    }

    /// The main fork of another relation of the database, if this run looks at it.
    pub fn main_fork_of(&self, relation: Oid) -> Option<&'a ForkCx<'a>> {
        self.neighbours.main_fork_of(relation)
    }

    /// The main forks of the table's indexes, in order of their OIDs.
    pub fn indexes(&self) -> Vec<&'a ForkCx<'a>> {
        let table = self.fork.relation.map(|relation| relation.oid);
        let found = table.map(|table| self.neighbours.indexes_of(table));
        found.into_iter().flatten().collect()
    }

    /// What the pass over the pages kept of the relation's leaves.
    pub(crate) fn faces(&self) -> Option<&'a AllLeafSummaries> {
        self.neighbours.faces_of(self.fork)
    }

    /// The cluster was shut down in good order, and all of it is there, so that pages agree with
    /// each other.
    pub fn settled(&self) -> bool {
        let what = match self.believes {
            Believes::WhatRestsWhole => Comparison::PagesThatWalLeftAlone,
            _ => Comparison::ForksOfRelation,
        };
        let compares = |cluster: &Cluster| cluster.may_compare(what);
        self.fork.cluster.is_some_and(compares)
    }

    /// The same, or recovery is due and all of its WAL is there, so that it is known which pages it
    /// leaves alone.
    pub(crate) fn settles(&self) -> bool {
        let what = match self.believes {
            Believes::WhatRests => Comparison::ForksThatRecoveryKeeps,
            Believes::WhatWalLeftAlone | Believes::WhatRestsWhole | Believes::AllPages => {
                Comparison::PagesThatWalLeftAlone
            }
        };
        let compares = |cluster: &Cluster| cluster.may_compare(what);
        self.fork.cluster.is_some_and(compares)
    }

    /// Recovery, if it is due, leaves this block of a fork of the database as it is: so it was at
    /// the last checkpoint, when all changed pages reached the disk.
    pub(crate) fn is_lasting(&self, fork: &ForkCx<'_>, block: BlockNo) -> bool {
        if !fork.replay_is_due() {
            return true;
        }
        let replay = fork.cluster.and_then(Cluster::replay);
        let file = fork.file_number();
        replay.is_some_and(|replay| {
            !replay.creates(file) && replay.fate(file, fork.fork(), block) == ReplayEffect::Kept
        })
    }

    /// An entry on this page of an index may be asked: of before a recovery that changes the page
    /// where its checksum tells that it is not torn. What it leads to was there when it was
    /// written, and no record since the checkpoint took it away from a block that none touches.
    pub(crate) fn believes_entries_of(
        &self,
        index: &ForkCx<'_>,
        (page, block): (Page<'_>, BlockNo),
    ) -> bool {
        let is_whole = || {
            let cluster = index.cluster.filter(|cluster| !cluster.is_running());
            cluster.is_some_and(|cluster| {
                let has_checksums = cluster.checksums() == Some(true);
                let keeps = |fork: &ForkCx<'_>| {
                    let replay = cluster.replay();
                    replay.is_some_and(|replay| replay.keeps_length(fork.file_number()))
                };
                let lasts = has_checksums && keeps(index) && keeps(self.fork);
                lasts && cluster.page_is_sound(page, block)
            })
        };
        self.believes == Believes::AllPages || self.is_lasting(index, block) || is_whole()
    }

    /// Of this block of a table its file tells what the server knows.
    pub(crate) fn believes_absence_of(&self, table: &ForkCx<'_>, block: BlockNo) -> bool {
        let is_read = || {
            let replay = table.cluster.and_then(Cluster::replay);
            let file = table.file_number();
            replay.is_some_and(|replay| {
                let fate = replay.fate(file, table.fork(), block);
                let is_read = matches!(fate, ReplayEffect::Read | ReplayEffect::Unknown);
                let had_content = is_read || replay.had_content(file, table.fork(), block);
                // VACUUM cuts the file at once: entries that lead behind its end stay on the disk
                // for as long as the cleaned index pages wait in memory.
                let may_lack = replay.may_lack(file, block, table.blocks);
                had_content && !may_lack && !replay.creates(file)
            })
        };
        self.is_lasting(table, block) || (self.believes == Believes::AllPages && is_read())
    }

    /// A draft about a block of this fork.
    pub fn draft(&self, rule: &'static Rule, block: BlockNo, message: impl Into<String>) -> Draft {
        draft_at(self.fork, rule, Some(block), message)
    }

    /// A draft about the relation as a whole.
    pub fn draft_of_relation(&self, rule: &'static Rule, message: impl Into<String>) -> Draft {
        draft_at(self.fork, rule, None, message)
    }

    /// Tells once that something of this relation was not looked at; `inherent` when no reader of
    /// files can decide it.
    pub fn not_checked(&self, out: &mut Findings, what: &str, why: &str, inherent: bool) {
        let name = self
            .fork
            .relation
            .map_or_else(|| self.fork.files.path(0), |own| own.qualified_name());
        out.not_checked(NotChecked {
            what: format!("{what} of {name}"),
            why: why.into(),
            inherent,
        });
    }

    /// Somebody wants the run to stop.
    pub fn is_interrupted(&self) -> bool {
        self.progress.is_interrupted()
    }
}

/// A draft about a block of any fork, or about the fork as a whole.
pub fn draft_at(
    fork: &ForkCx<'_>,
    rule: &'static Rule,
    block: Option<BlockNo>,
    message: impl Into<String>,
) -> Draft {
    Draft::new(rule, message).place(place_in(fork, block))
}

/// The place of a block.
pub(crate) fn place_in(fork: &ForkCx<'_>, block: Option<BlockNo>) -> Place {
    let per_segment = fork.build.segment_blocks().max(1);
    let segment = u32::try_from(u64::from(block.unwrap_or(0)) / per_segment).unwrap_or(u32::MAX);
    let kind = if fork.kind == FileKind::Unknown {
        FileKind::Unknown
    } else {
        fork.kind
    };
    Place {
        block,
        kind,
        ..fork_place(fork.database, fork.relation, fork.files, segment)
    }
}
