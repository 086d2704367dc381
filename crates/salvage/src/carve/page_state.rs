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
    /// Its header says that it is empty, and bytes of rows are there: no server leaves that. A line
    /// pointer that is free stays, the first one at least, and a page that begins is all zeros.
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
        } else if page.line_pointer_count() == 0 && has_bytes_of_rows(page) {
            PageState::Emptied
        } else {
            PageState::Sound
        }
    }

    /// The same in a cluster of this major. From 17 on VACUUM frees all line pointers of a page at
    /// once where its table has no index (`HEAP_PAGE_PRUNE_MARK_UNUSED_NOW`), and leaves the bytes.
    pub(crate) fn of_major(page: Page<'_>, major: u16) -> Self {
        match PageState::of(page) {
            PageState::Emptied if major >= 17 => PageState::Sound,
            state => state,
        }
    }

    /// Line pointers tell nothing: rows are found by their structure.
    pub(crate) fn is_carved(self) -> bool {
        matches!(self, PageState::Broken | PageState::Emptied)
    }
}

/// Truth: `PageTruncateLinePointerArray` in `src/backend/storage/page/bufpage.c`, and `PageInit`.
fn has_bytes_of_rows(page: Page<'_>) -> bool {
    let free = usize::from(page.pd_lower())..usize::from(page.pd_special());
    let free = page.bytes().get(free).unwrap_or_default();
    free.iter().any(|byte| *byte != 0)
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
