//! GiST pages: a balanced tree without a meta page, whose root is block 0.
//!
//! ```text
//! special space, 16 bytes          tuples
//! 0     nsn (high half first)      leaf: an index tuple whose t_tid is a row
//! 8     rightlink                  inner: t_tid is the child's block and 0xffff, or 0xfffe from
//! 12    flags                      before 9.1; only key columns, the union of what is below
//! 14    page id 0xff81             deleted page: the full transaction number at byte 24, no tuples
//! ```
//!
//! Truth: `src/include/access/gist.h`, `gist_private.h`, `src/backend/access/gist/README`.

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::index_tuple::IndexTuple;
use crate::page::{HEADER_BYTES, Page};
use crate::types::{BlockNo, Lsn, Tid};
use crate::{LinePointer, LpFlags};

/// `GIST_ROOT_BLKNO`.
pub const ROOT: BlockNo = 0;
/// `GIST_PAGE_ID`.
pub const PAGE_ID: u16 = 0xFF81;
/// Bytes of the special space.
pub const SPECIAL_BYTES: usize = 16;
/// `F_LEAF`.
pub const F_LEAF: u16 = 0x0001;
/// `F_DELETED`.
pub const F_DELETED: u16 = 0x0002;
/// `F_TUPLES_DELETED`.
pub const F_TUPLES_DELETED: u16 = 0x0004;
/// `F_FOLLOW_RIGHT`: the page to the right has no downlink yet.
pub const F_FOLLOW_RIGHT: u16 = 0x0008;
/// `F_HAS_GARBAGE`: some entries are marked dead.
pub const F_HAS_GARBAGE: u16 = 0x0010;
/// `TUPLE_IS_VALID`, in the line pointer number of an inner tuple.
pub const TUPLE_IS_VALID: u16 = 0xFFFF;
/// `TUPLE_IS_INVALID`: left by the recovery of a server before 9.1.
pub const TUPLE_IS_INVALID: u16 = 0xFFFE;

/// A view of a GiST page. Promised: a special space of 16 bytes with GiST's page id.
#[derive(Clone, Copy, Debug)]
pub struct GistPage<'a> {
    page: Page<'a>,
    special: &'a [u8],
}

/// One entry of a page.
#[derive(Clone, Copy, Debug)]
pub struct GistItem<'a> {
    /// Line pointer number.
    pub number: u16,
    /// Marked `LP_DEAD`: no snapshot sees its row any more.
    pub dead: bool,
    /// The tuple.
    pub tuple: IndexTuple<'a>,
}

impl<'a> GistPage<'a> {
    /// The page, if its special space is GiST's.
    pub fn parse(page: Page<'a>) -> Option<Self> {
        let special = page.special()?;
        let own = special.len() == SPECIAL_BYTES && u16_at(special, 14) == Some(PAGE_ID);
        own.then_some(GistPage { page, special })
    }

    /// The page under the view.
    pub fn page(self) -> Page<'a> {
        self.page
    }

    /// The node sequence number: the WAL position of the last split.
    pub fn nsn(self) -> Lsn {
        let half = |at| u64::from(u32_at(self.special, at).unwrap_or_default());
        Lsn(half(0) << 32 | half(4))
    }

    /// The page to the right, `0xffffffff` for none. It says something while a split is incomplete
    /// only: later it may lead to a page that was deleted and used again anywhere.
    pub fn rightlink(self) -> BlockNo {
        u32_at(self.special, 8).unwrap_or_default()
    }

    /// Flag bits.
    pub fn flags(self) -> u16 {
        u16_at(self.special, 12).unwrap_or_default()
    }

    /// All bits of `flag` are set.
    pub fn has(self, flag: u16) -> bool {
        self.flags() & flag == flag
    }

    /// Rows, not children, hang on its entries.
    pub fn is_leaf(self) -> bool {
        self.has(F_LEAF)
    }

    /// Taken out of the tree.
    pub fn is_deleted(self) -> bool {
        self.has(F_DELETED)
    }

    /// The full transaction number that a deleted page carries since 12.
    pub fn delete_xid(self) -> Option<u64> {
        let there = self.is_deleted() && usize::from(self.page.pd_lower()) >= HEADER_BYTES + 8;
        there
            .then(|| u64_at(self.page.bytes(), HEADER_BYTES))
            .flatten()
    }

    /// Line pointers with their numbers; none on a deleted page.
    pub fn line_pointers(self) -> impl Iterator<Item = (u16, LinePointer)> + 'a {
        let deleted = self.is_deleted();
        let pointers = self.page.line_pointers();
        pointers.take_while(move |_| !deleted)
    }

    /// Entries whose header lies on the page, in order of their line pointers.
    pub fn items(self) -> impl Iterator<Item = GistItem<'a>> + 'a {
        let page = self.page;
        self.line_pointers().filter_map(move |(number, pointer)| {
            let tuple = IndexTuple::parse(page.item(pointer)?)?;
            Some(GistItem {
                number,
                dead: pointer.flags() == LpFlags::Dead,
                tuple,
            })
        })
    }

    /// How many line pointers it has.
    pub fn item_count(self) -> u16 {
        if self.is_deleted() {
            0
        } else {
            self.page.line_pointer_count()
        }
    }
}

/// The row of every entry of a leaf page, with its line pointer number and whether it is marked
/// dead.
pub fn for_each_row(page: Page<'_>, each: &mut dyn FnMut(Tid, u16, bool)) {
    let Some(page) = GistPage::parse(page).filter(|page| page.is_leaf()) else {
        return;
    };
    for item in page.items() {
        each(item.tuple.t_tid(), item.number, item.dead);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{PageBuilder, put_u16, put_u32};

    fn special(flags: u16) -> [u8; 16] {
        let mut special = [0; 16];
        put_u32(&mut special, 4, 77);
        put_u32(&mut special, 8, u32::MAX);
        put_u16(&mut special, 12, flags);
        put_u16(&mut special, 14, PAGE_ID);
        special
    }

    #[test]
    fn a_leaf_tells_its_rows_and_an_inner_page_none() {
        let tuple = [0, 0, 9, 0, 2, 0, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let rows = |flags| {
            let bytes = PageBuilder::new(8192, &special(flags))
                .item(&tuple)
                .finish(1);
            let mut rows = Vec::new();
            for_each_row(
                Page::parse(&bytes).expect("a page"),
                &mut |tid, item, dead| {
                    rows.push((tid.block, tid.offset, item, dead));
                },
            );
            rows
        };
        assert_eq!(rows(F_LEAF), [(9, 2, 1, false)]);
        assert_eq!(rows(0), []);
        assert_eq!(rows(F_LEAF | F_DELETED), []);
    }

    #[test]
    fn a_deleted_page_carries_its_transaction() {
        let mut bytes = PageBuilder::new(8192, &special(F_LEAF | F_DELETED)).finish(1);
        let xid = |bytes: &[u8]| {
            let page = Page::parse(bytes).and_then(GistPage::parse);
            page.expect("a page").delete_xid()
        };
        assert_eq!(xid(&bytes), None, "written by a server before 12");
        put_u16(&mut bytes, 12, 32);
        put_u32(&mut bytes, 24, 900);
        put_u32(&mut bytes, 28, 1);
        assert_eq!(xid(&bytes), Some((1 << 32) + 900));
    }
}
