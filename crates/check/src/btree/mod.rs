//! What the checks of btree indexes share: the order of keys, and the walk along a level.

mod fixed_keys;
mod key_order;
mod leaf_summaries;
pub mod walk;

pub(crate) use fixed_keys::{FixedKeys, image};
pub(crate) use key_order::payload;
pub use key_order::{KeyOrder, Tie, Unordered};
pub(crate) use leaf_summaries::{AllLeafSummaries, LeafSummaries, PageSummary};

use pgclinic_format::registry;

use crate::check::PageCheck;
use crate::relation_check::RelationCheck;

registry! {
    /// Checks of one page.
    pub static PAGE_CHECKS: [PageCheck] = [
        link_beyond_end::BtreeLinkBeyondEnd,
        page_flags::BtreePageFlags,
        tuple_shape::BtreeTupleShape,
        item_order::BtreeItemOrder,
        shared_entries_wrong::BtreeSharedEntriesWrong,
    ];
}

registry! {
    /// Checks of one relation as a whole.
    pub static RELATION_CHECKS: [RelationCheck] = [
        tree::BtreeTree,
        downlinks::BtreeDownlinks,
        unique_key_duplicate::UniqueKeyDuplicate,
        not_in_collation_order::BtreeNotInCollationOrder,
    ];
}
