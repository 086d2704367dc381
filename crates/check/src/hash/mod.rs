//! Checks of hash indexes.

pub mod rules;

use pgclinic_format::registry;

use crate::check::PageCheck;
use crate::relation_check::RelationCheck;

registry! {
    /// Checks of one page.
    pub static PAGE_CHECKS: [PageCheck] = [
        meta_sense::HashMetaInconsistent,
        entries::HashEntries,
    ];
}

registry! {
    /// Checks of one relation as a whole.
    pub static RELATION_CHECKS: [RelationCheck] = [
        chains::HashChains,
        code_wrong::HashCodeWrong,
    ];
}
