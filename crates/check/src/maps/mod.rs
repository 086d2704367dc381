//! Checks of visibility maps and free space maps.

use pgclinic_format::registry;

use crate::check::PageCheck;

registry! {
    /// Checks of one page.
    pub static PAGE_CHECKS: [PageCheck] = [
        visibility_map_wrong::VisibilityMapWrong,
        free_space_map_tree::FreeSpaceMapTree,
    ];
}
