//! Checks of heap pages and the rows on them.

pub(crate) mod context;
pub(crate) mod stored_values;
pub(crate) mod tuples;
pub(crate) mod update_chains;
pub(crate) mod visibility_bits;
pub(crate) mod xact_lookup;

use pgclinic_format::registry;

use crate::check::PageCheck;

registry! {
    /// Checks of one page.
    pub static PAGE_CHECKS: [PageCheck] = [
        hot_flags_alone::HotFlagsAlone,
        too_many_attributes::TooManyAttributes,
        hoff_mismatch::HoffMismatch,
        hoff_beyond_tuple::HoffBeyondTuple,
        unused_infomask_bits::UnusedInfomaskBits,
        multixact_marked_committed::MultixactMarkedCommitted,
        xmax_committed_and_invalid::XmaxCommittedAndInvalid,
        hot_update_leaves_page::HotUpdateLeavesPage,
        ctid_out_of_range::CtidOutOfRange,
        xmin_bounds::XminBounds,
        xmax_bounds::XmaxBounds,
        multixact_bounds::MultixactBounds,
        multixact_flags::MultixactFlags,
        moved_by_unknown_vacuum::MovedByUnknownVacuum,
        hint_bits::HintBits,
        update_chain_links::UpdateChainLinks,
        update_chain_fates::UpdateChainFates,
        attribute_faults::AttributeFaults,
        compressed_value::CompressedValue,
        toast_pointer::ToastPointerCheck,
        page_not_all_visible::PageNotAllVisible,
        page_of_another_table::PageOfAnotherTable,
        value_does_not_decode::ValueDoesNotDecode,
    ];
}

registry! {
    /// Checks that are asked after all others of a page: what those found explains a shape.
    pub static SHAPE_CHECKS: [PageCheck] = [row_shape::RowShape];
}
