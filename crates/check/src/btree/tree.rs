//! The pages of each level of a btree, from the root down and from left to right.
//!
//! Truth: `bt_check_level_from_leftmost` and `bt_right_page_check_scankey` in
//! `contrib/amcheck/verify_nbtree.c`.

use std::cmp::Ordering;

use pgclinic_format::BlockNo;
use pgclinic_format::btree::{
    BTP_DELETED, BTP_INCOMPLETE_SPLIT, BTP_ROOT, BtreePage, BtreeTuple, HEAP_KEY_SPACE_VERSION,
    Meta, NO_PAGE,
};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::index_tuple::IndexTuple;
use pgclinic_model::{Rule, document};
use pgclinic_scan::PageReader;

use crate::btree::walk::{self, VisitedBlocks, tree_page};
use crate::btree::{KeyOrder, PageSummary, Tie, not_in_collation_order};
use crate::findings::{Draft, Findings};
use crate::index::words;
use crate::relation_check::{RelationCheck, RelationCx};

/// Pages without a place in the tree that are told one by one.
const UNREACHED_TOLD: usize = 20;

/// The meta page leads to a page that is no root.
pub const BTREE_ROOT: Rule = Rule::from_page(include_str!("../../rules/btree-root.md"));

/// Neighbours that do not agree.
pub const BTREE_SIBLING: Rule = Rule::from_page(include_str!("../../rules/btree-sibling.md"));

/// A page on the wrong level.
pub const BTREE_LEVEL: Rule = Rule::from_page(include_str!("../../rules/btree-level.md"));

/// Neighbours in the wrong order.
pub const BTREE_PAGE_ORDER: Rule = Rule::from_page(include_str!("../../rules/btree-page-order.md"));

/// A page that nothing leads to.
pub const BTREE_PAGE_UNREACHABLE: Rule =
    Rule::from_page(include_str!("../../rules/btree-page-unreachable.md"));

/// Walks the levels of a B-tree from the root down.
pub struct BtreeTree;

impl RelationCheck for BtreeTree {
    fn rules(&self) -> &'static [&'static Rule] {
        const {
            &[
                &BTREE_ROOT,
                &BTREE_SIBLING,
                &BTREE_LEVEL,
                &BTREE_PAGE_ORDER,
                &BTREE_PAGE_UNREACHABLE,
            ]
        }
    }

    fn level(&self) -> document::Level {
        document::Level::Structure
    }

    fn method(&self) -> AccessMethod {
        AccessMethod::Btree
    }

    fn check(&self, relation: &RelationCx<'_>, out: &mut Findings) {
        tell_what_is_unordered(relation, out);
        let mut pages = relation.pages();
        let Some(meta) = walk::meta_of(&mut pages) else {
            return;
        };
        let mut walk = Walk {
            relation,
            meta,
            seen: VisitedBlocks::new(relation.fork.blocks),
            broken: false,
            high_key: Vec::new(),
        };
        walk.roots(&mut pages, out);
        for level in walk::levels(&mut pages, meta) {
            walk.level(&mut pages, level, out);
        }
        if !walk.broken {
            walk.unreached(&mut pages, out);
        }
    }
}

fn tell_what_is_unordered(relation: &RelationCx<'_>, out: &mut Findings) {
    match &relation.fork.key_order {
        Some(keys) => {
            let asked = not_in_collation_order::columns_asked(relation);
            let unordered = keys.unordered().iter();
            for unordered in unordered.filter(|own| !asked.contains(&own.column)) {
                relation.not_checked(out, "order of keys", &unordered.why, true);
            }
        }
        None => {
            let why = "the catalogs do not tell its columns";
            relation.not_checked(out, "order of keys", why, false);
        }
    }
}

/// A root whose split waits for the level above: the meta page goes on to name its left half.
fn is_split_root(page: BtreePage<'_>) -> bool {
    page.has(BTP_INCOMPLETE_SPLIT) && page.prev == NO_PAGE && page.next != NO_PAGE
}

fn is_root(pages: &mut PageReader<'_>, block: BlockNo) -> bool {
    let page = tree_page(pages, block);
    page.is_some_and(|page| page.has(BTP_ROOT) && !page.has(BTP_DELETED))
}

struct Walk<'a> {
    relation: &'a RelationCx<'a>,
    meta: Meta,
    seen: VisitedBlocks,
    broken: bool,
    /// The high key of the page to the left; empty without one.
    high_key: Vec<u8>,
}

impl Walk<'_> {
    fn roots(&mut self, pages: &mut PageReader<'_>, out: &mut Findings) {
        let meta = self.meta;
        if (meta.root == NO_PAGE) != (meta.fast_root == NO_PAGE) {
            let (root, fast) = (meta.root, meta.fast_root);
            let words =
                format!("the root is block {root} and the fast root block {fast}: block 0 is none");
            out.add(self.relation.draft(&BTREE_ROOT, 0, words));
        }
        for (name, block, level) in [
            ("root", meta.root, meta.level),
            ("fast root", meta.fast_root, meta.fast_level),
        ] {
            if block == NO_PAGE || u64::from(block) >= self.relation.fork.blocks {
                self.broken |= block != NO_PAGE;
                continue;
            }
            let words = match tree_page(pages, block) {
                None => format!("the {name}, block {block}, is no page of the tree"),
                Some(page) if page.has(BTP_DELETED) => {
                    format!("the {name}, block {block}, was deleted")
                }
                Some(page) if page.level != level => {
                    format!(
                        "the {name}, block {block}, stands on level {}, not {level}",
                        page.level
                    )
                }
                Some(page) if is_split_root(page) => continue,
                Some(page) if name == "root" && !page.has(BTP_ROOT) => {
                    format!("block {block} is not marked as the root")
                }
                Some(page) if (page.prev, page.next) != (NO_PAGE, NO_PAGE) => {
                    format!(
                        "the {name}, block {block}, has neighbours {} and {}",
                        page.prev, page.next
                    )
                }
                Some(_) => continue,
            };
            self.broken = true;
            let draft = self.relation.draft(&BTREE_ROOT, 0, words);
            out.add(
                draft
                    .fact("block", block)
                    .follows(self.relation.fork, block),
            );
        }
    }

    /// Follows right links from the leftmost page.
    fn level(&mut self, pages: &mut PageReader<'_>, level: walk::Level, out: &mut Findings) {
        let (mut left, mut at) = (NO_PAGE, level.leftmost);
        self.high_key.clear();
        while at != NO_PAGE && !self.relation.is_interrupted() {
            // The page with the link has a finding of its own: `btree-link-beyond-end`.
            if u64::from(at) >= self.relation.fork.blocks {
                self.broken = true;
                return;
            }
            if !self.seen.add(at) {
                let words = format!("the chain comes back to block {at}");
                self.tell_sibling(left, at, words, out);
                return;
            }
            let Some(page) = walk::sight(self.relation.faces(), pages, at) else {
                let words =
                    format!("its right link leads to block {at}, which is no page of the tree");
                let zeroed = pages
                    .bytes(at)
                    .is_some_and(|page| page.iter().all(|byte| *byte == 0));
                let says = words::zero_page(self.relation.fork, at);
                let says = says.filter(|_| zeroed && level.level == 0);
                let draft = self.sibling(left, at, words);
                out.add(says.into_iter().fold(draft, Draft::server_says));
                return;
            };
            let Some(next) = self.page(page, (left, at), level.level, out) else {
                return;
            };
            if !page.has(BTP_DELETED) {
                left = at;
            }
            at = next;
        }
    }

    /// Looks at one page of a chain and says where it goes on.
    fn page(
        &mut self,
        page: PageSummary<'_>,
        (left, at): (BlockNo, BlockNo),
        level: u32,
        out: &mut Findings,
    ) -> Option<BlockNo> {
        if page.has(BTP_DELETED) {
            let words = format!("its right link leads to block {at}, which was deleted");
            self.tell_sibling(left, at, words, out);
            return Some(page.next);
        }
        if page.level != level {
            let words = format!(
                "the page stands on level {}, its left neighbours on {level}",
                page.level
            );
            self.broken = true;
            let draft = self.relation.draft(&BTREE_LEVEL, at, words);
            out.add(draft.follows(self.relation.fork, left));
            return None;
        }
        if page.prev != left {
            let words = match left {
                NO_PAGE => format!(
                    "btpo_prev is {}, but no page leads here from the left",
                    page.prev
                ),
                _ => format!(
                    "btpo_prev is {}, but the page to the left is {left}",
                    page.prev
                ),
            };
            self.broken = true;
            let draft = self.relation.draft(&BTREE_SIBLING, at, words);
            out.add(draft.follows(self.relation.fork, left));
        }
        if !page.is_ignored() {
            self.order(page, (left, at), out);
        }
        Some(page.next)
    }

    fn tell_sibling(&mut self, left: BlockNo, at: BlockNo, words: String, out: &mut Findings) {
        out.add(self.sibling(left, at, words));
    }

    fn sibling(&mut self, left: BlockNo, at: BlockNo, words: String) -> Draft {
        self.broken = true;
        let draft = self.relation.draft(&BTREE_SIBLING, left, words);
        draft.fact("link", at).follows(self.relation.fork, at)
    }

    /// Holds the page against the high key of its left neighbour, and keeps its own.
    fn order(&mut self, page: PageSummary<'_>, (left, at): (BlockNo, BlockNo), out: &mut Findings) {
        let bound = IndexTuple::parse(&self.high_key).map(BtreeTuple);
        if let (Some(keys), Some(bound)) = (&self.relation.fork.key_order, bound) {
            let high_key = page.high_key.map(|high_key| (1, high_key));
            for (item, tuple) in page.first.into_iter().chain(high_key) {
                if self.is_wrong(keys, bound, tuple) {
                    let words = format!(
                        "the entry is not beyond the high key of block {left}, the page to the left"
                    );
                    let draft = self.relation.draft(&BTREE_PAGE_ORDER, at, words).item(item);
                    out.add(draft.follows(self.relation.fork, left));
                    break;
                }
            }
        }
        self.high_key.clear();
        if let Some(high_key) = page.high_key {
            self.high_key.extend_from_slice(high_key.0.item());
        }
    }

    fn is_wrong(&self, keys: &KeyOrder, bound: BtreeTuple<'_>, tuple: BtreeTuple<'_>) -> bool {
        match self.meta.version {
            HEAP_KEY_SPACE_VERSION.. => matches!(
                keys.compare(bound, tuple, Tie::Lowest),
                Some(Ordering::Greater | Ordering::Equal)
            ),
            _ => keys.compare(bound, tuple, Tie::Keys) == Some(Ordering::Greater),
        }
    }

    fn unreached(&self, pages: &mut PageReader<'_>, out: &mut Findings) {
        let blocks = BlockNo::try_from(self.relation.fork.blocks).unwrap_or(BlockNo::MAX);
        let mut told = 0;
        for block in (1..blocks).filter(|block| !self.seen.has(*block)) {
            if self.meta.root == NO_PAGE && is_root(pages, block) {
                let words = format!("no root is named, and block {block} is marked as one");
                let draft = self.relation.draft(&BTREE_ROOT, 0, words);
                let draft = draft.fact("block", block);
                out.add(draft.follows(self.relation.fork, block));
                continue;
            }
            let in_use = pages.page(block).is_some_and(|page| !walk::is_free(page));
            if in_use && told < UNREACHED_TOLD {
                told += 1;
                let words =
                    "no page of the tree leads to this one, and it is not marked as deleted";
                out.add(self.relation.draft(&BTREE_PAGE_UNREACHABLE, block, words));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgclinic_format::Page;
    use pgclinic_format::build::{PageBuilder, put_u16, put_u32};

    #[test]
    fn a_root_whose_split_was_interrupted_is_no_damage() {
        let is_split = |links: (u32, u32), flags: u16| {
            let mut special = [0; 16];
            put_u32(&mut special, 0, links.0);
            put_u32(&mut special, 4, links.1);
            put_u16(&mut special, 12, flags);
            let bytes = PageBuilder::new(8192, &special).finish(1);
            let page = Page::parse(&bytes).and_then(BtreePage::parse);
            is_split_root(page.expect("a page of a btree"))
        };
        assert!(is_split((0, 2), 0x0081));
        assert!(!is_split((0, 2), 0x0001) && !is_split((3, 2), 0x0081));
    }
}
