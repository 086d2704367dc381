//! Checks of SP-GiST indexes.

pub(crate) mod chains;
pub(crate) mod nodes;
pub(crate) mod tree;

use pgclinic_format::registry;

use crate::check::PageCheck;
use crate::relation_check::RelationCheck;

registry! {
    /// Checks of one page.
    pub static PAGE_CHECKS: [PageCheck] = [
        page_flags::SpgistPageFlags,
        tuple_counts::SpgistTupleCounts,
        tuple::SpgistTuple,
        leaf_chain::SpgistLeafChain,
        link::SpgistLink,
    ];
}

registry! {
    /// Checks of one relation as a whole.
    pub static RELATION_CHECKS: [RelationCheck] = [
        links::SpgistLinks,
    ];
}
