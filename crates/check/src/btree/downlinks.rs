//! Each page of a btree has the downlink that leads to it, and lies between its bounds.
//!
//! Truth: `bt_child_check`, `bt_child_highkey_check` and `bt_downlink_missing_check` in
//! `contrib/amcheck/verify_nbtree.c`.

use std::cmp::Ordering;

use pgclinic_format::BlockNo;
use pgclinic_format::btree::{
    BTP_DELETED, BTP_HALF_DEAD, BTP_INCOMPLETE_SPLIT, BTP_LEAF, BtreeTuple, HEAP_KEY_SPACE_VERSION,
    NO_PAGE,
};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::index_tuple::IndexTuple;
use pgclinic_model::{Rule, document};
use pgclinic_scan::PageReader;

use crate::btree::walk::{self, VisitedBlocks, tree_page};
use crate::btree::{KeyOrder, PageSummary, Tie};
use crate::findings::Findings;
use crate::relation_check::{RelationCheck, RelationCx};

/// A downlink that leads to the wrong page.
pub const BTREE_DOWNLINK: Rule = Rule::from_page(include_str!("../../rules/btree-downlink.md"));

/// A page without a downlink.
pub const BTREE_DOWNLINK_MISSING: Rule =
    Rule::from_page(include_str!("../../rules/btree-downlink-missing.md"));

/// A page beyond the bounds that the level above gives it.
pub const BTREE_CHILD_BOUNDS: Rule =
    Rule::from_page(include_str!("../../rules/btree-child-bounds.md"));

/// Compares the pages of a B-tree with the downlinks of their parents.
pub struct BtreeDownlinks;

impl RelationCheck for BtreeDownlinks {
    fn rules(&self) -> &'static [&'static Rule] {
        const {
            &[
                &BTREE_DOWNLINK,
                &BTREE_DOWNLINK_MISSING,
                &BTREE_CHILD_BOUNDS,
            ]
        }
    }

    fn level(&self) -> document::Level {
        document::Level::Full
    }

    fn method(&self) -> AccessMethod {
        AccessMethod::Btree
    }

    fn check(&self, relation: &RelationCx<'_>, out: &mut Findings) {
        let mut pages = relation.pages();
        let Some(meta) = walk::meta_of(&mut pages) else {
            return;
        };
        let levels = walk::levels(&mut pages, meta);
        for pair in levels.windows(2) {
            let [above, below] = pair else { continue };
            let mut descent = Descent {
                relation,
                rows_decide: meta.version >= HEAP_KEY_SPACE_VERSION,
                parents: Downlinks::new(relation, above.leftmost),
                children: relation.pages(),
                split_waits: false,
            };
            descent.level(below.leftmost, out);
        }
    }
}

/// An entry of an inner page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Downlink {
    parent: BlockNo,
    item: u16,
    child: BlockNo,
}

/// The entries of a level from left to right.
struct Downlinks<'a> {
    pages: PageReader<'a>,
    block: BlockNo,
    item: u16,
    pages_left: u64,
}

impl<'a> Downlinks<'a> {
    fn new(relation: &RelationCx<'a>, leftmost: BlockNo) -> Self {
        Downlinks {
            pages: relation.pages(),
            block: leftmost,
            item: 0,
            pages_left: relation.fork.blocks,
        }
    }

    /// The entry at hand; goes on to the next page where one ends.
    fn current(&mut self) -> Option<Downlink> {
        loop {
            let page = tree_page(&mut self.pages, self.block).filter(|page| !page.is_leaf())?;
            let item = self.item.max(page.first_data());
            if !page.is_ignored()
                && let Some(tuple) = page.tuple(item)
            {
                self.item = item;
                return Some(Downlink {
                    parent: self.block,
                    item,
                    child: tuple.child(),
                });
            }
            (self.block, self.item) = (page.next, 0);
            self.pages_left = self.pages_left.checked_sub(1)?;
            (self.block != NO_PAGE).then_some(())?;
        }
    }

    fn advance(&mut self) {
        self.item += 1;
    }

    /// The bound from below that the entry at hand gives; none for minus infinity.
    fn lower(&mut self) -> Option<Vec<u8>> {
        let item = self.item;
        let page = tree_page(&mut self.pages, self.block)?;
        (item > page.first_data()).then_some(())?;
        Some(page.tuple(item)?.0.item().to_vec())
    }

    /// The bound from above: the next entry on the page, else the page's high key.
    fn upper(&mut self) -> Option<Vec<u8>> {
        let item = self.item;
        let page = tree_page(&mut self.pages, self.block)?;
        let next = page.tuple(item.checked_add(1)?).or_else(|| page.high_key());
        Some(next?.0.item().to_vec())
    }
}

struct Descent<'a> {
    relation: &'a RelationCx<'a>,
    rows_decide: bool,
    parents: Downlinks<'a>,
    children: PageReader<'a>,
    /// The page to the left is the left half of a split that was not finished.
    split_waits: bool,
}

/// What must be known of a child once its page is let go.
struct Child {
    block: BlockNo,
    next: BlockNo,
    is_leaf: bool,
    flags: u16,
}

impl Descent<'_> {
    fn level(&mut self, leftmost: BlockNo, out: &mut Findings) {
        let mut seen = VisitedBlocks::new(self.relation.fork.blocks);
        let mut at = leftmost;
        while at != NO_PAGE && seen.add(at) && !self.relation.is_interrupted() {
            let faces = self.relation.faces();
            let Some(page) = walk::sight(faces, &mut self.children, at) else {
                return;
            };
            let child = Child {
                block: at,
                next: page.next,
                is_leaf: page.has(BTP_LEAF),
                flags: page.flags,
            };
            if child.flags & BTP_DELETED == 0 && !self.child(&child, out) {
                return;
            }
            self.split_waits = child.flags & BTP_INCOMPLETE_SPLIT != 0;
            at = child.next;
        }
        if at == NO_PAGE
            && let Some(left_over) = self.parents.current()
        {
            let words = format!(
                "the entry leads to block {}, which is not in the chain below",
                left_over.child
            );
            self.tell(left_over, words, out);
        }
    }

    /// Holds a child against the entry at hand; `false` when the rest makes no sense any more.
    fn child(&mut self, child: &Child, out: &mut Findings) -> bool {
        let Some(downlink) = self.parents.current() else {
            return self.without_downlink(child, out);
        };
        if downlink.child == child.block {
            self.bounds(child, downlink, out);
            self.parents.advance();
            return true;
        }
        if self.may_lack_downlink(child) {
            return true;
        }
        // Either the entry leads elsewhere, or the child has none: what follows tells.
        let item = self.parents.item;
        self.parents.item += 1;
        let next = self.parents.current();
        if next.is_some_and(|next| next.child == child.block || next.child == child.next) {
            let words = format!(
                "the entry leads to block {}, but block {} stands there",
                downlink.child, child.block
            );
            self.tell(downlink, words, out);
            if next.is_some_and(|next| next.child == child.block) {
                self.parents.advance();
            }
            return true;
        }
        if downlink.parent == self.parents.block {
            self.parents.item = item;
        }
        if downlink.child == child.next {
            return self.without_downlink(child, out);
        }
        let words = format!(
            "the entry leads to block {}, but block {} stands there",
            downlink.child, child.block
        );
        self.tell(downlink, words, out);
        false
    }

    fn tell(&self, downlink: Downlink, words: String, out: &mut Findings) {
        let own = self.relation.draft(&BTREE_DOWNLINK, downlink.parent, words);
        let draft = own.item(downlink.item).fact("child", downlink.child);
        out.add(draft.follows(self.relation.fork, downlink.child));
    }

    fn without_downlink(&mut self, child: &Child, out: &mut Findings) -> bool {
        if !self.may_lack_downlink(child) {
            let words = "no entry of the level above leads to this page";
            let own = self
                .relation
                .draft(&BTREE_DOWNLINK_MISSING, child.block, words);
            out.add(own.follows(self.relation.fork, self.parents.block));
        }
        true
    }

    /// Half dead, the right half of an unfinished split, or the inner part of a branch whose leaf
    /// is half dead.
    fn may_lack_downlink(&mut self, child: &Child) -> bool {
        if child.flags & BTP_HALF_DEAD != 0 || self.split_waits {
            return true;
        }
        if child.is_leaf {
            return false;
        }
        let mut at = child.block;
        for _ in 0..64 {
            let Some(page) = tree_page(&mut self.children, at) else {
                return false;
            };
            if page.is_leaf() {
                return page.has(BTP_HALF_DEAD);
            }
            let Some(down) = page.first_child() else {
                return false;
            };
            at = down;
        }
        false
    }

    fn bounds(&mut self, child: &Child, downlink: Downlink, out: &mut Findings) {
        let Some(keys) = &self.relation.fork.key_order else {
            return;
        };
        if child.flags & BTP_HALF_DEAD != 0 {
            return;
        }
        let (lower, upper) = (self.parents.lower(), self.parents.upper());
        let faces = self.relation.faces();
        let Some(page) = walk::sight(faces, &mut self.children, child.block) else {
            return;
        };
        let found = below_lower(keys, page, tuple_of(lower.as_deref()), self.rows_decide)
            .or_else(|| other_high_key(keys, page, tuple_of(upper.as_deref()), self.rows_decide));
        if let Some((item, words)) = found {
            let own = self.relation.draft(&BTREE_CHILD_BOUNDS, child.block, words);
            let draft = own
                .item(item)
                .fact("parent", downlink.parent)
                .fact("parent_item", downlink.item);
            out.add(draft.follows(self.relation.fork, downlink.parent));
        }
    }
}

fn tuple_of(bytes: Option<&[u8]>) -> Option<BtreeTuple<'_>> {
    IndexTuple::parse(bytes?).map(BtreeTuple)
}

fn below_lower(
    keys: &KeyOrder,
    page: PageSummary<'_>,
    lower: Option<BtreeTuple<'_>>,
    rows_decide: bool,
) -> Option<(u16, String)> {
    let (lower, (item, tuple)) = (lower?, page.first?);
    let is_below = if rows_decide {
        keys.compare(lower, tuple, Tie::Lowest)? != Ordering::Less
    } else {
        keys.compare(lower, tuple, Tie::Keys)? == Ordering::Greater
    };
    let words = "the entry is not beyond the key that leads to this page";
    is_below.then(|| (item, words.to_owned()))
}

/// After a split that was not finished the high key is less than the next entry's key.
fn other_high_key(
    keys: &KeyOrder,
    page: PageSummary<'_>,
    upper: Option<BtreeTuple<'_>>,
    rows_decide: bool,
) -> Option<(u16, String)> {
    let (upper, high_key) = (upper?, page.high_key?);
    if page.has(BTP_INCOMPLETE_SPLIT) {
        return None;
    }
    let tie = if rows_decide { Tie::Lowest } else { Tie::Keys };
    let differs = keys.compare(high_key, upper, tie)? != Ordering::Equal;
    let words = "the page's high key is not the key of the next entry above";
    differs.then(|| (1, words.to_owned()))
}
