//! Reads a table and its indexes, a range of blocks at a time, on all threads.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use pgclinic_cluster::Cluster;
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, HeapTuple, Page};

use crate::entries::heap::HeapItems;
use crate::entries::index::{Against, IndexFacts, IndexSide, UNKNOWN_MAX};
use crate::entries::row_map::{PART_BLOCKS, Part, PartSeen, RowMap};
use crate::relation_check::{PageReader, RelationCx};

/// Pages that are read to learn how many line pointers a page has.
const SAMPLE_PAGES: u64 = 64;
/// Blocks of an index that a thread takes at a time.
const INDEX_STRETCH: u64 = 2048;

/// A table's side of one range of blocks.
pub(crate) struct HeapSide {
    pub(crate) map: RowMap,
    /// By index: sums of the keys of live rows, by part and block.
    pub(crate) sums: Vec<Vec<Vec<u64>>>,
    /// By index: rows whose key stands elsewhere, rising; `None`: too many to keep.
    pub(crate) unknown: Vec<Option<Vec<Tid>>>,
}

struct HeapPart {
    part: Part,
    sums: Vec<Vec<u64>>,
    unknown: Vec<Vec<Tid>>,
}

/// The ranges of blocks whose maps fit the budget, one after the other.
pub(crate) fn ranges(relation: &RelationCx<'_>, indexes: usize) -> Vec<Range<u64>> {
    let blocks = relation.fork.blocks;
    let items = items_a_page(relation, &mut relation.pages());
    let threads = relation.threads as u64;
    // Two bits and a seen bit a thread and index, a start, and two sums a thread and index.
    let a_block = 8 + items / 4 + (indexes as u64) * threads * (items / 8 + 16);
    let most = (relation.budget.limit() / 2 / a_block.max(1)).max(u64::from(PART_BLOCKS));
    let step = most - most % u64::from(PART_BLOCKS);
    let starts = (0..blocks.max(1)).step_by(usize::try_from(step).unwrap_or(usize::MAX));
    starts
        .map(|start| start..(start.saturating_add(step)).min(blocks))
        .collect()
}

/// Line pointers of the fullest of some pages, and a few more.
fn items_a_page(relation: &RelationCx<'_>, pages: &mut PageReader<'_>) -> u64 {
    let blocks = relation.fork.blocks;
    let step = (blocks / SAMPLE_PAGES).max(1);
    let sampled = (0..blocks).step_by(usize::try_from(step).unwrap_or(1));
    let counts = sampled.filter_map(|block| {
        let page = pages.page(BlockNo::try_from(block).ok()?)?;
        Some(u64::from(page.line_pointer_count()))
    });
    counts.max().unwrap_or(0) + 16
}

/// Reads the rows of a range.
pub(crate) fn read_heap(
    relation: &RelationCx<'_>,
    cluster: &Cluster,
    indexes: &[IndexFacts<'_>],
    range: &Range<u64>,
) -> HeapSide {
    let parts = (range.end - range.start).div_ceil(u64::from(PART_BLOCKS));
    let unknown: Vec<_> = indexes.iter().map(|_| AtomicUsize::new(0)).collect();
    let made = on_all_threads(relation, parts, |pages, items, number| {
        let start = range.start + number * u64::from(PART_BLOCKS);
        let end = (start + u64::from(PART_BLOCKS)).min(range.end);
        let indexes = (indexes, unknown.as_slice());
        read_part(relation, cluster, indexes, (pages, items), start..end)
    });
    let mut side = HeapSide {
        map: RowMap::new(0, Vec::new()),
        sums: vec![Vec::new(); indexes.len()],
        unknown: vec![Some(Vec::new()); indexes.len()],
    };
    let mut parts = Vec::new();
    for made in made {
        parts.push(made.part);
        for (all, sums) in side.sums.iter_mut().zip(made.sums) {
            all.push(sums);
        }
        for (all, more) in side.unknown.iter_mut().zip(made.unknown) {
            if let Some(known) = all {
                known.extend(more);
            }
        }
    }
    for (all, count) in side.unknown.iter_mut().zip(unknown) {
        if count.into_inner() > UNKNOWN_MAX {
            *all = None;
        }
    }
    side.map = RowMap::new(u32::try_from(range.start).unwrap_or(u32::MAX), parts);
    side
}

fn read_part(
    relation: &RelationCx<'_>,
    cluster: &Cluster,
    (indexes, unknown_count): (&[IndexFacts<'_>], &[AtomicUsize]),
    (pages, items): (&mut PageReader<'_>, &mut HeapItems),
    blocks: Range<u64>,
) -> HeapPart {
    let mut made = HeapPart {
        part: Part::new(),
        sums: vec![Vec::new(); indexes.len()],
        unknown: vec![Vec::new(); indexes.len()],
    };
    let layouts = relation.fork.columns.unwrap_or_default();
    for block in blocks {
        let Ok(block) = BlockNo::try_from(block) else {
            break;
        };
        let page = pages.page(block);
        match page {
            Some(page) => items.read(page, block, cluster),
            None => items.clear(),
        }
        made.part.push_block(&items.standings);
        let sides = made.sums.iter_mut().zip(&mut made.unknown);
        for ((index, count), (sums, unknown)) in indexes.iter().zip(unknown_count).zip(sides) {
            let mut sum = 0u64;
            if let (Some(keys), Some(page)) = (&index.keys, page) {
                for (root, live) in &items.live {
                    let tid = Tid {
                        block,
                        offset: *root,
                    };
                    let hash =
                        tuple_at(page, *live).and_then(|tuple| keys.hash_row(tid, tuple, layouts));
                    match hash {
                        Some(hash) => sum = sum.wrapping_add(hash),
                        None if count.fetch_add(1, Ordering::Relaxed) < UNKNOWN_MAX => {
                            unknown.push(tid);
                        }
                        None => {}
                    }
                }
            }
            sums.push(sum);
        }
    }
    made
}

/// A tuple of the heap.
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
    let whole = Mutex::new(IndexSide::new(against.map));
    let work = || {
        let mut pages = relation.pages_of(index.fork);
        let mut own = IndexSide::new(against.map);
        loop {
            let start = next.fetch_add(INDEX_STRETCH, Ordering::Relaxed);
            if start >= blocks || relation.is_interrupted() {
                break;
            }
            let stretch = start..(start + INDEX_STRETCH).min(blocks);
            own.read(index, against, &mut pages, stretch);
        }
        let mut whole = whole.lock().expect("no thread panics with this lock");
        whole.absorb(own);
    };
    let threads = threads_for(relation, blocks.div_ceil(INDEX_STRETCH));
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    whole.into_inner().expect("no thread panics with this lock")
}

/// Calls `make` for every number below `count` and gives the results in order.
fn on_all_threads<T: Send>(
    relation: &RelationCx<'_>,
    count: u64,
    make: impl Fn(&mut PageReader<'_>, &mut HeapItems, u64) -> T + Sync,
) -> Vec<T> {
    let next = AtomicU64::new(0);
    let made = Mutex::new(Vec::new());
    let work = || {
        let mut pages = relation.pages();
        let mut items = HeapItems::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count || relation.is_interrupted() {
                break;
            }
            let one = make(&mut pages, &mut items, number);
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
    made.into_iter().map(|(_, one)| one).collect()
}

fn threads_for(relation: &RelationCx<'_>, pieces: u64) -> u64 {
    pieces.clamp(1, relation.threads as u64)
}

/// Blocks of the range, from its start, whose sums differ.
pub(crate) fn differing_blocks(
    range: &Range<u64>,
    heap: &[Vec<u64>],
    index: &[PartSeen],
) -> Vec<BlockNo> {
    let parts = heap.iter().zip(index).zip(0u64..);
    let blocks = parts.flat_map(|((ours, theirs), part)| {
        let first = range.start + part * u64::from(PART_BLOCKS);
        let pairs = ours.iter().zip(&theirs.sums).zip(first..);
        pairs.filter_map(|((a, b), block)| (a != b).then_some(block))
    });
    blocks
        .filter_map(|block| BlockNo::try_from(block).ok())
        .collect()
}
