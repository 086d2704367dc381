//! Checks of what indexes of all access methods share.

pub(crate) mod words;

use pgclinic_format::registry;

use crate::check::PageCheck;

registry! {
    /// Checks of one page.
    pub static PAGE_CHECKS: [PageCheck] = [
        page_kind::IndexPageKind,
    ];
}
