//! Reads a table and its indexes, a range of blocks at a time, on all threads.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use pgclinic_cluster::Cluster;
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, HeapTuple, Page};
use pgclinic_scan::PageReader;
use pgclinic_spill::Lease;

use crate::block_set::BlockSet;
use crate::entries::heap::HeapItems;
use crate::entries::index::{Against, IndexFacts, IndexSide, UNKNOWN_MAX};
use crate::entries::row_map::{PART_BLOCKS, Part, RowMap};
use crate::relation_check::RelationCx;

/// Blocks of an index that a thread takes at a time.
const INDEX_STRETCH: u64 = 512;

/// A table's side of one range of blocks: as many as memory allows.
pub(crate) struct HeapSide {
    pub(crate) range: Range<u64>,
    /// Blocks that are looked at entry by entry, since sums do not tell all.
    pub(crate) closely: BlockSet,
    /// Nothing is asked of the others.
    pub(crate) only_closely: bool,
    /// The line pointers of those blocks; of all of them where an index needs not hold every row.
    pub(crate) map: RowMap,
    /// By index: sums of the keys of live rows, by block.
    pub(crate) sums: Vec<Vec<u64>>,
    /// By index: rows whose key stands elsewhere, rising; `None`: too many to keep.
    pub(crate) unknown: Vec<Option<Vec<Tid>>>,
    /// What it holds, and what the threads need that read an index against it.
    _leases: Vec<Lease>,
}

struct HeapPart {
    part: Part,
    closely: BlockSet,
    sums: Vec<Vec<u64>>,
    unknown: Vec<Vec<Tid>>,
    lease: Lease,
}

/// How the rows of a table are read.
struct HeapWork<'a, 'r> {
    relation: &'r RelationCx<'a>,
    cluster: &'r Cluster,
    indexes: &'r [IndexFacts<'a>],
    /// Only these blocks, each of them entry by entry.
    only: Option<&'r BlockSet>,
    /// Rows whose key stands elsewhere, by index.
    unknown: Vec<AtomicUsize>,
}

/// Reads the rows of the first of these blocks, as many as memory allows; with `only` nothing but
/// these blocks, each entry by entry.
pub(crate) fn read_heap(
    relation: &RelationCx<'_>,
    cluster: &Cluster,
    indexes: &[IndexFacts<'_>],
    blocks: Range<u64>,
    only: Option<&BlockSet>,
) -> HeapSide {
    let Range { start, end } = blocks;
    let work = HeapWork {
        relation,
        cluster,
        indexes,
        only,
        unknown: indexes.iter().map(|_| AtomicUsize::new(0)).collect(),
    };
    let parts = end.saturating_sub(start).div_ceil(u64::from(PART_BLOCKS));
    let made = on_all_threads(relation, parts, |pages, items, number| {
        let first = start + number * u64::from(PART_BLOCKS);
        let last = (first + u64::from(PART_BLOCKS)).min(end);
        work.part(pages, items, first..last, number == 0)
    });
    let read = start + made.len() as u64 * u64::from(PART_BLOCKS);
    work.put_together(made, start..read.min(end))
}

impl HeapWork<'_, '_> {
    /// Nothing when there is no memory for it, unless it is `needed` in any case.
    fn part(
        &self,
        pages: &mut PageReader<'_>,
        items: &mut HeapItems,
        blocks: Range<u64>,
        needed: bool,
    ) -> Option<HeapPart> {
        let budget = self.relation.budget;
        let mut made = HeapPart {
            part: Part::new(),
            closely: BlockSet::none_of(&blocks),
            sums: vec![Vec::new(); self.indexes.len()],
            unknown: vec![Vec::new(); self.indexes.len()],
            lease: budget.take(0),
        };
        for block in blocks {
            let is_asked = |block| self.only.is_none_or(|only| only.has(block));
            let asked = BlockNo::try_from(block)
                .ok()
                .filter(|block| is_asked(*block));
            match asked.and_then(|block| Some((block, pages.page(block)?))) {
                Some((number, page)) => {
                    items.read(page, number, self.cluster);
                    self.block(page, number, items, &mut made);
                }
                None => {
                    made.part.push_block(&[]);
                    made.sums.iter_mut().for_each(|sums| sums.push(0));
                    // Whatever an entry names there is gone.
                    if asked.is_some() {
                        made.closely.add(block);
                    }
                }
            }
        }
        let bytes = self.bytes_of(&made);
        made.lease = if needed {
            budget.take(bytes)
        } else {
            budget.try_take(bytes)?
        };
        Some(made)
    }

    /// Of the part itself, and of what each thread keeps of it that reads an index.
    fn bytes_of(&self, made: &HeapPart) -> u64 {
        let threads = self.relation.threads as u64;
        let (map, seen) = made.part.bytes();
        let sums = (self.indexes.len() as u64 + threads) * u64::from(PART_BLOCKS) * 8;
        let unknown: usize = made.unknown.iter().map(Vec::len).sum();
        map + threads * seen + sums + (unknown * size_of::<Tid>()) as u64
    }

    /// Adds up the keys of a page's rows.
    fn block(&self, page: Page<'_>, block: BlockNo, items: &HeapItems, made: &mut HeapPart) {
        let layouts = self.relation.fork.columns.unwrap_or_default();
        let mut closely = items.is_doubtful || self.only.is_some();
        made.sums.iter_mut().for_each(|sums| sums.push(0));
        for (root, live) in &items.live {
            let Some(tuple) = tuple_at(page, *live) else {
                closely = true;
                continue;
            };
            let tid = Tid {
                block,
                offset: *root,
            };
            let sides = made.sums.iter_mut().zip(&mut made.unknown);
            for ((index, count), (sums, unknown)) in
                self.indexes.iter().zip(&self.unknown).zip(sides)
            {
                if !index.summed {
                    continue;
                }
                match (index.hash_row(tid, tuple, layouts), sums.last_mut()) {
                    (Some(hash), Some(sum)) => *sum = sum.wrapping_add(hash),
                    _ => {
                        closely = true;
                        if count.fetch_add(1, Ordering::Relaxed) < UNKNOWN_MAX {
                            unknown.push(tid);
                        }
                    }
                }
            }
        }
        if closely {
            made.closely.add(u64::from(block));
        }
        let is_mapped = closely || self.indexes.iter().any(|index| !index.summed);
        made.part
            .push_block(if is_mapped { &items.standings } else { &[] });
    }

    fn put_together(self, made: Vec<HeapPart>, range: Range<u64>) -> HeapSide {
        let mut side = HeapSide {
            closely: BlockSet::none_of(&range),
            only_closely: self.only.is_some(),
            map: RowMap::new(0, Vec::new()),
            sums: vec![Vec::new(); self.indexes.len()],
            unknown: vec![Some(Vec::new()); self.indexes.len()],
            _leases: Vec::new(),
            range,
        };
        let mut parts = Vec::new();
        for made in made {
            parts.push(made.part);
            side.closely.append(&made.closely);
            side._leases.push(made.lease);
            for (all, sums) in side.sums.iter_mut().zip(made.sums) {
                all.extend(sums);
            }
            for (all, more) in side.unknown.iter_mut().zip(made.unknown) {
                if let Some(known) = all {
                    known.extend(more);
                }
            }
        }
        for (all, count) in side.unknown.iter_mut().zip(self.unknown) {
            if count.into_inner() > UNKNOWN_MAX {
                *all = None;
            }
        }
        side.map = RowMap::new(u32::try_from(side.range.start).unwrap_or(u32::MAX), parts);
        side
    }
}

/// A tuple of the heap.
#[inline]
pub(crate) fn tuple_at(page: Page<'_>, item: u16) -> Option<HeapTuple<'_>> {
    page.item(page.line_pointer(item)?)
        .and_then(HeapTuple::parse)
}

/// Reads an index against the map.
pub(crate) fn read_index(
    relation: &RelationCx<'_>,
    index: &IndexFacts<'_>,
    against: Against<'_>,
) -> IndexSide {
    let blocks = index.fork.blocks;
    let next = AtomicU64::new(0);
    let whole = Mutex::new(None);
    let work = || {
        let mut pages = relation.pages_of(index.fork);
        let mut own = IndexSide::new(against.heap);
        loop {
            let start = next.fetch_add(INDEX_STRETCH, Ordering::Relaxed);
            if start >= blocks || relation.is_interrupted() {
                break;
            }
            let stretch = start..(start + INDEX_STRETCH).min(blocks);
            own.read(index, against, &mut pages, stretch);
        }
        let mut whole = whole.lock().expect("no thread panics with this lock");
        match whole.as_mut() {
            None => *whole = Some(own),
            Some(whole) => IndexSide::absorb(whole, own),
        }
    };
    let threads = threads_for(relation, blocks.div_ceil(INDEX_STRETCH));
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let whole = whole.into_inner().expect("no thread panics with this lock");
    whole.unwrap_or_else(|| IndexSide::new(against.heap))
}

/// Calls `make` for every number below `count` and gives the results in order, up to the first that
/// it refuses to make.
fn on_all_threads<T: Send>(
    relation: &RelationCx<'_>,
    count: u64,
    make: impl Fn(&mut PageReader<'_>, &mut HeapItems, u64) -> Option<T> + Sync,
) -> Vec<T> {
    let (next, end) = (AtomicU64::new(0), AtomicU64::new(count));
    let made = Mutex::new(Vec::new());
    let work = || {
        let mut pages = relation.pages();
        let mut items = HeapItems::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= end.load(Ordering::Relaxed) || relation.is_interrupted() {
                break;
            }
            let Some(one) = make(&mut pages, &mut items, number) else {
                end.fetch_min(number, Ordering::Relaxed);
                break;
            };
            let mut made = made.lock().expect("no thread panics with this lock");
            made.push((number, one));
        }
    };
    let threads = threads_for(relation, count);
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let mut made = made.into_inner().expect("no thread panics with this lock");
    made.sort_by_key(|(number, _)| *number);
    let in_a_row = made.into_iter().zip(0u64..);
    let in_a_row = in_a_row.take_while(|((number, _), expected)| number == expected);
    in_a_row.map(|((_, one), _)| one).collect()
}

fn threads_for(relation: &RelationCx<'_>, pieces: u64) -> u64 {
    pieces.clamp(1, relation.threads as u64)
}

/// Blocks of a range that begins at `start` whose sums differ.
pub(crate) fn differing_blocks(start: u64, heap: &[u64], index: &[u64]) -> Vec<BlockNo> {
    let pairs = heap.iter().zip(index).zip(start..);
    let differing = pairs.filter_map(|((a, b), block)| (a != b).then_some(block));
    differing
        .filter_map(|block| BlockNo::try_from(block).ok())
        .collect()
}
