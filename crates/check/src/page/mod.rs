//! Checks of pages of any kind: header and line pointers.

pub(crate) mod line_pointers;
pub(crate) mod vacant_page;

use pgclinic_format::registry;

use crate::check::PageCheck;
use crate::relation_check::RelationCheck;

registry! {
    /// Checks of one page.
    pub static PAGE_CHECKS: [PageCheck] = [
        checksum_mismatch::ChecksumMismatch,
        new_page_with_content::NewPageWithContent,
        first_page_zeroed::FirstPageZeroed,
        invalid_page_flags::InvalidPageFlags,
        lower_inside_header::LowerInsideHeader,
        lower_beyond_upper::LowerBeyondUpper,
        upper_beyond_special::UpperBeyondSpecial,
        special_beyond_page::SpecialBeyondPage,
        special_misaligned::SpecialMisaligned,
        wrong_page_size::WrongPageSize,
        wrong_layout_version::WrongLayoutVersion,
        special_size_mismatch::SpecialSizeMismatch,
        lsn_beyond_wal::LsnBeyondWal,
        prune_xid_in_the_future::PruneXidInTheFuture,
        misplaced_page::MisplacedPage,
        line_pointers_lost::LinePointersLost,
        item_beyond_page::ItemBeyondPage,
        item_before_upper::ItemBeforeUpper,
        item_misaligned::ItemMisaligned,
        item_too_short::ItemTooShort,
        items_overlap::ItemsOverlap,
        unused_with_storage::UnusedWithStorage,
        redirect_target::RedirectTarget,
        redirect_in_index::RedirectInIndex,
    ];
}

registry! {
    /// Checks of one relation as a whole.
    pub static RELATION_CHECKS: [RelationCheck] = [
        page_older_than_wal::PageOlderThanWal,
        zeroed_page::ZeroedPage,
        emptied_page::EmptiedPage,
    ];
}
