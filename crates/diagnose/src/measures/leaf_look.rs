//! What the items of a btree's leaf come to, counted once for all measures.

use pgclinic_format::btree::BtreePage;
use pgclinic_format::{LpFlags, Page};

/// A leaf and its items.
#[derive(Clone, Copy, Debug)]
pub struct LeafLook<'a> {
    /// The page.
    pub tree: BtreePage<'a>,
    /// Rows that it points to.
    pub rows: u64,
    /// Items that stand for several rows.
    pub posting_lists: u64,
    /// Items without the high key that are not marked dead, and their bytes.
    pub live: [u64; 2],
    /// Those that are marked dead, and their bytes.
    pub dead: [u64; 2],
}

impl<'a> LeafLook<'a> {
    /// Of a leaf that is in use.
    pub(super) fn of(page: Page<'a>) -> Option<Self> {
        let tree = BtreePage::parse(page).filter(|tree| tree.is_leaf() && !tree.is_ignored())?;
        let mut look = LeafLook {
            tree,
            rows: 0,
            posting_lists: 0,
            live: [0; 2],
            dead: [0; 2],
        };
        let first = tree.first_data();
        for (item, pointer) in page.line_pointers().filter(|(item, _)| *item >= first) {
            let [count, bytes] = match pointer.flags() == LpFlags::Dead {
                true => &mut look.dead,
                false => &mut look.live,
            };
            *count += 1;
            *bytes += u64::from(pointer.lp_len());
            if let Some(tuple) = tree.tuple(item) {
                let is_posting = tuple.is_posting();
                look.posting_lists += u64::from(is_posting);
                look.rows += match is_posting {
                    true => tuple.posting_count() as u64,
                    false => 1,
                };
            }
        }
        Some(look)
    }
}
