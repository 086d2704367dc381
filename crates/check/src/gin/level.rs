//! The walk over the trees of a GIN index: level by level, each along its right links, beside the
//! links from the level above.
//!
//! ```text
//! parents    (2, k) (5, m) ────► (9, )       each link with the highest key of the page below
//!              │      │            │
//! level        2 ───► 5 ─► 7 ────► 9         7: the split of 5 is not complete, no link names it yet
//! ```
//!
//! Each page is visited once, so that any cycle ends. Truth: `src/backend/access/gin/ginbtree.c`.

use std::cmp::Ordering;

use pgclinic_format::BlockNo;
use pgclinic_format::gin::{META_BLOCK, Opaque, PageKind, ROOT_BLOCK};
use pgclinic_model::Rule;
use pgclinic_scan::PageReader;

use super::keys::KeyOrders;
use super::page_bounds::{Bound, Downlink, PageBounds};
use super::reached::Reached;
use crate::findings::{Draft, Findings};
use crate::gin::tree::{GIN_KEY_ORDER, GIN_POSTING_TREE_ORDER, GIN_TREE_LINK};
use crate::relation_check::RelationCx;

/// Levels of a tree that are walked; a tree of full pages needs ten for all blocks there can be.
const LEVELS_MAX: usize = 64;
/// Links of one level that contradict each other, told before the level is only walked.
const CONTRADICTIONS_MAX: usize = 8;

/// The two kinds of trees.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tree {
    Keys,
    Rows,
}

impl Tree {
    fn kind(self, leaf: bool) -> PageKind {
        match (self, leaf) {
            (Tree::Keys, true) => PageKind::EntryLeaf,
            (Tree::Keys, false) => PageKind::EntryInner,
            (Tree::Rows, true) => PageKind::PostingLeaf,
            (Tree::Rows, false) => PageKind::PostingInner,
        }
    }

    fn has(self, kind: PageKind) -> bool {
        kind == self.kind(true) || kind == self.kind(false)
    }
}

/// A walk over one index.
pub(crate) struct Walk<'r, 'a> {
    pub(super) relation: &'r RelationCx<'a>,
    pub(crate) keys: Option<KeyOrders<'a>>,
    pub(super) reached: Reached,
    pub(super) pages: PageReader<'a>,
    row_pages: PageReader<'a>,
}

/// Where a level is: the page before, and what is known of its end.
struct Level<'l> {
    tree: Tree,
    leaf: Option<bool>,
    links: Links,
    left: Option<Left>,
    /// Highest key that the links allow on the page and, after a split, on its right neighbour.
    highest: Option<Bound>,
    contradictions: usize,
    first_below: Option<BlockNo>,
    out: &'l mut Findings,
}

struct Left {
    block: BlockNo,
    split: bool,
    last: Option<Bound>,
}

/// How the level above goes on.
enum Step {
    /// It names the page.
    Named(Downlink),
    /// It does not.
    Unnamed,
    /// It names another page that comes first.
    Instead(BlockNo),
}

/// The links from the level above, in order.
#[derive(Default)]
struct Links {
    /// The next page of the level above.
    next: Option<BlockNo>,
    page: std::vec::IntoIter<Downlink>,
    ahead: Option<Downlink>,
    /// The last page of the level above that was read.
    last: Option<BlockNo>,
    /// Pages of the level above that may still be read.
    pages_left: u64,
    /// A page of the level above could not be read: what follows is not named.
    broken: bool,
}

impl<'r, 'a> Walk<'r, 'a> {
    pub(crate) fn new(relation: &'r RelationCx<'a>) -> Self {
        Walk {
            relation,
            keys: KeyOrders::of(relation),
            reached: Reached::none(relation.fork.blocks),
            pages: relation.pages(),
            row_pages: relation.pages(),
        }
    }

    /// The tree of keys and every tree of row numbers; the list of waiting entries is only noted.
    pub(crate) fn all(&mut self, out: &mut Findings) {
        if self.relation.fork.blocks == 0 {
            return;
        }
        self.reached.note(META_BLOCK);
        // The list has a check of its own.
        self.pending(&mut Findings::default());
        self.tree(Tree::Keys, ROOT_BLOCK, META_BLOCK, out);
    }

    pub(crate) fn into_reached(self) -> Reached {
        self.reached
    }

    fn tree(&mut self, tree: Tree, root: BlockNo, named_by: BlockNo, out: &mut Findings) {
        let mut start = root;
        let mut links = Links::default();
        for depth in 0..LEVELS_MAX {
            let mut level = Level {
                tree,
                leaf: None,
                links,
                left: None,
                highest: None,
                contradictions: 0,
                first_below: None,
                out,
            };
            let named_by = if depth == 0 { Some(named_by) } else { None };
            self.level(&mut level, start, named_by);
            let Some(below) = level.first_below else {
                return;
            };
            links = Links {
                next: Some(start),
                pages_left: self.relation.fork.blocks,
                ..Links::default()
            };
            self.advance(tree, &mut links);
            start = below;
        }
    }

    /// Walks one level from `start`; the root's is named by another kind of page.
    fn level(&mut self, level: &mut Level<'_>, start: BlockNo, root_of: Option<BlockNo>) {
        let mut at = Some(start);
        while let Some(block) = at {
            if self.relation.is_interrupted() {
                return;
            }
            let link = match self.step(level, block, root_of.is_some()) {
                Step::Named(link) => Some(link),
                Step::Unnamed => None,
                Step::Instead(child) => {
                    at = Some(child);
                    continue;
                }
            };
            let named_by = link.as_ref().map(|link| link.parent).or(root_of);
            let Some(page) = self.visit(level, block, named_by) else {
                level.left = None;
                level.highest = None;
                at = level.links.ahead.as_ref().map(|link| link.child);
                continue;
            };
            if let Some(link) = link {
                level.highest = link.highest;
            } else if level.left.as_ref().is_none_or(|left| !left.split) {
                level.highest = None;
            }
            self.compare(level, block, &page, named_by);
            if let Some(parents) = page
                .downlinks
                .first()
                .filter(|_| level.first_below.is_none())
            {
                level.first_below = Some(parents.child);
            }
            for root in &page.trees {
                self.tree(Tree::Rows, *root, block, level.out);
            }
            at = self.next_of(level, block, &page, root_of.is_some());
            level.left = Some(Left {
                block,
                split: page.split,
                last: page.last,
            });
        }
    }

    /// What the level above says of the next page. A page without a link is right after a split
    /// that is not complete, or something is wrong.
    fn step(&mut self, level: &mut Level<'_>, block: BlockNo, is_root: bool) -> Step {
        if is_root {
            return Step::Unnamed;
        }
        let is_next = |link: &Downlink| link.child == block;
        if level.links.ahead.as_ref().is_some_and(is_next) {
            let link = level.links.ahead.take();
            self.advance(level.tree, &mut level.links);
            return link.map_or(Step::Unnamed, Step::Named);
        }
        let after_split = level.left.as_ref().is_some_and(|left| left.split);
        let nothing_to_say = level.links.broken && level.links.ahead.is_none();
        if after_split || nothing_to_say || level.contradictions >= CONTRADICTIONS_MAX {
            return Step::Unnamed;
        }
        level.contradictions += 1;
        self.tell_contradiction(level, block);
        // A right link that skips one page is wrong itself, and a page right before the one that is
        // named has only lost its link; else the link from above is given up.
        let skips = level.links.page.as_slice().first().is_some_and(is_next);
        match level.links.ahead.as_ref().map(|link| link.child) {
            Some(child) if skips => return Step::Instead(child),
            Some(child) if self.right_of(level.tree, block) == Some(child) => {}
            _ => self.advance(level.tree, &mut level.links),
        }
        Step::Unnamed
    }

    fn right_of(&mut self, tree: Tree, block: BlockNo) -> Option<BlockNo> {
        let reader = match tree {
            Tree::Keys => &mut self.pages,
            Tree::Rows => &mut self.row_pages,
        };
        Opaque::of(reader.page(block)?)?.right()
    }

    fn tell_contradiction(&self, level: &mut Level<'_>, block: BlockNo) {
        let left = level.left.as_ref().map_or(block, |left| left.block);
        let (message, parent) = match &level.links.ahead {
            Some(link) => {
                let (parent, child) = (link.parent, link.child);
                let message = format!(
                    "block {parent} above names block {child} next, not the right neighbour {block}"
                );
                (message, Some(parent))
            }
            None => {
                let message = format!("no page above names the right neighbour {block}");
                (message, level.links.last)
            }
        };
        let draft = self
            .draft(&GIN_TREE_LINK, left, message)
            .fact("link", block);
        level.out.add(self.following(draft, [parent, Some(block)]));
    }

    /// Reads a page that should be one of the level.
    fn visit(
        &mut self,
        level: &mut Level<'_>,
        block: BlockNo,
        named_by: Option<BlockNo>,
    ) -> Option<PageBounds> {
        // Links behind the end are told page by page.
        if u64::from(block) >= self.relation.fork.blocks {
            return None;
        }
        let left = level.left.as_ref().map(|left| left.block);
        let from = named_by.or(left).unwrap_or(block);
        if !self.reached.note(block) {
            let message = format!("block {from} leads to block {block}, which is in use elsewhere");
            let draft = self
                .draft(&GIN_TREE_LINK, from, message)
                .fact("link", block);
            level.out.add(self.following(draft, [Some(block), left]));
            return None;
        }
        let reader = match level.tree {
            Tree::Keys => &mut self.pages,
            Tree::Rows => &mut self.row_pages,
        };
        let Some(page) = reader.page(block) else {
            if reader
                .bytes(block)
                .is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
            {
                let message = format!("the page is empty, and block {from} leads to it");
                let draft = self.draft(&GIN_TREE_LINK, block, message);
                level.out.add(self.following(draft, [Some(from), left]));
            }
            return None;
        };
        // Flags that contradict each other are told page by page.
        let page = PageBounds::of(page, block, self.keys.as_ref())?;
        let expected = level.leaf.map(|leaf| level.tree.kind(leaf));
        let fits = level.tree.has(page.kind) && expected.is_none_or(|kind| kind == page.kind);
        if !fits {
            let wanted = match (expected, level.tree) {
                (Some(kind), _) => kind.words(),
                (None, Tree::Keys) => "a page of keys",
                (None, Tree::Rows) => "a posting tree page",
            };
            let message = format!(
                "block {from} leads here for {wanted}, this is {}",
                page.kind.words()
            );
            let draft = self.draft(&GIN_TREE_LINK, block, message);
            level.out.add(self.following(draft, [Some(from), left]));
            return None;
        }
        level.leaf = Some(page.kind == level.tree.kind(true));
        Some(page)
    }

    /// Order on the page, against its left neighbour and against the link that names it.
    fn compare(
        &self,
        level: &mut Level<'_>,
        block: BlockNo,
        page: &PageBounds,
        named_by: Option<BlockNo>,
    ) {
        let rule = match level.tree {
            Tree::Keys => &GIN_KEY_ORDER,
            Tree::Rows => &GIN_POSTING_TREE_ORDER,
        };
        if let Some(item) = page.disorder {
            let message = format!("the key of entry {item} is not above the one before");
            level.out.add(self.draft(rule, block, message).item(item));
        }
        let keys = self.keys.as_ref();
        let order = |a: &Option<Bound>, b: &Option<Bound>| a.as_ref()?.compare(b.as_ref()?, keys);
        if let Some(left) = &level.left
            && order(&left.last, &page.first).is_some_and(Ordering::is_ge)
        {
            let what = words(level.tree);
            let message = format!(
                "the first {what} is not above the last one of the left neighbour {}",
                left.block
            );
            let draft = self.draft(rule, block, message);
            level
                .out
                .add(self.following(draft, [Some(left.block), named_by]));
        }
        if order(&page.last, &level.highest).is_some_and(Ordering::is_gt) {
            let what = words(level.tree);
            let parent =
                named_by.map_or_else(String::new, |block| format!(" that block {block} allows"));
            let message = format!("the last {what} is above the highest one{parent}");
            let draft = self.draft(rule, block, message);
            level.out.add(self.following(draft, [named_by, None]));
        } else if let (Some(Bound::Row(highest)), Some(bound)) = (&level.highest, page.bound)
            && (bound > *highest || (!page.split && bound != *highest))
        {
            let parent = named_by.map_or_else(String::new, |block| format!(" in block {block}"));
            let message =
                format!("the right bound {bound} is not the highest row {highest}{parent}");
            let draft = self.draft(rule, block, message).bytes(24, 30);
            level.out.add(self.following(draft, [named_by, None]));
        }
    }

    /// Where the level goes on.
    fn next_of(
        &self,
        level: &mut Level<'_>,
        block: BlockNo,
        page: &PageBounds,
        is_root: bool,
    ) -> Option<BlockNo> {
        match (page.right, &level.links.ahead) {
            (Some(right), _) if is_root => {
                let message = format!("the root has a right neighbour {right}");
                let draft = self.draft(&GIN_TREE_LINK, block, message);
                level.out.add(draft.fact("link", right));
                None
            }
            (Some(right), _) => Some(right),
            (None, Some(link)) => {
                let (parent, child) = (link.parent, link.child);
                if level.contradictions < CONTRADICTIONS_MAX {
                    level.contradictions += 1;
                    let message = format!(
                        "the page has no right neighbour, and block {parent} above names block {child} next"
                    );
                    let draft = self.draft(&GIN_TREE_LINK, block, message);
                    level
                        .out
                        .add(self.following(draft, [Some(parent), Some(child)]));
                }
                Some(child)
            }
            (None, None) => None,
        }
    }

    /// The next link from the level above, into `ahead`.
    fn advance(&mut self, tree: Tree, links: &mut Links) {
        loop {
            links.ahead = links.page.next();
            if links.ahead.is_some() {
                return;
            }
            let Some(block) = links.next.filter(|_| links.pages_left > 0) else {
                return;
            };
            links.pages_left -= 1;
            links.last = Some(block);
            let reader = match tree {
                Tree::Keys => &mut self.pages,
                Tree::Rows => &mut self.row_pages,
            };
            let page = reader
                .page(block)
                .and_then(|page| PageBounds::of(page, block, self.keys.as_ref()))
                .filter(|page| page.kind == tree.kind(false));
            let Some(page) = page else {
                links.broken = true;
                links.next = None;
                return;
            };
            links.next = page.right;
            links.page = page.downlinks.into_iter();
        }
    }

    pub(super) fn draft(&self, rule: &'static Rule, block: BlockNo, message: String) -> Draft {
        self.relation.draft(rule, block, message)
    }

    pub(super) fn following(&self, draft: Draft, blocks: [Option<BlockNo>; 2]) -> Draft {
        let fork = self.relation.fork;
        blocks
            .into_iter()
            .flatten()
            .fold(draft, |draft, block| draft.follows(fork, block))
    }
}

fn words(tree: Tree) -> &'static str {
    match tree {
        Tree::Keys => "key",
        Tree::Rows => "TID",
    }
}
