//! Pages and tuples of an nbtree.
//!
//! ```text
//! block 0   meta page: magic, version, root, level, fast root, fast level, …
//! others    high key (item 1, unless rightmost), data items …   | prev, next, level, flags, cycle id
//!
//! plain     t_tid = the row                                      leaf
//! posting   t_tid = (offset of the list, 0x2000 | count)         leaf, several rows of one key
//! pivot     t_tid = (child, 0x1000? | number of key columns)     internal pages, high keys
//! ```
//!
//! A pivot with 0x1000 ends in the row number that decides between equal keys. Pivots of indexes
//! made before 12 may lack the alternative form: they carry all columns.
//!
//! Truth: `src/include/access/nbtree.h`, `src/backend/access/nbtree/README`.

use crate::bytes::{u16_at, u32_at};
use crate::index_tuple::{INDEX_AM_RESERVED_BIT, IndexTuple};
use crate::line_pointer::{LinePointer, LpFlags};
use crate::page::Page;
use crate::types::{BlockNo, Tid};

/// `BTP_LEAF`.
pub const BTP_LEAF: u16 = 0x0001;
/// `BTP_ROOT`.
pub const BTP_ROOT: u16 = 0x0002;
/// `BTP_DELETED`.
pub const BTP_DELETED: u16 = 0x0004;
/// `BTP_META`.
pub const BTP_META: u16 = 0x0008;
/// `BTP_HALF_DEAD`.
pub const BTP_HALF_DEAD: u16 = 0x0010;
/// `BTP_INCOMPLETE_SPLIT`: the right half has no downlink yet.
pub const BTP_INCOMPLETE_SPLIT: u16 = 0x0080;
/// `BTP_HAS_FULLXID`, 14 and later: a deleted page keeps a 64-bit transaction number.
pub const BTP_HAS_FULLXID: u16 = 0x0100;
/// `P_NONE`: no page, since block 0 is the meta page.
pub const NO_PAGE: BlockNo = 0;
/// `BTREE_NOVAC_VERSION` and later: heap row numbers are part of the key from version 4 on.
pub const HEAP_KEY_SPACE_VERSION: u32 = 4;

const OFFSET_MASK: u16 = 0x0FFF;
const PIVOT_HEAP_TID_ATTR: u16 = 0x1000;
const IS_POSTING: u16 = 0x2000;
const TID_BYTES: usize = 6;
const META_AT: usize = 24;

/// What the meta page says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meta {
    /// `btm_version`: 2 to 4.
    pub version: u32,
    /// `btm_root`; 0 for an index without any row yet.
    pub root: BlockNo,
    /// `btm_level`.
    pub level: u32,
    /// `btm_fastroot`: where scans begin.
    pub fast_root: BlockNo,
    /// `btm_fastlevel`.
    pub fast_level: u32,
    /// `btm_allequalimage`: equal keys look alike, so that they may share an entry. From version 4
    /// on.
    pub all_equal_image: bool,
}

impl Meta {
    /// Offset of `btm_allequalimage` on the page.
    pub const ALL_EQUAL_IMAGE_AT: usize = META_AT + 40;

    /// From block 0.
    pub fn parse(page: Page<'_>) -> Option<Meta> {
        let bytes = page.bytes();
        let version = u32_at(bytes, META_AT + 4)?;
        let equal = *bytes.get(Self::ALL_EQUAL_IMAGE_AT)? != 0;
        Some(Meta {
            version,
            all_equal_image: equal && version >= HEAP_KEY_SPACE_VERSION,
            root: u32_at(bytes, META_AT + 8)?,
            level: u32_at(bytes, META_AT + 12)?,
            fast_root: u32_at(bytes, META_AT + 16)?,
            fast_level: u32_at(bytes, META_AT + 20)?,
        })
    }
}

/// A page of the tree. Promised: its special space has the right size.
#[derive(Clone, Copy, Debug)]
pub struct BtreePage<'a> {
    page: Page<'a>,
    /// `btpo_prev`.
    pub prev: BlockNo,
    /// `btpo_next`.
    pub next: BlockNo,
    /// `btpo_level`; a transaction number on pages deleted by 13.
    pub level: u32,
    /// `btpo_flags`.
    pub flags: u16,
}

impl<'a> BtreePage<'a> {
    /// Any page but the meta page.
    pub fn parse(page: Page<'a>) -> Option<Self> {
        let special = page.special().filter(|special| special.len() == 16)?;
        let flags = u16_at(special, 12)?;
        (flags & BTP_META == 0).then_some(())?;
        Some(BtreePage {
            page,
            prev: u32_at(special, 0)?,
            next: u32_at(special, 4)?,
            level: u32_at(special, 8)?,
            flags,
        })
    }

    /// Some bit of `flag` is set.
    #[inline]
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// On the lowest level.
    #[inline]
    pub fn is_leaf(&self) -> bool {
        self.has(BTP_LEAF)
    }

    /// Its items mean nothing any more: half dead or deleted.
    #[inline]
    pub fn is_ignored(&self) -> bool {
        self.has(BTP_DELETED | BTP_HALF_DEAD)
    }

    /// The last page of its level: it has no high key.
    #[inline]
    pub fn is_rightmost(&self) -> bool {
        self.next == NO_PAGE
    }

    /// Number of the first data item.
    #[inline]
    pub fn first_data(&self) -> u16 {
        if self.is_rightmost() { 1 } else { 2 }
    }

    /// The number of the first item whose key is a key: the first data item of an internal page
    /// stands for minus infinity.
    #[inline]
    pub fn first_key(&self) -> u16 {
        self.first_data() + u16::from(!self.is_leaf())
    }

    /// The upper bound of its items; none on a rightmost page.
    pub fn high_key(&self) -> Option<BtreeTuple<'a>> {
        if self.is_rightmost() {
            return None;
        }
        self.tuple(1)
    }

    /// An item with bytes, killed ones too.
    pub fn tuple(&self, item: u16) -> Option<BtreeTuple<'a>> {
        self.tuple_of(self.page.line_pointer(item)?)
    }

    /// The item that a line pointer of this page names.
    #[inline]
    pub fn tuple_of(&self, pointer: LinePointer) -> Option<BtreeTuple<'a>> {
        let has_bytes = match pointer.flags() {
            LpFlags::Normal => true,
            LpFlags::Dead => pointer.lp_len() > 0,
            LpFlags::Unused | LpFlags::Redirect => false,
        };
        has_bytes.then_some(())?;
        IndexTuple::parse(self.page.item(pointer)?).map(BtreeTuple)
    }

    /// All data items with their numbers, in order.
    pub fn data(&self) -> impl Iterator<Item = (u16, BtreeTuple<'a>)> + use<'a> {
        let (tree, first) = (*self, self.first_data());
        let pointers = tree.page.line_pointers();
        pointers
            .filter(move |(item, _)| *item >= first)
            .filter_map(move |(item, pointer)| Some((item, tree.tuple_of(pointer)?)))
    }

    /// The same without those that a scan has marked dead.
    #[inline]
    pub fn data_not_dead(&self) -> impl Iterator<Item = (u16, BtreeTuple<'a>)> + use<'a> {
        let (tree, first) = (*self, self.first_data());
        let pointers = tree.page.line_pointers();
        let normal = pointers
            .filter(move |(item, pointer)| *item >= first && pointer.flags() == LpFlags::Normal);
        normal.filter_map(move |(item, pointer)| Some((item, tree.tuple_of(pointer)?)))
    }

    /// The child that the first data item names.
    pub fn first_child(&self) -> Option<BlockNo> {
        Some(self.tuple(self.first_data())?.child())
    }

    /// The page as it is.
    #[inline]
    pub fn page(&self) -> Page<'a> {
        self.page
    }
}

/// A tuple of the tree.
#[derive(Clone, Copy, Debug)]
pub struct BtreeTuple<'a>(pub IndexTuple<'a>);

impl<'a> BtreeTuple<'a> {
    #[inline]
    fn is_alternative(self) -> bool {
        self.0.has(INDEX_AM_RESERVED_BIT)
    }

    /// Several rows of one key.
    #[inline]
    pub fn is_posting(self) -> bool {
        self.is_alternative() && self.0.t_tid().offset & IS_POSTING != 0
    }

    /// Marked as a pivot: those of old indexes are not.
    #[inline]
    pub fn is_pivot(self) -> bool {
        self.is_alternative() && self.0.t_tid().offset & IS_POSTING == 0
    }

    /// Neither a list of rows nor a pivot.
    #[inline]
    pub fn names_one_row(self) -> bool {
        !self.is_alternative()
    }

    /// Columns that it stores, of an index with `columns` of them.
    #[inline]
    pub fn stored_columns(self, columns: usize) -> usize {
        if self.is_pivot() {
            usize::from(self.0.t_tid().offset & OFFSET_MASK)
        } else {
            columns
        }
    }

    /// The child page of a pivot.
    #[inline]
    pub fn child(self) -> BlockNo {
        self.0.t_tid().block
    }

    /// The only, or lowest, row number; `None` for a pivot without one, which is minus infinity.
    #[inline]
    pub fn lowest_tid(self) -> Option<Tid> {
        if self.is_posting() {
            return tid_at(self.posting_list()?, 0);
        }
        if self.is_pivot() {
            return self.pivot_tid();
        }
        Some(self.0.t_tid())
    }

    /// The only, or highest, row number.
    #[inline]
    pub fn highest_tid(self) -> Option<Tid> {
        if self.is_posting() {
            let list = self.posting_list()?;
            return tid_at(list, (list.len() / TID_BYTES).checked_sub(1)?);
        }
        self.lowest_tid()
    }

    fn pivot_tid(self) -> Option<Tid> {
        if self.0.t_tid().offset & PIVOT_HEAP_TID_ATTR == 0 {
            return None;
        }
        let bytes = self.0.bytes();
        tid_at(bytes.get(bytes.len().checked_sub(TID_BYTES)?..)?, 0)
    }

    /// Number of rows in a posting list, as it claims.
    #[inline]
    pub fn posting_count(self) -> usize {
        usize::from(self.0.t_tid().offset & OFFSET_MASK)
    }

    /// Where in the tuple a posting list begins, as it claims.
    #[inline]
    pub fn posting_offset(self) -> usize {
        usize::try_from(self.0.t_tid().block).unwrap_or(usize::MAX)
    }

    fn posting_list(self) -> Option<&'a [u8]> {
        let start = self.posting_offset();
        let len = self.posting_count() * TID_BYTES;
        self.0.bytes().get(start..start.checked_add(len)?)
    }

    /// The rows of a leaf tuple, rising; nothing for a posting list that leaves its tuple.
    #[inline]
    pub fn rows(self) -> impl Iterator<Item = Tid> + use<'a> {
        let posting = self.is_posting();
        let list = if posting {
            self.posting_list().unwrap_or_default()
        } else {
            &[]
        };
        let single = (!posting && !self.is_pivot()).then(|| self.0.t_tid());
        let (tids, _) = list.as_chunks::<TID_BYTES>();
        single.into_iter().chain(tids.iter().map(tid_of))
    }

    /// The bytes that hold attributes: without posting list and closing row number.
    #[inline]
    pub fn key_bytes(self) -> &'a [u8] {
        let bytes = self.0.bytes();
        let end = if self.is_posting() {
            self.posting_offset()
        } else if self.is_pivot() && self.0.t_tid().offset & PIVOT_HEAP_TID_ATTR != 0 {
            bytes.len().saturating_sub(TID_BYTES)
        } else {
            bytes.len()
        };
        bytes.get(..end).unwrap_or(bytes)
    }
}

fn tid_at(list: &[u8], index: usize) -> Option<Tid> {
    let (tids, _) = list.as_chunks::<TID_BYTES>();
    tids.get(index).map(tid_of)
}

#[inline]
fn tid_of(raw: &[u8; TID_BYTES]) -> Tid {
    let half = |at: usize| u16_at(raw, at).unwrap_or_default();
    Tid {
        block: u32::from(half(0)) << 16 | u32::from(half(2)),
        offset: half(4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(bytes: &[u8]) -> BtreeTuple<'_> {
        BtreeTuple(IndexTuple::parse(bytes).expect("a header"))
    }

    #[test]
    fn a_posting_list_gives_its_rows_and_a_pivot_its_child() {
        let mut posting = vec![0, 0, 16, 0, 2, 0x20, 32, 0x20, 7, 0, 0, 0, 0, 0, 0, 0];
        posting.extend([0, 0, 5, 0, 1, 0, 0, 0, 6, 0, 2, 0, 0, 0, 0, 0]);
        let seen: Vec<String> = tuple(&posting).rows().map(|tid| tid.to_string()).collect();
        assert_eq!(seen, ["(5,1)", "(6,2)"]);
        assert_eq!(tuple(&posting).key_bytes().len(), 16);
        let pivot = [0, 0, 9, 0, 1, 0, 16, 0x20, 7, 0, 0, 0, 0, 0, 0, 0];
        let pivot = tuple(&pivot);
        assert!(pivot.is_pivot() && pivot.lowest_tid().is_none());
        assert_eq!((pivot.child(), pivot.stored_columns(3)), (9, 1));
    }

    #[test]
    fn a_posting_list_that_leaves_its_tuple_has_no_rows() {
        let posting = [0, 0, 8, 0, 9, 0x20, 16, 0x20, 7, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(tuple(&posting).rows().count(), 0);
        assert_eq!(tuple(&posting).highest_tid(), None);
    }
}
