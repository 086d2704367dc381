//! Checks that compare the pages of one relation with each other, and with its indexes or its table.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use pgclinic_cluster::wal::Fate;
use pgclinic_cluster::{Catalog, Cluster, Comparison, fork_place};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Oid, Page};
use pgclinic_model::document::{Kind, Level, NotChecked, Place};
use pgclinic_model::{Progress, Rule};
use pgclinic_source::Source;
use pgclinic_spill::Budget;

use crate::btree::AllFaces;
use crate::check::ForkCx;
use crate::findings::{Draft, Findings};
use crate::neighbours::Neighbours;

/// Bytes that a reader fetches at once where blocks are read in rising order.
const WINDOW_BYTES: usize = 256 << 10;

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

/// One relation, its neighbours, and how to read them.
pub struct RelationCx<'a> {
    /// Its main fork.
    pub fork: &'a ForkCx<'a>,
    /// Its database's catalogs.
    pub catalog: &'a Catalog,
    /// The relations of its database that this run looks at.
    pub neighbours: &'a Neighbours<'a>,
    /// Memory that may be used.
    pub budget: &'a Budget,
    /// Where what does not fit in memory is sorted.
    pub spill_folder: &'a Path,
    /// Threads that this check may use.
    pub threads: usize,
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
    pub(crate) fn faces(&self) -> Option<&'a AllFaces> {
        self.neighbours.faces_of(self.fork)
    }

    /// The cluster was shut down in good order, and all of it is there, so that pages agree with each other.
    pub fn settled(&self) -> bool {
        let compares = |cluster: &Cluster| cluster.may_compare(Comparison::ForksOfRelation);
        self.fork.cluster.is_some_and(compares)
    }

    /// The same, or recovery is due and all of its WAL is there, so that it is known which pages it leaves alone.
    pub(crate) fn settles(&self) -> bool {
        let compares = |cluster: &Cluster| cluster.may_compare(Comparison::ForksThatRecoveryKeeps);
        self.fork.cluster.is_some_and(compares)
    }

    /// Recovery, if it is due, leaves this block of a fork of the database as it is: so it was at the last
    /// checkpoint, when all changed pages reached the disk.
    pub(crate) fn is_lasting(&self, fork: &ForkCx<'_>, block: BlockNo) -> bool {
        if !fork.replay_is_due() {
            return true;
        }
        let replay = fork.cluster.and_then(Cluster::replay);
        let file = fork.file_number();
        replay.is_some_and(|replay| {
            !replay.creates(file) && replay.fate(file, fork.fork(), block) == Fate::Kept
        })
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
    let kind = if fork.kind == Kind::Unknown {
        Kind::Unknown
    } else {
        fork.kind
    };
    Place {
        block,
        kind,
        ..fork_place(fork.database, fork.relation, fork.files, segment)
    }
}

/// Reads single pages of one fork, a window at a time where blocks rise.
pub struct PageReader<'a> {
    source: &'a dyn Source,
    fork: &'a ForkCx<'a>,
    block_bytes: usize,
    window: Vec<u8>,
    first: u64,
    held: u64,
    read: Cell<u64>,
    paths: Vec<(u32, Arc<str>)>,
}

impl<'a> PageReader<'a> {
    pub(crate) fn new(source: &'a dyn Source, fork: &'a ForkCx<'a>) -> Self {
        PageReader {
            source,
            fork,
            block_bytes: usize::try_from(fork.build.block_size).unwrap_or(8192),
            window: Vec::new(),
            first: 0,
            held: 0,
            read: Cell::new(0),
            paths: Vec::new(),
        }
    }

    /// Blocks in the fork.
    pub fn blocks(&self) -> u64 {
        self.fork.blocks
    }

    /// A page; nothing beyond the end, for pages that cannot be read or are all zero, and for those
    /// whose header the server would refuse: the checks of pages tell of them.
    pub fn page(&mut self, block: BlockNo) -> Option<Page<'_>> {
        let page = Page::parse(self.bytes(block)?)?;
        let usable = !page.is_new() && page.header_is_sane_to_the_server();
        usable.then_some(page)
    }

    /// The bytes of a page, whatever they are.
    pub fn bytes(&mut self, block: BlockNo) -> Option<&[u8]> {
        let block = u64::from(block);
        if block >= self.fork.blocks {
            return None;
        }
        if !(self.first..self.first + self.held).contains(&block) {
            self.fetch(block);
        }
        let index = usize::try_from(block.checked_sub(self.first)?).ok()?;
        let start = index.checked_mul(self.block_bytes)?;
        (block < self.first + self.held).then_some(())?;
        self.window.get(start..start.checked_add(self.block_bytes)?)
    }

    /// A window where reading goes on, a single page where it jumps.
    fn fetch(&mut self, block: u64) {
        let goes_on = block == self.first + self.held;
        let per_segment = self.fork.build.segment_blocks().max(1);
        let within = block % per_segment;
        let wanted = if goes_on {
            WINDOW_BYTES / self.block_bytes
        } else {
            1
        };
        let rest = (per_segment - within).min(self.fork.blocks - block);
        let wanted = usize::try_from(rest).unwrap_or(1).min(wanted.max(1));
        self.window.resize(wanted * self.block_bytes, 0);
        let segment = u32::try_from(block / per_segment).unwrap_or(u32::MAX);
        let path = self.path(segment);
        let offset = within * self.block_bytes as u64;
        let read = self.source.read_at(&path, offset, &mut self.window);
        self.first = block;
        self.held = (read.unwrap_or(0) / self.block_bytes) as u64;
        self.read.set(self.read.get() + self.held);
    }

    fn path(&mut self, segment: u32) -> Arc<str> {
        if let Some((_, path)) = self.paths.iter().find(|(number, _)| *number == segment) {
            return Arc::clone(path);
        }
        let path: Arc<str> = self.fork.files.path(segment).into();
        self.paths.push((segment, Arc::clone(&path)));
        path
    }
}
