//! What the checks of BRIN indexes share: what each column stores, where the map says a summary is,
//! and what a summary covers.

mod cover;
mod map;
mod stored;

pub(crate) use cover::{Cover, payload};
pub(crate) use map::Map;
pub(crate) use stored::Stored;

use pgclinic_format::registry;

use crate::check::PageCheck;
use crate::relation_check::RelationCheck;

registry! {
    /// Checks of one page.
    pub static PAGE_CHECKS: [PageCheck] = [
        meta_page::BrinMetaPage,
    ];
}

registry! {
    /// Checks of one relation as a whole.
    pub static RELATION_CHECKS: [RelationCheck] = [
        map_entry::BrinMap,
        summaries::BrinCover,
    ];
}
