//! How well a btree is packed: what deduplication saves, what REINDEX would make of it, where it
//! was split.
//!
//! Truth: `_bt_load` and `_bt_buildadd` in `src/backend/access/nbtree/nbtsort.c`, `_bt_dedup_pass`
//! in `nbtdedup.c`.

use pgclinic_cluster::ForkContext;
use pgclinic_format::btree::{BtreeTuple, Meta};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::line_pointer::LinePointer;
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_model::FigureKind;
use pgclinic_model::document::Figure;

use super::percent::percent;
use super::sums::Items;
use super::{PageAt, PageMeasure, Sums, Whole, bytes, count, number, share};

sums! {
    /// Measures what deduplication and REINDEX save in a B-tree.
    pub struct BtreePacking {
        packing: LeafTotals,
        links: u64,
        /// Links to a right sibling that was added at the end.
        near_links: u64,
        /// The meta page says that equal keys are equal byte by byte.
        equal_images: u64,
    }
}

/// Bytes of a line pointer.
const POINTER: u64 = LinePointer::SIZE as u64;
/// Bytes of a row's number.
const TID: u64 = 6;
/// A right sibling this far behind was added at the end, with at most an inner page or two between.
const NEAR: u32 = 3;

impl PageMeasure for BtreePacking {
    const SECTION: &'static str = "index";
    const FIGURES: &'static [FigureKind] = &[
        number(
            "key_count",
            "different keys, those of each leaf counted again",
        ),
        bytes("dedup_saved_bytes", "what deduplication has saved"),
        bytes(
            "dedup_could_save_bytes",
            "what it would save on top, on the leaves as they are",
        ),
        share(
            "end_split_percent",
            "leaves whose right sibling was added right behind them: builds and splits at the right end",
        ),
        bytes(
            "reindex_size",
            "length after REINDEX, about, at a fillfactor of 90",
        ),
        bytes("reindex_gives_back_bytes", "what REINDEX gives back, about"),
    ];

    fn fits(fork: &ForkContext<'_>) -> bool {
        fork.method == Some(AccessMethod::Btree)
    }

    fn add(&mut self, at: &PageAt<'_>) -> bool {
        if at.block == 0 {
            let equal = Meta::parse(at.page).is_some_and(|meta| meta.all_equal_image);
            self.equal_images += u64::from(equal);
            return true;
        }
        let Some(look) = at.leaf else {
            return true;
        };
        if !look.tree.is_rightmost() {
            let distance = look.tree.next.checked_sub(at.block);
            let is_near = distance.is_some_and(|far| (1..=NEAR).contains(&far));
            self.links += 1;
            self.near_links += u64::from(is_near);
        }
        self.packing.absorb(&look.packing);
        true
    }

    fn figures(&self, whole: &Whole<'_>) -> Vec<Option<Figure>> {
        let LeafTotals {
            packed,
            alone,
            could_save,
            ..
        } = self.packing;
        let has_lists = self.equal_images > 0;
        // A unique index is built without lists: its duplicates are versions of one row.
        let items = if has_lists && !is_unique(whole.fork) {
            packed
        } else {
            alone
        };
        let size = whole.bytes(built_pages(items, whole.bytes(1)));
        let now = whole.bytes(whole.fork.blocks);
        vec![
            count(self.packing.keys),
            count(self.packing.saved),
            count(if has_lists { could_save } else { 0 }),
            percent(self.near_links as f64, self.links as f64),
            count(size),
            count(now.saturating_sub(size)),
        ]
    }
}

fn is_unique(fork: &ForkContext<'_>) -> bool {
    let index = fork.relation.and_then(|relation| relation.index.as_ref());
    index.is_some_and(|index| index.unique)
}

/// Pages of a btree that is built again from tuples whose bytes are counted without line pointers:
/// meta page, leaves filled to 90 %, inner pages to 70 %.
pub(super) fn built_pages(items: Items, block: u64) -> u64 {
    if items.count == 0 {
        return 1;
    }
    let mut level = pages_of(items.count, items.bytes, 10, block);
    let mut pages = 1 + level;
    let mean = items.bytes.div_ceil(items.count).next_multiple_of(8);
    // Each level has a fraction of the one below.
    while level > 1 {
        level = pages_of(level, level * mean, 30, block).min(level - 1);
        pages += level;
    }
    pages
}

/// A page is closed when its free space has fallen below its share of the block; its last tuple
/// then begins the next page, and a high key stands in its place.
fn pages_of(count: u64, bytes: u64, free_percent: u64, block: u64) -> u64 {
    let room =
        block.saturating_sub(HEADER_BYTES as u64 + 16 + 2 * POINTER + block * free_percent / 100);
    let with_pointers = bytes + count * POINTER;
    let fits = if with_pointers.is_multiple_of(count) {
        (room.div_ceil(with_pointers / count).saturating_sub(1)) as f64
    } else {
        room as f64 * count as f64 / with_pointers as f64 - 0.5
    };
    pgclinic_model::whole((count as f64 / fits.max(1.0)).ceil())
}

sums! {
    /// What the tuples of leaves add up to.
    #[derive(Copy)]
    pub(super) struct LeafTotals {
        keys: u64,
        saved: u64,
        could_save: u64,
        /// As a build with lists would write them.
        packed: Items,
        /// One for each row.
        alone: Items,
    }
}

/// Adds up the tuples of one leaf, from left to right.
pub(super) struct Packs<'a> {
    /// Posting lists of a build are no longer than this.
    list_max: u64,
    group: Group<'a>,
    /// Tuples whose key no other has.
    single: Items,
    several: LeafTotals,
}

/// Tuples of one key, side by side.
#[derive(Clone, Copy, Default)]
struct Group<'a> {
    key: &'a [u8],
    rows: u64,
    bytes: u64,
}

impl<'a> Packs<'a> {
    pub(super) fn new(block: usize) -> Self {
        Packs {
            list_max: block as u64 / 10 / 8 * 8 - POINTER,
            group: Group::default(),
            single: Items::default(),
            several: LeafTotals::default(),
        }
    }

    /// The next tuple, which names so many rows.
    #[inline]
    pub(super) fn add(&mut self, tuple: BtreeTuple<'a>, rows: u64) {
        let key = tuple.key_bytes().get(8..).unwrap_or_default();
        let bytes = tuple.0.size() as u64 + POINTER;
        if self.group.rows > 0 && are_equal(self.group.key, key) {
            self.group.rows += rows;
            self.group.bytes += bytes;
        } else {
            self.close_group();
            self.group = Group { key, rows, bytes };
        }
    }

    #[inline]
    fn close_group(&mut self) {
        match self.group.rows {
            0 => {}
            1 => {
                self.single.count += 1;
                self.single.bytes += 8 + self.group.key.len() as u64;
            }
            _ => self.close_several(),
        }
    }

    fn close_several(&mut self) {
        let (group, several) = (self.group, &mut self.several);
        let single = 8 + group.key.len() as u64;
        let alone = group.rows * (single + POINTER);
        let per_list = (self.list_max.saturating_sub(single) / TID).max(1);
        let lists = group.rows.div_ceil(per_list);
        let listed = lists * (single + POINTER) + (group.rows * TID).next_multiple_of(8);
        several.keys += 1;
        several.saved += alone.saturating_sub(group.bytes);
        several.could_save += group.bytes.saturating_sub(listed.min(alone));
        several.alone.count += group.rows;
        several.alone.bytes += group.rows * single;
        let lists = lists.min(group.rows);
        several.packed.count += lists;
        several.packed.bytes += listed.min(alone).saturating_sub(lists * POINTER);
    }

    pub(super) fn finish(mut self) -> LeafTotals {
        self.close_group();
        let (single, several) = (self.single, self.several);
        let with_single = |own: Items| Items {
            count: own.count + single.count,
            bytes: own.bytes + single.bytes,
        };
        LeafTotals {
            keys: several.keys + single.count,
            packed: with_single(several.packed),
            alone: with_single(several.alone),
            ..several
        }
    }
}

/// Keys are whole words nearly always, and short ones: quicker than a call.
#[inline]
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let ((words, rest), (others, rest_of_other)) = (one.as_chunks::<8>(), other.as_chunks::<8>());
    words.len() == others.len()
        && words.iter().zip(others).all(|(own, other)| own == other)
        && rest == rest_of_other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_takes_the_pages_that_a_server_takes() {
        let million = |bytes: u64| Items {
            count: 1_000_000,
            bytes: bytes * 1_000_000,
        };
        // CREATE INDEX over a million rows: uuid (3,832 leaves, 20 inner pages), bigint (2,733 and
        // 11).
        assert_eq!(built_pages(million(24), 8192), 1 + 3832 + 20);
        assert_eq!(built_pages(million(16), 8192), 1 + 2733 + 11);
        assert_eq!(built_pages(Items { count: 0, bytes: 0 }, 8192), 1);
        assert_eq!(
            built_pages(
                Items {
                    count: 1,
                    bytes: 16
                },
                8192
            ),
            2
        );
    }
}
