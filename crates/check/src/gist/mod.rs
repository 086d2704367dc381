//! Checks of GiST indexes.

pub(crate) mod keys;
pub(crate) mod ranges;
pub(crate) mod tree;

use pgclinic_format::registry;

use crate::check::PageCheck;
use crate::relation_check::RelationCheck;

registry! {
    /// Checks of one page.
    pub static PAGE_CHECKS: [PageCheck] = [
        page_flags::GistPageFlags,
        link_beyond_end::GistLinkBeyondEnd,
        tuple::GistTuple,
        nsn::GistNsn,
    ];
}

registry! {
    /// Checks of one relation as a whole.
    pub static RELATION_CHECKS: [RelationCheck] = [
        links::GistLinks,
    ];
}
