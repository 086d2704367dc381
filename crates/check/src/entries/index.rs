//! The entries of one index against the map of its table's rows.

use std::collections::BTreeMap;
use std::ops::Range;

use pgclinic_format::btree::{BtreePage, BtreeTuple};
use pgclinic_format::index_entries::for_each_entry;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, ColumnLayout, HeapTuple, Page};
use pgclinic_scan::PageReader;

use crate::check::ForkCx;
use crate::entries::columns::{KeyColumns, hash_of_row};
use crate::entries::compare::HeapSide;
use crate::entries::row_map::{PartSeen, Standing};
use crate::gin::Reached;

/// Blocks of the table whose entries without rows are told one by one.
const BLOCKS_TOLD: usize = 10_000;
/// Examples kept of one block, or of one index.
const EXAMPLES: usize = 20;
/// Rows whose key stands elsewhere, kept to leave them out of the comparison.
pub(crate) const UNKNOWN_MAX: usize = 100_000;

/// One index of the table.
pub(crate) struct IndexFacts<'a> {
    pub(crate) fork: &'a ForkCx<'a>,
    pub(crate) method: AccessMethod,
    /// Keys can be compared.
    pub(crate) keys: Option<KeyColumns>,
    /// Every live row has to be in it.
    pub(crate) complete: bool,
    /// It holds every live row once, so that sums over rows and keys tell whether it does.
    pub(crate) summed: bool,
    /// Where pages that nothing leads to may name rows that are gone: those that count.
    pub(crate) reached: Option<Reached>,
}

impl IndexFacts<'_> {
    /// The hash of a row and of its key, if the key is compared; nothing where it is not known.
    #[inline]
    pub(crate) fn hash_row(
        &self,
        tid: Tid,
        tuple: HeapTuple<'_>,
        layouts: &[ColumnLayout],
    ) -> Option<u64> {
        match &self.keys {
            Some(keys) => keys.hash_row(tid, tuple, layouts),
            None => Some(hash_of_row(tid)),
        }
    }

    /// The same from an entry.
    #[inline]
    fn hash_entry(&self, tid: Tid, tuple: BtreeTuple<'_>) -> Option<u64> {
        match &self.keys {
            Some(keys) => keys.hash_entry(tid, tuple),
            None => Some(hash_of_row(tid)),
        }
    }
}

/// Where an entry stands in its index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EntryPlace {
    pub(crate) block: BlockNo,
    /// The line pointer; nothing in the compressed lists of a GIN posting tree.
    pub(crate) item: Option<u16>,
}

/// Entries that name no row, of one block of the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dangling {
    pub(crate) entries: u64,
    /// Row, and where its entry stands.
    pub(crate) examples: Vec<(Tid, EntryPlace)>,
}

/// What the entries of one index say.
pub(crate) struct IndexSide {
    /// Rows that entries name, where the table is looked at closely.
    pub(crate) seen: Vec<PartSeen>,
    /// Sums of the keys, by block.
    pub(crate) sums: Vec<u64>,
    pub(crate) dangling: BTreeMap<BlockNo, Dangling>,
    pub(crate) dangling_total: u64,
    pub(crate) doubled: u64,
    pub(crate) doubled_examples: Vec<Tid>,
    pub(crate) unreadable: Vec<BlockNo>,
}

/// What an entry is held against.
#[derive(Clone, Copy)]
pub(crate) struct Against<'a> {
    pub(crate) heap: &'a HeapSide,
    /// Rows whose keys the table's side does not know, rising.
    pub(crate) unknown: &'a [Tid],
    /// Blocks of the table.
    pub(crate) heap_blocks: u64,
    /// The last range of blocks is looked at: entries beyond the table's end are told here.
    pub(crate) is_last: bool,
}

impl IndexSide {
    pub(crate) fn new(heap: &HeapSide) -> Self {
        let blocks = heap.range.end - heap.range.start;
        IndexSide {
            seen: heap.map.parts().iter().map(PartSeen::new).collect(),
            sums: vec![0; usize::try_from(blocks).unwrap_or(0)],
            dangling: BTreeMap::new(),
            dangling_total: 0,
            doubled: 0,
            doubled_examples: Vec::new(),
            unreadable: Vec::new(),
        }
    }

    /// Reads a range of the index's pages.
    pub(crate) fn read(
        &mut self,
        index: &IndexFacts<'_>,
        against: Against<'_>,
        pages: &mut PageReader<'_>,
        blocks: Range<u64>,
    ) {
        for block in blocks {
            let Ok(block) = BlockNo::try_from(block) else {
                return;
            };
            if index
                .reached
                .as_ref()
                .is_some_and(|reached| !reached.contains(block))
            {
                continue;
            }
            let Some(page) = pages.page(block) else {
                self.unreadable_unless_zeroed(pages, block);
                continue;
            };
            match index.method {
                AccessMethod::Btree => self.btree_page(index, against, page, block),
                method => {
                    for_each_entry(method, page, |item, tid| {
                        let at = EntryPlace { block, item };
                        self.entry_closely(against, tid, at, || None);
                    });
                }
            }
        }
    }

    fn unreadable_unless_zeroed(&mut self, pages: &mut PageReader<'_>, block: BlockNo) {
        let zeroed = pages
            .bytes(block)
            .and_then(Page::parse)
            .is_some_and(Page::is_zeroed);
        if !zeroed && self.unreadable.len() < EXAMPLES {
            self.unreadable.push(block);
        }
    }

    fn btree_page(
        &mut self,
        index: &IndexFacts<'_>,
        against: Against<'_>,
        page: Page<'_>,
        block: BlockNo,
    ) {
        let leaf = BtreePage::parse(page).filter(|page| page.is_leaf() && !page.is_ignored());
        let Some(leaf) = leaf.filter(|_| block != 0) else {
            return;
        };
        // A scan marks entries dead whose rows nobody sees any more: they need no row, and are none
        // of a live one.
        for (item, tuple) in leaf.data_not_dead() {
            let item = Some(item);
            let at = EntryPlace { block, item };
            if tuple.names_one_row() {
                self.btree_entry(index, against, (tuple, tuple.0.t_tid()), at);
                continue;
            }
            for tid in tuple.rows() {
                self.btree_entry(index, against, (tuple, tid), at);
            }
        }
    }

    #[inline]
    fn btree_entry(
        &mut self,
        index: &IndexFacts<'_>,
        against: Against<'_>,
        (tuple, tid): (BtreeTuple<'_>, Tid),
        at: EntryPlace,
    ) {
        let heap = against.heap;
        let within = u64::from(tid.block).checked_sub(heap.range.start);
        let slot = within.and_then(|at| self.sums.get_mut(usize::try_from(at).ok()?));
        let Some(sum) = slot.filter(|_| index.summed && !heap.closely.has(tid.block)) else {
            self.entry_closely(against, tid, at, || index.hash_entry(tid, tuple));
            return;
        };
        if heap.only_closely {
            return;
        }
        // An entry without a hash makes the sums differ as well.
        *sum = sum.wrapping_add(index.hash_entry(tid, tuple).unwrap_or(1));
    }

    /// Looks up what the entry names.
    fn entry_closely(
        &mut self,
        against: Against<'_>,
        tid: Tid,
        at: EntryPlace,
        hash: impl FnOnce() -> Option<u64>,
    ) {
        match against.heap.map.find(tid) {
            Some((_, Standing::Allowed)) => {}
            Some((spot, Standing::Live)) => {
                let Some(seen) = self.seen.get_mut(spot.part) else {
                    return;
                };
                if !seen.add(spot.number) {
                    self.doubled += 1;
                    if self.doubled_examples.len() < EXAMPLES {
                        self.doubled_examples.push(tid);
                    }
                }
                let known =
                    against.unknown.is_empty() || against.unknown.binary_search(&tid).is_err();
                if let (true, Some(hash)) = (known, hash()) {
                    self.add_to(tid.block, against.heap, hash);
                }
            }
            Some((_, Standing::Nothing | Standing::HeapOnly)) => self.dangle(tid, at),
            None => {
                let beyond = u64::from(tid.block) >= against.heap_blocks;
                if against.heap.map.place(tid.block).is_some() || (beyond && against.is_last) {
                    self.dangle(tid, at);
                }
            }
        }
    }

    fn add_to(&mut self, block: BlockNo, heap: &HeapSide, hash: u64) {
        let within = u64::from(block).checked_sub(heap.range.start);
        let slot = within.and_then(|at| self.sums.get_mut(usize::try_from(at).ok()?));
        if let Some(sum) = slot {
            *sum = sum.wrapping_add(hash);
        }
    }

    #[cold]
    fn dangle(&mut self, tid: Tid, at: EntryPlace) {
        self.dangling_total += 1;
        if self.dangling.len() >= BLOCKS_TOLD && !self.dangling.contains_key(&tid.block) {
            return;
        }
        let dangling = self.dangling.entry(tid.block).or_default();
        dangling.entries += 1;
        if dangling.examples.len() < EXAMPLES {
            dangling.examples.push((tid, at));
        }
    }

    /// Adds what another thread read; `once`: an index of this kind names a row once.
    pub(crate) fn absorb(&mut self, other: IndexSide) {
        for (ours, theirs) in self.seen.iter_mut().zip(&other.seen) {
            self.doubled += ours.absorb(theirs);
        }
        for (ours, theirs) in self.sums.iter_mut().zip(&other.sums) {
            *ours = ours.wrapping_add(*theirs);
        }
        self.doubled += other.doubled;
        self.doubled_examples.extend(other.doubled_examples);
        self.doubled_examples.truncate(EXAMPLES);
        self.dangling_total += other.dangling_total;
        self.unreadable.extend(other.unreadable);
        for (block, theirs) in other.dangling {
            let ours = self.dangling.entry(block).or_default();
            ours.entries += theirs.entries;
            ours.examples.extend(theirs.examples);
            ours.examples.truncate(EXAMPLES);
        }
    }
}
