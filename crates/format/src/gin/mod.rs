//! GIN pages: a tree of keys, a tree of row numbers behind each frequent key, a list of entries
//! that wait.
//!
//! ```text
//! block 0   meta page: head and tail of the list of waiting entries, version
//! block 1   root of the tree of keys
//! special   | rightlink 4 | maxoff 2 | flags 2 |
//! ```
//!
//! Truth: `src/include/access/ginblock.h`, `src/backend/access/gin/README`.

mod entry;
mod meta;
mod posting_list;
mod posting_page;
mod rows;

pub use entry::{Category, EntryFault, EntryTuple, Key, KeyShape, Posting};
pub use meta::Meta;
pub use posting_list::{OFFSET_MAX, PostingFault, PostingRows};
pub use posting_page::{DATA_AT, PostingItem, Segment, Segments, posting_items, right_bound};
pub use rows::{Row, for_each_row};

use crate::bytes::{u16_at, u32_at};
use crate::page::Page;
use crate::types::{BlockNo, INVALID_BLOCK};

/// `GIN_DATA`: a page of a tree of row numbers.
pub const GIN_DATA: u16 = 0x0001;
/// `GIN_LEAF`.
pub const GIN_LEAF: u16 = 0x0002;
/// `GIN_DELETED`.
pub const GIN_DELETED: u16 = 0x0004;
/// `GIN_META`.
pub const GIN_META: u16 = 0x0008;
/// `GIN_LIST`: a page of the list of waiting entries.
pub const GIN_LIST: u16 = 0x0010;
/// `GIN_LIST_FULLROW`: the page holds all entries of each of its rows.
pub const GIN_LIST_FULLROW: u16 = 0x0020;
/// `GIN_INCOMPLETE_SPLIT`: the page above does not name the right neighbour yet.
pub const GIN_INCOMPLETE_SPLIT: u16 = 0x0040;
/// `GIN_COMPRESSED`: row numbers of a leaf are compressed, since 9.4.
pub const GIN_COMPRESSED: u16 = 0x0080;

/// `GIN_METAPAGE_BLKNO`.
pub const META_BLOCK: BlockNo = 0;
/// `GIN_ROOT_BLKNO`: root of the tree of keys.
pub const ROOT_BLOCK: BlockNo = 1;

/// Bytes of the special space.
const OPAQUE_BYTES: usize = 8;

/// The special space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opaque {
    /// The right neighbour, or [`INVALID_BLOCK`].
    pub rightlink: BlockNo,
    /// Posting items on an inner page of row numbers, rows on a page of waiting entries.
    pub maxoff: u16,
    /// Flag bits.
    pub flags: u16,
}

impl Opaque {
    /// Of a page whose special space has the size of GIN's.
    pub fn of(page: Page<'_>) -> Option<Opaque> {
        let special = page.special()?;
        (special.len() == OPAQUE_BYTES).then_some(())?;
        Some(Opaque {
            rightlink: u32_at(special, 0)?,
            maxoff: u16_at(special, 4)?,
            flags: u16_at(special, 6)?,
        })
    }

    /// All of these bits are set.
    pub fn has(self, bits: u16) -> bool {
        self.flags & bits == bits
    }

    /// The right neighbour, if there is one.
    pub fn right(self) -> Option<BlockNo> {
        (self.rightlink != INVALID_BLOCK).then_some(self.rightlink)
    }

    /// What kind of page it is; nothing when its flags contradict each other.
    pub fn kind(self) -> Option<PageKind> {
        if self.contradiction().is_some() {
            return None;
        }
        Some(match self.flags {
            flags if flags & GIN_META != 0 => PageKind::Meta,
            flags if flags & GIN_DELETED != 0 => PageKind::Deleted,
            flags if flags & GIN_LIST != 0 => PageKind::Pending,
            flags if flags & (GIN_DATA | GIN_LEAF) == GIN_DATA | GIN_LEAF => PageKind::PostingLeaf,
            flags if flags & GIN_DATA != 0 => PageKind::PostingInner,
            flags if flags & GIN_LEAF != 0 => PageKind::EntryLeaf,
            _ => PageKind::EntryInner,
        })
    }

    /// Why no server leaves these flags together, if it does not. Inner pages may carry
    /// `GIN_COMPRESSED`, and a page may be deleted while its split is incomplete.
    pub fn contradiction(self) -> Option<&'static str> {
        let flags = self.flags;
        let beside = |bit: u16, allowed: u16| flags & bit != 0 && flags & !(bit | allowed) != 0;
        if beside(GIN_META, 0) {
            return Some("a meta page carries no other flag");
        }
        if beside(GIN_LIST, GIN_LIST_FULLROW) {
            return Some("a page of waiting entries carries no flag of another kind of page");
        }
        if flags & GIN_LIST_FULLROW != 0 && flags & GIN_LIST == 0 {
            return Some("only a page of waiting entries can hold whole rows");
        }
        if flags & GIN_COMPRESSED != 0 && flags & GIN_DATA == 0 {
            return Some("only a posting tree page can be compressed");
        }
        let in_tree = flags & (GIN_LEAF | GIN_INCOMPLETE_SPLIT) != 0;
        if flags & GIN_DELETED != 0 && flags & GIN_DATA == 0 && in_tree {
            return Some("a page of keys is never deleted");
        }
        None
    }
}

/// Kinds of pages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PageKind {
    /// Block 0.
    Meta,
    /// Keys with their rows.
    EntryLeaf,
    /// Keys with the pages below.
    EntryInner,
    /// Row numbers of one key.
    PostingLeaf,
    /// Highest row numbers with the pages below.
    PostingInner,
    /// Entries that wait to be put into the tree.
    Pending,
    /// Free, or soon.
    Deleted,
}

impl PageKind {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            PageKind::Meta => "the meta page",
            PageKind::EntryLeaf => "a leaf of keys",
            PageKind::EntryInner => "an inner page of keys",
            PageKind::PostingLeaf => "a posting tree leaf",
            PageKind::PostingInner => "an inner posting tree page",
            PageKind::Pending => "a page of waiting entries",
            PageKind::Deleted => "a deleted page",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(flags: u16) -> Option<PageKind> {
        let opaque = Opaque {
            rightlink: INVALID_BLOCK,
            maxoff: 0,
            flags,
        };
        opaque.kind()
    }

    #[test]
    fn flags_tell_the_kind_or_contradict_each_other() {
        assert_eq!(kind(0), Some(PageKind::EntryInner));
        assert_eq!(
            kind(GIN_LEAF | GIN_INCOMPLETE_SPLIT),
            Some(PageKind::EntryLeaf)
        );
        assert_eq!(
            kind(GIN_DATA | GIN_LEAF | GIN_COMPRESSED),
            Some(PageKind::PostingLeaf)
        );
        assert_eq!(
            kind(GIN_DATA | GIN_COMPRESSED),
            Some(PageKind::PostingInner)
        );
        assert_eq!(kind(GIN_LIST | GIN_LIST_FULLROW), Some(PageKind::Pending));
        assert_eq!(kind(GIN_DELETED), Some(PageKind::Deleted));
        let deleted = GIN_DELETED | GIN_DATA | GIN_LEAF | GIN_COMPRESSED;
        assert_eq!(kind(deleted), Some(PageKind::Deleted));
        for flags in [
            GIN_META | GIN_LEAF,
            GIN_LIST | GIN_DATA,
            GIN_LIST_FULLROW,
            GIN_LEAF | GIN_COMPRESSED,
            GIN_LEAF | GIN_DELETED,
        ] {
            assert_eq!(kind(flags), None, "{flags:#06x}");
        }
    }
}
