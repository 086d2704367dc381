//! Two live rows with one key in a unique index.
//!
//! Truth: `bt_entry_unique_check` in `contrib/amcheck/verify_nbtree.c` (17 and later).

use std::cmp::Ordering;

use pgclinic_cluster::Cluster;
use pgclinic_format::BlockNo;
use pgclinic_format::btree::{BtreePage, BtreeTuple, NO_PAGE};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::index_tuple::{INDEX_NULL_MASK, IndexTuple};
use pgclinic_format::types::Tid;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;
use pgclinic_scan::PageReader;

use crate::btree::walk::{self, VisitedBlocks, tree_page};
use crate::btree::{KeyOrder, PageSummary, Tie};
use crate::check::ForkCx;
use crate::entries::heap::HeapItems;
use crate::findings::Findings;
use crate::relation_check::{RelationCheck, RelationCx, draft_at};

/// Versions of rows with one key that are gathered before the dead ones among them are left out.
const VERSIONS_MAX: usize = 10_000;
/// Live rows with one key that are counted.
const LIVE_MAX: usize = 1_000_000;

/// The rule.
pub const UNIQUE_KEY_DUPLICATE: Rule =
    Rule::from_page(include_str!("../../rules/unique-key-duplicate.md"));

/// See [`UNIQUE_KEY_DUPLICATE`].
pub struct UniqueKeyDuplicate;

impl RelationCheck for UniqueKeyDuplicate {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&UNIQUE_KEY_DUPLICATE] }
    }

    fn level(&self) -> Level {
        Level::Full
    }

    fn method(&self) -> AccessMethod {
        AccessMethod::Btree
    }

    fn check(&self, relation: &RelationCx<'_>, out: &mut Findings) {
        let index = relation.fork.relation.and_then(|own| own.index.as_ref());
        let Some(index) = index.filter(|index| index.unique && index.valid && index.live) else {
            return;
        };
        let table = relation.main_fork_of(index.table);
        let (Some(cluster), Some(keys), Some(table)) =
            (relation.fork.cluster, &relation.fork.key_order, table)
        else {
            return;
        };
        if !relation.settled() {
            return;
        }
        let mut leaves = Leaves {
            keys,
            nulls_are_equal: index.nulls_not_distinct,
            last: Vec::new(),
            group: Vec::new(),
            sifted: 0,
        };
        let mut rows = Rows {
            relation,
            cluster,
            table,
            pages: relation.pages_of(table),
            items: HeapItems::default(),
            read: None,
        };
        leaves.walk(relation, &mut rows, out);
    }
}

/// Walks the leaves and gathers rows of equal keys.
struct Leaves<'a> {
    keys: &'a KeyOrder,
    nulls_are_equal: bool,
    /// The last entry of the page before.
    last: Vec<u8>,
    /// Rows of one key.
    group: Vec<Tid>,
    /// So many of them are known to be live.
    sifted: usize,
}

impl Leaves<'_> {
    fn walk(&mut self, relation: &RelationCx<'_>, rows: &mut Rows<'_>, out: &mut Findings) {
        let mut pages = relation.pages();
        let Some(meta) = walk::meta_of(&mut pages) else {
            return;
        };
        let Some(leaves) = walk::levels(&mut pages, meta).last().copied() else {
            return;
        };
        let mut seen = VisitedBlocks::new(relation.fork.blocks);
        let mut at = leaves.leftmost;
        while at != NO_PAGE && seen.add(at) && !relation.is_interrupted() {
            let face = relation.faces().and_then(|faces| faces.of(at));
            if let Some(next) = face.and_then(|face| self.distinct_page(face, rows, out)) {
                at = next;
                continue;
            }
            let Some(page) = tree_page(&mut pages, at).filter(BtreePage::is_leaf) else {
                break;
            };
            if !page.is_ignored() {
                self.page(page, rows, out);
            }
            at = page.next;
        }
        self.close(rows, out);
    }

    /// Of a page on which no two entries have one key only the first and the last are asked; gives
    /// the next page. Nothing where the page itself is to be read.
    fn distinct_page(
        &mut self,
        face: PageSummary<'_>,
        rows: &mut Rows<'_>,
        out: &mut Findings,
    ) -> Option<BlockNo> {
        let (first, last) = (face.first?.1, face.last_of_distinct?);
        let null = |tuple: BtreeTuple<'_>| tuple.0.has(INDEX_NULL_MASK);
        (!null(first) && !null(last)).then_some(())?;
        let kept = std::mem::take(&mut self.last);
        let before = IndexTuple::parse(&kept).map(BtreeTuple);
        let same = before.is_some_and(|before| self.are_equal(before, first));
        if !same {
            self.close(rows, out);
        }
        self.group.extend(first.rows());
        if first.0.item() != last.0.item() {
            self.close(rows, out);
            self.group.extend(last.rows());
        }
        self.last = last.0.item().to_vec();
        Some(face.next)
    }

    fn page(&mut self, page: BtreePage<'_>, rows: &mut Rows<'_>, out: &mut Findings) {
        let last = std::mem::take(&mut self.last);
        let mut before = IndexTuple::parse(&last).map(BtreeTuple);
        for (_, tuple) in page.data() {
            if !self.nulls_are_equal && tuple.0.has(INDEX_NULL_MASK) && self.keys.has_null(tuple) {
                self.close(rows, out);
                before = None;
                continue;
            }
            let same = before.is_some_and(|before| self.are_equal(before, tuple));
            if !same {
                self.close(rows, out);
            }
            if self.group.len() >= self.sifted + VERSIONS_MAX {
                self.sift(rows);
            }
            self.group.extend(tuple.rows());
            before = Some(tuple);
        }
        let kept = before.map(|tuple| tuple.0.item().to_vec());
        self.last = kept.unwrap_or_default();
    }

    fn are_equal(&self, a: BtreeTuple<'_>, b: BtreeTuple<'_>) -> bool {
        self.keys.compare(a, b, Tie::Keys) == Some(Ordering::Equal)
    }

    /// Keeps only the live ones of what was gathered since the last time.
    fn sift(&mut self, rows: &mut Rows<'_>) {
        let new = self.group.split_off(self.sifted);
        let room = LIVE_MAX.saturating_sub(self.sifted);
        let live = new.into_iter().filter(|tid| rows.is_live(*tid));
        self.group.extend(live.take(room));
        self.sifted = self.group.len();
    }

    fn close(&mut self, rows: &mut Rows<'_>, out: &mut Findings) {
        if self.group.len() > 1 {
            self.sift(rows);
            rows.tell_if_several(&mut self.group, out);
        }
        self.group.clear();
        self.sifted = 0;
    }
}

/// Asks the table which rows are live.
struct Rows<'a> {
    relation: &'a RelationCx<'a>,
    cluster: &'a Cluster,
    table: &'a ForkCx<'a>,
    pages: PageReader<'a>,
    items: HeapItems,
    /// The block that `items` is of.
    read: Option<BlockNo>,
}

impl Rows<'_> {
    fn tell_if_several(&mut self, live: &mut Vec<Tid>, out: &mut Findings) {
        live.sort_unstable();
        live.dedup();
        let [first, .., last] = live.as_slice() else {
            return;
        };
        let index = self.relation.fork.relation;
        let name = index.map_or_else(String::new, pgclinic_cluster::Relation::qualified_name);
        let words = format!(
            "{} live rows have one key in unique index {name}: {first}, {last}",
            live.len()
        );
        let own = draft_at(self.table, &UNIQUE_KEY_DUPLICATE, Some(last.block), words);
        let draft = own
            .item(last.offset)
            .rows(live.len() as u64)
            .fact("index", name)
            .fact("other_row", first.to_string());
        out.add(
            draft
                .follows(self.table, first.block)
                .follows_fork(self.relation.fork),
        );
    }

    fn is_live(&mut self, tid: Tid) -> bool {
        let block: BlockNo = tid.block;
        if self.read != Some(block) {
            match self.pages.page(block) {
                Some(page) => self.items.read(page, block, self.cluster),
                None => self.items.clear(),
            }
            self.read = Some(block);
        }
        self.items.live.iter().any(|(root, _)| *root == tid.offset)
    }
}
