//! What `pgstatindex` and `bt_multi_page_stats` say of a btree: levels, density, fragmentation,
//! items.
//!
//! Truth: `pgstatindex_impl` in `contrib/pgstattuple/pgstatindex.c`, `GetBTPageStatistics` in
//! `contrib/pageinspect/btreefuncs.c`.

use pgclinic_cluster::ForkContext;
use pgclinic_format::btree::{BTP_DELETED, BtreePage, Meta};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_model::FigureKind;
use pgclinic_model::document::Figure;

use super::percent::{percent, rest_percent};
use super::sums::{Counts, Highest};
use super::{LeafLook, PageAt, PageMeasure, Sums, Whole, bytes, count, number, share};

sums! {
    /// Measures levels, density and fragmentation of a B-tree, as `pgstatindex` does.
    pub struct BtreeLayout {
        version: Highest,
        level: Highest,
        root: Highest,
        internal_pages: u64,
        leaf_pages: u64,
        empty_pages: u64,
        deleted_pages: u64,
        /// Bytes that the leaves have for items, and those that are left.
        room: u64,
        free: u64,
        backward_links: u64,
        contiguous_links: u64,
        other_links: u64,
        live_items: u64,
        dead_items: u64,
        posting_lists: u64,
        rows: u64,
        items_on_leaf: Counts,
    }
}

impl PageMeasure for BtreeLayout {
    const SECTION: &'static str = "index";
    const FIGURES: &'static [FigureKind] = &[
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
    ];

    fn fits(fork: &ForkContext<'_>) -> bool {
        fork.method == Some(AccessMethod::Btree)
    }

    fn add(&mut self, at: &PageAt<'_>) -> bool {
        if at.block == 0 {
            let Some(meta) = Meta::parse(at.page) else {
                return false;
            };
            self.version.note(meta.version);
            self.level.note(meta.level);
            self.root.note(meta.root);
            return true;
        }
        let Some(tree) = BtreePage::parse(at.page) else {
            return false;
        };
        if tree.has(BTP_DELETED) {
            self.deleted_pages += 1;
        } else if tree.is_ignored() {
            self.empty_pages += 1;
        } else if tree.is_leaf() {
            at.leaf.into_iter().for_each(|look| self.add_leaf(look, at));
        } else {
            self.internal_pages += 1;
        }
        true
    }

    fn figures(&self, whole: &Whole<'_>) -> Vec<Option<Figure>> {
        let pages =
            1 + self.internal_pages + self.leaf_pages + self.empty_pages + self.deleted_pages;
        vec![
            self.version.figure(),
            self.level.figure(),
            count(whole.bytes(pages)),
            self.root.figure(),
            count(self.internal_pages),
            count(self.leaf_pages),
            count(self.empty_pages),
            count(self.deleted_pages),
            rest_percent(self.free as f64, self.room as f64),
            percent(self.backward_links as f64, self.leaf_pages as f64),
            count(self.contiguous_links),
            count(self.other_links),
            count(self.live_items),
            count(self.dead_items),
            count(self.posting_lists),
            count(self.rows),
            self.items_on_leaf.figure(),
        ]
    }
}

impl BtreeLayout {
    fn add_leaf(&mut self, look: &LeafLook<'_>, at: &PageAt<'_>) {
        let (tree, page) = (&look.tree, at.page);
        self.leaf_pages += 1;
        self.room += u64::from(page.pd_special()).saturating_sub(HEADER_BYTES as u64);
        self.free += u64::from(super::free_space(at));
        if !tree.is_rightmost() {
            self.backward_links += u64::from(tree.next < at.block);
            if Some(tree.next) == at.block.checked_add(1) {
                self.contiguous_links += 1
            } else {
                self.other_links += 1
            }
        }
        let all = u64::from(page.line_pointer_count());
        // A high key is never marked dead.
        let dead = look.dead.count;
        self.dead_items += dead;
        self.live_items += all.saturating_sub(dead);
        self.items_on_leaf.note(all);
        self.posting_lists += look.posting_lists;
        self.rows += look.rows;
    }
}
