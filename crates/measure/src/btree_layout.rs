//! What `pgstatindex` and `bt_multi_page_stats` say of a btree: levels, density, fragmentation, items.
//!
//! Truth: `pgstatindex_impl` in `contrib/pgstattuple/pgstatindex.c`, `GetBTPageStatistics` in
//! `contrib/pageinspect/btreefuncs.c`.

use pgclinic_cluster::ForkContext;
use pgclinic_format::btree::{BTP_DELETED, BtreePage, Meta};
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::{Page, index_page::AccessMethod};
use pgclinic_model::FigureKind;
use pgclinic_model::document::Figure;

use super::percent::{percent, rest_percent};
use super::{LeafLook, Measure, PageAt, Sums, Whole, bytes, number, share};

/// Measures levels, density and fragmentation of a B-tree, as `pgstatindex` does.
pub struct BtreeLayout;

const VERSION: u8 = 0;
const LEVEL: u8 = 1;
const ROOT: u8 = 2;
const INTERNAL: u8 = 3;
const LEAVES: u8 = 4;
const EMPTY: u8 = 5;
const DELETED: u8 = 6;
const ROOM: u8 = 7;
const FREE: u8 = 8;
const BACKWARD: u8 = 9;
const CONTIGUOUS: u8 = 10;
const ELSEWHERE: u8 = 11;
const LIVE_ITEMS: u8 = 12;
const DEAD_ITEMS: u8 = 13;
const POSTING_LISTS: u8 = 14;
const ROWS: u8 = 15;
const ITEMS: u8 = 16;

impl Measure for BtreeLayout {
    fn section(&self) -> &'static str {
        "index"
    }

    fn figures(&self) -> &'static [FigureKind] {
        const {
            &[
                number("version", "version of the tree"),
                number("tree_level", "level of the root, leaves being 0"),
                bytes("index_size", "length of the index"),
                number("root_block_no", "block of the root"),
                number("internal_pages", "pages above the leaves"),
                number("leaf_pages", "pages of the lowest level"),
                number("empty_pages", "half-dead pages"),
                number("deleted_pages", "deleted pages, to be used again"),
                share("avg_leaf_density", "how full the leaves are"),
                share(
                    "leaf_fragmentation",
                    "leaves whose right sibling lies before them in the file",
                ),
                number(
                    "contiguous_links",
                    "leaves whose right sibling is the next block",
                ),
                number("other_links", "leaves whose right sibling lies elsewhere"),
                number("live_items", "items on leaves, high keys included"),
                number("dead_items", "items on leaves that are marked dead"),
                number("posting_lists", "items that stand for several rows"),
                number("row_count", "rows that leaves point to"),
                number("items_per_leaf", "items on a leaf"),
            ]
        }
    }

    fn fits(&self, fork: &ForkContext<'_>) -> bool {
        fork.method == Some(AccessMethod::Btree)
    }

    fn page(&self, page: Page<'_>, at: &PageAt<'_>, sums: &mut Sums) -> bool {
        if at.block == 0 {
            let Some(meta) = Meta::parse(page) else {
                return false;
            };
            sums.raise(VERSION, u64::from(meta.version));
            sums.raise(LEVEL, u64::from(meta.level));
            sums.raise(ROOT, u64::from(meta.root));
            return true;
        }
        let Some(tree) = BtreePage::parse(page) else {
            return false;
        };
        if tree.has(BTP_DELETED) {
            sums.add(DELETED, 1);
        } else if tree.is_ignored() {
            sums.add(EMPTY, 1);
        } else if tree.is_leaf() {
            at.leaf.into_iter().for_each(|look| leaf(look, at, sums));
        } else {
            sums.add(INTERNAL, 1);
        }
        true
    }

    fn total(&self, sums: &Sums, whole: &Whole<'_>) -> Vec<Option<Figure>> {
        let count = |slot| Some(Figure::Count(sums.sum(slot)));
        let highest = |slot| sums.highest(slot).map(Figure::Count);
        let pages = [INTERNAL, LEAVES, EMPTY, DELETED].map(|slot| sums.sum(slot));
        let size = whole.bytes(1 + pages.iter().sum::<u64>());
        let (free, room) = (sums.sum(FREE) as f64, sums.sum(ROOM) as f64);
        vec![
            highest(VERSION),
            highest(LEVEL),
            Some(Figure::Count(size)),
            highest(ROOT),
            count(INTERNAL),
            count(LEAVES),
            count(EMPTY),
            count(DELETED),
            rest_percent(free, room),
            percent(sums.sum(BACKWARD) as f64, sums.sum(LEAVES) as f64),
            count(CONTIGUOUS),
            count(ELSEWHERE),
            count(LIVE_ITEMS),
            count(DEAD_ITEMS),
            count(POSTING_LISTS),
            count(ROWS),
            sums.spread(ITEMS).as_ref().and_then(super::spread),
        ]
    }
}

fn leaf(look: &LeafLook<'_>, at: &PageAt<'_>, sums: &mut Sums) {
    let (tree, page) = (&look.tree, look.tree.page());
    sums.add(LEAVES, 1);
    sums.add(
        ROOM,
        u64::from(page.pd_special()).saturating_sub(HEADER_BYTES as u64),
    );
    sums.add(FREE, u64::from(super::free_space(page, at)));
    let next = tree.next;
    if !tree.is_rightmost() {
        sums.add(BACKWARD, u64::from(next < at.block));
        let is_next = Some(next) == at.block.checked_add(1);
        sums.add(if is_next { CONTIGUOUS } else { ELSEWHERE }, 1);
    }
    let all = u64::from(page.line_pointer_count());
    // A high key is never marked dead.
    let [dead, _] = look.dead;
    sums.add(DEAD_ITEMS, dead);
    sums.add(LIVE_ITEMS, all.saturating_sub(dead));
    sums.note(ITEMS, all);
    sums.add(POSTING_LISTS, look.posting_lists);
    sums.add(ROWS, look.rows);
}
