//! What a page is, before its rows are looked at.

use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::{ColumnLayout, HeapTuple, Page, heap_tuple as tuple_header};

/// What its header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PageState {
    /// Nothing was ever written to it.
    Empty,
    /// Its header makes sense.
    Sound,
    /// Its header makes no sense.
    Broken,
}

impl PageState {
    pub(crate) fn of(page: Page<'_>) -> Self {
        if page.is_new() {
            return if page.is_zeroed() {
                PageState::Empty
            } else {
                PageState::Broken
            };
        }
        let tells_rows = usize::from(page.pd_lower()) >= HEADER_BYTES;
        if tells_rows && page.header_is_sane_to_the_server() {
            PageState::Sound
        } else {
            PageState::Broken
        }
    }
}

/// What a line pointer names begins as a row does: its values begin behind its header, or no field
/// of the header can be right. Values are not looked at.
#[inline]
pub(crate) fn is_row(tuple: HeapTuple<'_>, layouts: &[ColumnLayout]) -> bool {
    let hoff = usize::from(tuple.t_hoff());
    if hoff == tuple.expected_hoff() {
        return true;
    }
    let in_row = hoff >= tuple_header::HEADER_BYTES && hoff <= tuple.bytes().len();
    let columns = usize::from(tuple.attribute_count());
    (in_row && hoff.is_multiple_of(8)) || (columns > 0 && columns <= layouts.len())
}
