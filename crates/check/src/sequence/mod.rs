//! Checks of sequences.

use pgclinic_format::registry;

use crate::check::PageCheck;
use crate::relation_check::RelationCheck;

registry! {
    /// Checks of one page.
    pub static PAGE_CHECKS: [PageCheck] = [
        magic::SequenceMagic,
        tuple::SequenceTuple,
        value::SequenceValue,
    ];
}

registry! {
    /// Checks of one relation as a whole.
    pub static RELATION_CHECKS: [RelationCheck] = [
        beyond_bounds::SequenceBeyondBounds,
    ];
}
