//! Pages of row numbers.
//!
//! ```text
//! 24            32
//! | right bound | inner: (block below 4, highest row number below 6) × maxoff
//! | right bound | leaf:  compressed lists up to pd_lower; before 9.4 plain row numbers × maxoff
//! ```
//!
//! The right bound of a page without right neighbour says nothing, nor does the last item of an
//! inner page. Truth: `src/include/access/ginblock.h`, `src/backend/access/gin/gindatapage.c`.

use crate::bytes::{block_at, tid_at};
use crate::page::Page;
use crate::types::{BlockNo, Tid};

use super::posting_list::PostingRows;
use super::{GIN_COMPRESSED, Opaque};

/// Where the data of a page of row numbers begin.
pub const DATA_AT: usize = 32;
const BOUND_AT: usize = 24;
/// Bytes of a [`PostingItem`].
const ITEM_BYTES: usize = 10;

/// The highest row number that may stand on the page or below it.
pub fn right_bound(page: Page<'_>) -> Option<Tid> {
    tid_at(page.bytes(), BOUND_AT)
}

/// On an inner page, a page below and its highest row number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PostingItem {
    /// The page below.
    pub child: BlockNo,
    /// Its right bound; in the last item of a page it says nothing.
    pub key: Tid,
}

impl PostingItem {
    /// Bytes of an item.
    pub const BYTES: usize = ITEM_BYTES;
}

/// The items of an inner page, as many as `maxoff` says and the page has room for.
pub fn posting_items(page: Page<'_>) -> impl DoubleEndedIterator<Item = PostingItem> {
    let count = Opaque::of(page).map_or(0, |opaque| usize::from(opaque.maxoff));
    let end = usize::from(page.pd_special());
    let data = page.bytes().get(DATA_AT..end).unwrap_or_default();
    let (items, _) = data.as_chunks::<ITEM_BYTES>();
    items.iter().take(count).filter_map(|raw| {
        Some(PostingItem {
            child: block_at(raw, 0)?,
            key: tid_at(raw, 4)?,
        })
    })
}

/// One list of a leaf.
#[derive(Clone, Debug)]
pub struct Segment<'a> {
    /// Offset in the page.
    pub at: usize,
    /// Its rows.
    pub rows: PostingRows<'a>,
}

/// The lists of a leaf, in order. One that claims more than is left is the last.
#[derive(Clone, Debug)]
pub struct Segments<'a> {
    page: Page<'a>,
    at: usize,
    end: usize,
    plain: Option<u16>,
}

impl<'a> Segments<'a> {
    /// Of a leaf of row numbers; before 9.4 one plain list.
    pub fn of(page: Page<'a>) -> Self {
        let special = usize::from(page.pd_special()).min(page.len());
        let opaque = Opaque::of(page);
        let compressed = opaque.is_some_and(|opaque| opaque.has(GIN_COMPRESSED));
        let plain = opaque.filter(|_| !compressed).map(|opaque| opaque.maxoff);
        let end = match plain {
            Some(_) => special,
            None => usize::from(page.pd_lower()).min(special),
        };
        Segments {
            page,
            at: DATA_AT,
            end,
            plain,
        }
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        let bytes = self.page.bytes().get(at..self.end)?;
        if let Some(count) = self.plain {
            self.at = self.end.saturating_add(1);
            return Some(Segment {
                at,
                rows: PostingRows::plain(bytes, count),
            });
        }
        if bytes.is_empty() {
            return None;
        }
        let (rows, used) = PostingRows::compressed(bytes);
        self.at = at.saturating_add(used.max(1));
        Some(Segment { at, rows })
    }
}
