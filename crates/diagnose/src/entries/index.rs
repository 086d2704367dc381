//! The entries of one index against the map of its table's rows.

use std::collections::BTreeMap;
use std::ops::Range;

use pgclinic_format::btree::BtreePage;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, Page, gin, gist, hash, spgist};

use crate::check::ForkCx;
use crate::entries::columns::KeyColumns;
use crate::entries::row_map::{PartSeen, RowMap, Standing};
use crate::gin::Reached;
use crate::relation_check::PageReader;

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
    /// Where pages that nothing leads to may name rows that are gone: those that count.
    pub(crate) reached: Option<Reached>,
}

/// Entries that name no row, of one block of the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dangling {
    pub(crate) entries: u64,
    /// Row, and block of the entry.
    pub(crate) examples: Vec<(Tid, BlockNo)>,
}

/// What the entries of one index say.
pub(crate) struct IndexSide {
    pub(crate) seen: Vec<PartSeen>,
    pub(crate) dangling: BTreeMap<BlockNo, Dangling>,
    pub(crate) dangling_total: u64,
    pub(crate) doubled: u64,
    pub(crate) doubled_examples: Vec<Tid>,
    pub(crate) unreadable: Vec<BlockNo>,
}

/// What an entry is held against.
#[derive(Clone, Copy)]
pub(crate) struct Against<'a> {
    pub(crate) map: &'a RowMap,
    /// Rows whose keys the table's side does not know, rising.
    pub(crate) unknown: &'a [Tid],
    /// Blocks of the table.
    pub(crate) heap_blocks: u64,
    /// The last range of blocks is looked at: entries beyond the table's end are told here.
    pub(crate) is_last: bool,
}

impl IndexSide {
    pub(crate) fn new(map: &RowMap) -> Self {
        IndexSide {
            seen: map.parts().iter().map(PartSeen::new).collect(),
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
                    for_each_row(method, page, &mut |tid| {
                        self.entry(against, tid, block, || None);
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
        for (_, tuple) in leaf.data() {
            for tid in tuple.rows() {
                self.entry(against, tid, block, || {
                    let keys = index.keys.as_ref()?;
                    keys.hash_entry(tid, tuple)
                });
            }
        }
    }

    #[inline]
    fn entry(
        &mut self,
        against: Against<'_>,
        tid: Tid,
        at: BlockNo,
        hash: impl FnOnce() -> Option<u64>,
    ) {
        match against.map.find(tid) {
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
                if let (true, Some(sum)) = (known, seen.sums.get_mut(spot.block))
                    && let Some(hash) = hash()
                {
                    *sum = sum.wrapping_add(hash);
                }
            }
            Some((_, Standing::Nothing | Standing::HeapOnly)) => self.dangle(tid, at),
            None => {
                let beyond = u64::from(tid.block) >= against.heap_blocks;
                if against.map.place(tid.block).is_some() || (beyond && against.is_last) {
                    self.dangle(tid, at);
                }
            }
        }
    }

    #[cold]
    fn dangle(&mut self, tid: Tid, block: BlockNo) {
        self.dangling_total += 1;
        if self.dangling.len() >= BLOCKS_TOLD && !self.dangling.contains_key(&tid.block) {
            return;
        }
        let dangling = self.dangling.entry(tid.block).or_default();
        dangling.entries += 1;
        if dangling.examples.len() < EXAMPLES {
            dangling.examples.push((tid, block));
        }
    }

    /// Adds what another thread read; `once`: an index of this kind names a row once.
    pub(crate) fn absorb(&mut self, other: IndexSide) {
        for (ours, theirs) in self.seen.iter_mut().zip(&other.seen) {
            self.doubled += ours.absorb(theirs);
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

/// Every row that a page of an index other than a btree names.
pub(crate) fn for_each_row(method: AccessMethod, page: Page<'_>, each: &mut dyn FnMut(Tid)) {
    match method {
        AccessMethod::Gin => gin::for_each_row(page, &mut |row| each(row.tid)),
        AccessMethod::Gist => gist::for_each_row(page, &mut |tid, _, _| each(tid)),
        AccessMethod::Spgist => spgist::for_each_row(page, &mut |tid, _| each(tid)),
        AccessMethod::Hash => hash::for_each_row(page, &mut |entry| {
            each(Tid {
                block: entry.block,
                offset: entry.offset,
            });
        }),
        AccessMethod::Btree | AccessMethod::Brin | AccessMethod::Heap | AccessMethod::Sequence => {}
    }
}

/// The access methods whose entries name rows one by one, and are read here.
pub(crate) fn names_rows(method: AccessMethod) -> bool {
    use AccessMethod::{Btree, Gin, Gist, Hash, Spgist};
    matches!(method, Btree | Gin | Gist | Hash | Spgist)
}
