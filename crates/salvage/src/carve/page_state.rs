//! What a page is, before its rows are looked at.

use pgclinic_format::page::{HEADER_BYTES, VACUUM_TAKES_ALL_POINTERS};
use pgclinic_format::{ColumnLayout, HeapTuple, Page, heap_tuple as tuple_header};

/// What its header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PageState {
    /// Nothing was ever written to it.
    Empty,
    /// Its header makes sense.
    Sound,
    /// Its header says that it is empty, and bytes of rows are there: no server leaves that.
    Emptied,
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
        if !tells_rows || !page.header_is_sane_to_the_server() {
            PageState::Broken
        } else if page.has_bytes_without_pointers() {
            PageState::Emptied
        } else {
            PageState::Sound
        }
    }

    /// The same in a cluster of this major, whose VACUUM may leave it so.
    pub(crate) fn of_major(page: Page<'_>, major: u16) -> Self {
        match PageState::of(page) {
            PageState::Emptied if major >= VACUUM_TAKES_ALL_POINTERS => PageState::Sound,
            state => state,
        }
    }

    /// Line pointers tell nothing: rows are found by their structure.
    pub(crate) fn is_carved(self) -> bool {
        matches!(self, PageState::Broken | PageState::Emptied)
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
