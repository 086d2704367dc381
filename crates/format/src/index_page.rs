//! What kind of page an index page is: its special space tells.
//!
//! Truth: `src/include/access/{nbtree,hash,gist_private,spgist_private,ginblock,brin_page}.h`.

use crate::bytes::{u16_at, u32_at};
use crate::page::Page;

/// The access methods that PostgreSQL brings along, and the heap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AccessMethod {
    /// A table, TOAST relation or materialised view.
    Heap,
    /// nbtree.
    Btree,
    /// hash.
    Hash,
    /// gist.
    Gist,
    /// gin.
    Gin,
    /// spgist.
    Spgist,
    /// brin.
    Brin,
    /// A sequence's single page.
    Sequence,
}

impl AccessMethod {
    /// Bytes of the special space on every page that is not all zero.
    pub fn special_bytes(self) -> usize {
        match self {
            AccessMethod::Heap => 0,
            AccessMethod::Btree | AccessMethod::Hash | AccessMethod::Gist => 16,
            AccessMethod::Gin
            | AccessMethod::Spgist
            | AccessMethod::Brin
            | AccessMethod::Sequence => 8,
        }
    }

    /// The access method with this OID in `pg_am`; extensions' ones are unknown.
    pub fn from_oid(oid: u32) -> Option<Self> {
        Some(match oid {
            2 => AccessMethod::Heap,
            403 => AccessMethod::Btree,
            405 => AccessMethod::Hash,
            783 => AccessMethod::Gist,
            2742 => AccessMethod::Gin,
            4000 => AccessMethod::Spgist,
            3580 => AccessMethod::Brin,
            _ => return None,
        })
    }

    /// The name in `pg_am`, or `sequence`.
    pub fn name(self) -> &'static str {
        match self {
            AccessMethod::Heap => "heap",
            AccessMethod::Btree => "btree",
            AccessMethod::Hash => "hash",
            AccessMethod::Gist => "gist",
            AccessMethod::Gin => "gin",
            AccessMethod::Spgist => "spgist",
            AccessMethod::Brin => "brin",
            AccessMethod::Sequence => "sequence",
        }
    }
}

/// Whether `pd_lower` of this page closes an array of line pointers. Meta pages, bitmaps, GIN's
/// lists of row numbers and deleted btree and GiST pages use the same room for something else.
pub fn has_line_pointers(method: AccessMethod, page: Page<'_>) -> bool {
    let Some(special) = page.special() else {
        return false;
    };
    match method {
        AccessMethod::Heap | AccessMethod::Sequence => true,
        AccessMethod::Btree => !any(u16_at(special, 12), 0x0004 | 0x0008),
        AccessMethod::Gist => !any(u16_at(special, 12), 0x0002),
        AccessMethod::Hash => !any(u16_at(special, 12), 0x0004 | 0x0008),
        AccessMethod::Spgist => !any(u16_at(special, 0), 0x0001),
        AccessMethod::Gin => !any(u16_at(special, 6), 0x0001 | 0x0004 | 0x0008),
        AccessMethod::Brin => u16_at(special, 6) == Some(0xF093),
    }
}

fn any(flags: Option<u16>, bits: u16) -> bool {
    flags.is_none_or(|flags| flags & bits != 0)
}

/// The sibling links and level of an nbtree page: `(btpo_prev, btpo_next, level)`.
pub fn btree_links(page: Page<'_>) -> Option<(u32, u32, u32)> {
    let special = page.special()?;
    Some((
        u32_at(special, 0)?,
        u32_at(special, 4)?,
        u32_at(special, 8)?,
    ))
}
