//! What the checks of GIN indexes share: the walk over their trees, and which pages it reaches.

mod keys;
mod level;
mod page_bounds;
mod pages;
mod pending;
mod reached;

pub(crate) use level::Walk;
pub(crate) use pages::{entries, gin_page};
pub use reached::{Reached, reached};

use pgclinic_format::registry;

use crate::check::PageCheck;
use crate::relation_check::RelationCheck;

registry! {
    /// Checks of one page.
    pub static PAGE_CHECKS: [PageCheck] = [
        page_flags::GinPageFlags,
        meta_page::GinMetaPage,
        link_beyond_end::GinLinkBeyondEnd,
        entry::GinEntry,
        posting_page::GinPostingPage,
        pending_page::GinPendingPage,
    ];
}

registry! {
    /// Checks of one relation as a whole.
    pub static RELATION_CHECKS: [RelationCheck] = [
        pending_list::GinPendingList,
        tree::GinTree,
    ];
}
