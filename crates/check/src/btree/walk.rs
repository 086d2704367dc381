//! The walk along a btree: its levels from the root down, and each level from left to right.
//!
//! Truth: `bt_check_level_from_leftmost` in `contrib/amcheck/verify_nbtree.c`.

use pgclinic_format::btree::{BTP_DELETED, BtreePage, Meta, NO_PAGE};
use pgclinic_format::{BlockNo, Page};
use pgclinic_scan::PageReader;

use crate::btree::{AllLeafSummaries, PageSummary};

/// More levels than a btree of any size has.
const LEVELS_MAX: u32 = 64;
/// Pages that wait for their deletion left of the first downlink, at most.
const LEFT_STEPS_MAX: u32 = 1000;

/// One level of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// 0 for the leaves.
    pub level: u32,
    /// Its leftmost page, as the first downlinks tell.
    pub leftmost: BlockNo,
}

/// The meta page, if it makes sense.
pub fn meta_of(pages: &mut PageReader<'_>) -> Option<Meta> {
    pages.page(0).and_then(Meta::parse)
}

/// The levels from the root down, as far as first downlinks lead.
pub fn levels(pages: &mut PageReader<'_>, meta: Meta) -> Vec<Level> {
    let mut levels = Vec::new();
    let (mut at, mut level) = (meta.root, meta.level.min(LEVELS_MAX));
    while at != NO_PAGE {
        let leftmost = leftmost_from(pages, at);
        levels.push(Level { level, leftmost });
        let (Some(child), Some(below)) = (first_child(pages, leftmost), level.checked_sub(1))
        else {
            break;
        };
        (at, level) = (child, below);
    }
    levels
}

/// Pages that wait for their deletion may stand left of the first one with a downlink.
fn leftmost_from(pages: &mut PageReader<'_>, start: BlockNo) -> BlockNo {
    let mut at = start;
    for _ in 0..LEFT_STEPS_MAX {
        let left = tree_page(pages, at).map_or(NO_PAGE, |page| page.prev);
        let leads_back = |page: BtreePage<'_>| page.next == at && !page.has(BTP_DELETED);
        if left == NO_PAGE || !tree_page(pages, left).is_some_and(leads_back) {
            break;
        }
        at = left;
    }
    at
}

/// The first downlink of a level: pages that are half dead or deleted have none.
fn first_child(pages: &mut PageReader<'_>, leftmost: BlockNo) -> Option<BlockNo> {
    let mut at = leftmost;
    for _ in 0..LEFT_STEPS_MAX {
        let page = tree_page(pages, at)?;
        if !page.is_ignored() {
            return page.first_child().filter(|_| !page.is_leaf());
        }
        at = page.next;
    }
    None
}

/// A page of the tree, if it can be read as one.
pub fn tree_page<'p>(pages: &'p mut PageReader<'_>, block: BlockNo) -> Option<BtreePage<'p>> {
    pages.page(block).and_then(BtreePage::parse)
}

/// A page of the tree as its neighbours see it, from its face where one was kept.
pub(crate) fn sight<'p>(
    faces: Option<&'p AllLeafSummaries>,
    pages: &'p mut PageReader<'_>,
    block: BlockNo,
) -> Option<PageSummary<'p>> {
    let kept = faces.and_then(|faces| faces.of(block));
    kept.or_else(|| tree_page(pages, block).map(PageSummary::of))
}

/// Which blocks were seen.
pub struct VisitedBlocks(Vec<u64>);

impl VisitedBlocks {
    /// None of so many.
    pub fn new(blocks: u64) -> Self {
        let words = usize::try_from(blocks.div_ceil(64)).unwrap_or(0);
        VisitedBlocks(vec![0; words])
    }

    /// Notes a block; `false` when it was seen before or is beyond the end.
    pub fn add(&mut self, block: BlockNo) -> bool {
        let bit = 1 << (block % 64);
        let Some(word) = usize::try_from(block / 64)
            .ok()
            .and_then(|index| self.0.get_mut(index))
        else {
            return false;
        };
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// The block was seen.
    pub fn has(&self, block: BlockNo) -> bool {
        let word = usize::try_from(block / 64)
            .ok()
            .and_then(|index| self.0.get(index));
        word.is_some_and(|word| word & (1 << (block % 64)) != 0)
    }
}

/// The page is no part of the tree any more, or never was.
pub fn is_free(page: Page<'_>) -> bool {
    BtreePage::parse(page).is_some_and(|page| page.has(BTP_DELETED))
}
