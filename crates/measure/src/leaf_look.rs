//! What the items of a btree's leaf come to, counted once for all measures.

use pgclinic_format::btree::BtreePage;
use pgclinic_format::{LpFlags, Page};

use super::btree_packing::{LeafTotals, Packs};
use super::sums::Items;

/// A leaf and its items.
#[derive(Clone, Copy, Debug)]
pub struct LeafLook<'a> {
    /// The page.
    pub tree: BtreePage<'a>,
    /// Rows that it points to.
    pub rows: u64,
    /// Items that stand for several rows.
    pub posting_lists: u64,
    /// Items without the high key that are not marked dead.
    pub live: Items,
    /// Those that are marked dead.
    pub dead: Items,
    /// What those that are not marked dead would be in another order of things.
    pub(super) packing: LeafTotals,
}

impl<'a> LeafLook<'a> {
    /// Of a leaf that is in use.
    pub(super) fn of(page: Page<'a>) -> Option<Self> {
        let tree = BtreePage::parse(page).filter(|tree| tree.is_leaf() && !tree.is_ignored())?;
        let (mut rows, mut posting_lists) = (0, 0);
        let (mut live, mut dead) = (Items::default(), Items::default());
        let mut packs = Packs::new(page.len());
        let behind_high_key = usize::from(tree.first_data() - 1);
        for (_, pointer) in page.line_pointers().skip(behind_high_key) {
            let is_dead = pointer.flags() == LpFlags::Dead;
            let items = if is_dead { &mut dead } else { &mut live };
            items.add(pointer.lp_len());
            let Some(tuple) = tree.tuple_of(pointer) else {
                continue;
            };
            let is_posting = tuple.is_posting();
            let names = if is_posting {
                tuple.posting_count() as u64
            } else {
                1
            };
            posting_lists += u64::from(is_posting);
            rows += names;
            if !is_dead {
                packs.add(tuple, names);
            }
        }
        Some(LeafLook {
            tree,
            rows,
            posting_lists,
            live,
            dead,
            packing: packs.finish(),
        })
    }
}
