//! What kind of page an index page is: its special space tells.
//!
//! Truth: `src/include/access/{nbtree,hash,gist_private,spgist_private,ginblock,brin_page}.h`.

use std::fmt;

use crate::bytes::{u16_at, u32_at};
use crate::page::Page;
use crate::types::BlockNo;

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

    /// The access method of this function, as `pg_am.amhandler` has it: whatever an access method
    /// is called, its handler decides how its pages look. Truth: `src/include/catalog/pg_proc.dat`.
    pub fn from_handler(function: u32) -> Option<Self> {
        Some(match function {
            3 => AccessMethod::Heap,
            330 => AccessMethod::Btree,
            331 => AccessMethod::Hash,
            332 => AccessMethod::Gist,
            333 => AccessMethod::Gin,
            334 => AccessMethod::Spgist,
            335 => AccessMethod::Brin,
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

/// Where the contents of a page begin, MAXALIGNed behind the page header.
const CONTENTS_AT: usize = 24;

/// How the special space and the meta page of an access method are laid out.
struct Shape {
    /// Offset of the flags in the special space, and every bit that PostgreSQL sets there.
    flags: (usize, u16),
    /// Offset and value of the page id in the special space; btree and GIN have none.
    page_id: Option<(usize, u16)>,
    /// The flag that only the meta page in block 0 carries; GiST has no meta page.
    meta_flag: u16,
    /// Offset in the page and value of the meta page's magic word; GIN has none.
    magic: Option<(usize, u32)>,
    /// Offset in the page, lowest and highest version of the meta page.
    version: Option<(usize, u32, u32)>,
}

/// What an index page says about itself that no page of its access method says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageKindFault {
    /// The special space carries the page id of something else.
    PageId {
        /// What stands there.
        found: u16,
        /// What the access method writes; 0 when it writes any number below 0xFF80.
        expected: u16,
    },
    /// Flags that the access method does not have.
    Flags {
        /// All flags.
        found: u16,
        /// Those that mean something.
        known: u16,
    },
    /// Block 0 is not marked as a meta page.
    NoMetaFlag,
    /// A block other than 0 is marked as a meta page.
    MetaFlagElsewhere,
    /// The meta page's magic word is another one.
    Magic {
        /// What stands there.
        found: u32,
        /// What the access method writes.
        expected: u32,
    },
    /// The meta page's version is none that a server of 13-18 reads.
    Version {
        /// What stands there.
        found: u32,
    },
}

impl fmt::Display for PageKindFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageKindFault::PageId { found, expected: 0 } => {
                write!(f, "cycle id {found:#06x} is above 0xff7f")
            }
            PageKindFault::PageId { found, expected } => {
                write!(f, "page id {found:#06x} is not {expected:#06x}")
            }
            PageKindFault::Flags { found, known } => {
                write!(f, "flags {found:#06x} have bits beyond {known:#06x}")
            }
            PageKindFault::NoMetaFlag => f.write_str("block 0 is not marked as the meta page"),
            PageKindFault::MetaFlagElsewhere => {
                f.write_str("the page is marked as a meta page and is not block 0")
            }
            PageKindFault::Magic { found, expected } => {
                write!(
                    f,
                    "magic word {found:#010x} of the meta page is not {expected:#010x}"
                )
            }
            PageKindFault::Version { found } => {
                write!(f, "version {found} of the meta page is not known")
            }
        }
    }
}

/// The access method whose page id this is, for saying what a page looks like.
pub fn method_of_page_id(id: u16) -> Option<AccessMethod> {
    match id {
        0xFF80 => Some(AccessMethod::Hash),
        0xFF81 => Some(AccessMethod::Gist),
        0xFF82 => Some(AccessMethod::Spgist),
        0xF091..=0xF093 => Some(AccessMethod::Brin),
        _ => None,
    }
}

/// What shows that the page in `block` is none of this access method; `None` when nothing does,
/// when the special space has another size, and for heap and sequences.
pub fn page_kind_fault(
    method: AccessMethod,
    page: Page<'_>,
    block: BlockNo,
) -> Option<PageKindFault> {
    let shape = shape(method)?;
    let special = page.special()?;
    (special.len() == method.special_bytes()).then_some(())?;
    match method {
        AccessMethod::Btree => btree_cycle_fault(special),
        AccessMethod::Brin => brin_type_fault(special),
        _ => page_id_fault(&shape, special),
    }
    .or_else(|| flags_fault(&shape, special))
    .or_else(|| meta_fault(method, &shape, page, block))
}

fn shape(method: AccessMethod) -> Option<Shape> {
    const MAGIC: usize = CONTENTS_AT;
    const VERSION: usize = CONTENTS_AT + 4;
    /// `ginVersion` in `GinMetaPageData`.
    const GIN_VERSION: usize = CONTENTS_AT + 48;
    Some(match method {
        AccessMethod::Heap | AccessMethod::Sequence => return None,
        AccessMethod::Btree => Shape {
            flags: (12, 0x01FF),
            page_id: None,
            meta_flag: 0x0008,
            magic: Some((MAGIC, 0x0005_3162)),
            version: Some((VERSION, 2, 4)),
        },
        AccessMethod::Hash => Shape {
            flags: (12, 0x00FF),
            page_id: Some((14, 0xFF80)),
            meta_flag: 0x0008,
            magic: Some((MAGIC, 0x0644_0640)),
            version: Some((VERSION, 4, 4)),
        },
        AccessMethod::Gist => Shape {
            flags: (12, 0x001F),
            page_id: Some((14, 0xFF81)),
            meta_flag: 0,
            magic: None,
            version: None,
        },
        AccessMethod::Gin => Shape {
            flags: (6, 0x00FF),
            page_id: None,
            meta_flag: 0x0008,
            magic: None,
            version: Some((GIN_VERSION, 0, 2)),
        },
        AccessMethod::Spgist => Shape {
            flags: (0, 0x000F),
            page_id: Some((6, 0xFF82)),
            meta_flag: 0x0001,
            magic: Some((MAGIC, 0xBA0B_ABEE)),
            version: None,
        },
        AccessMethod::Brin => Shape {
            flags: (4, 0x0001),
            page_id: None,
            meta_flag: 0,
            magic: Some((MAGIC, 0xA810_9CFA)),
            version: Some((VERSION, 1, 1)),
        },
    })
}

/// `btpo_cycleid` stands where the others keep their page id, and stays below all of those.
fn btree_cycle_fault(special: &[u8]) -> Option<PageKindFault> {
    let found = u16_at(special, 14)?;
    (found > 0xFF7F).then_some(PageKindFault::PageId { found, expected: 0 })
}

fn brin_type_fault(special: &[u8]) -> Option<PageKindFault> {
    let found = u16_at(special, 6)?;
    let expected = 0xF093;
    (!(0xF091..=0xF093).contains(&found)).then_some(PageKindFault::PageId { found, expected })
}

fn page_id_fault(shape: &Shape, special: &[u8]) -> Option<PageKindFault> {
    let (at, expected) = shape.page_id?;
    let found = u16_at(special, at)?;
    (found != expected).then_some(PageKindFault::PageId { found, expected })
}

fn flags_fault(shape: &Shape, special: &[u8]) -> Option<PageKindFault> {
    let (at, known) = shape.flags;
    let found = u16_at(special, at)?;
    (found & !known != 0).then_some(PageKindFault::Flags { found, known })
}

fn meta_fault(
    method: AccessMethod,
    shape: &Shape,
    page: Page<'_>,
    block: BlockNo,
) -> Option<PageKindFault> {
    if method == AccessMethod::Gist {
        return None;
    }
    let special = page.special()?;
    let marked = match method {
        AccessMethod::Brin => u16_at(special, 6)? == 0xF091,
        _ => u16_at(special, shape.flags.0)? & shape.meta_flag != 0,
    };
    match (block == 0, marked) {
        (true, false) => return Some(PageKindFault::NoMetaFlag),
        (false, true) => return Some(PageKindFault::MetaFlagElsewhere),
        (false, false) => return None,
        (true, true) => {}
    }
    let magic = shape.magic.and_then(|(at, expected)| {
        let found = u32_at(page.bytes(), at)?;
        (found != expected).then_some(PageKindFault::Magic { found, expected })
    });
    magic.or_else(|| {
        let (at, lowest, highest) = shape.version?;
        let found = u32_at(page.bytes(), at)?;
        (!(lowest..=highest).contains(&found)).then_some(PageKindFault::Version { found })
    })
}

/// The two roots that the meta page of an nbtree names: `(btm_root, btm_fastroot)`.
pub fn btree_roots(meta: Page<'_>) -> Option<(BlockNo, BlockNo)> {
    let bytes = meta.bytes();
    Some((
        u32_at(bytes, CONTENTS_AT + 8)?,
        u32_at(bytes, CONTENTS_AT + 16)?,
    ))
}

/// `btpo_flags` of an nbtree page.
pub fn btree_flags(page: Page<'_>) -> Option<u16> {
    u16_at(page.special()?, 12)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{PageBuilder, put_u32};

    fn fault(method: AccessMethod, special: &[u8], block: BlockNo) -> Option<PageKindFault> {
        let page = PageBuilder::new(8192, special).finish(block);
        page_kind_fault(method, Page::parse(&page)?, block)
    }

    #[test]
    fn a_page_of_another_access_method_is_told() {
        let hash = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0x80, 0xFF];
        assert_eq!(fault(AccessMethod::Hash, &hash, 3), None);
        let gist = PageKindFault::PageId {
            found: 0xFF80,
            expected: 0xFF81,
        };
        assert_eq!(fault(AccessMethod::Gist, &hash, 3), Some(gist));
        let btree = PageKindFault::PageId {
            found: 0xFF80,
            expected: 0,
        };
        assert_eq!(fault(AccessMethod::Btree, &hash, 3), Some(btree));
        assert_eq!(
            fault(AccessMethod::Gin, &hash, 3),
            None,
            "another size is another rule"
        );
    }

    #[test]
    fn the_meta_page_is_block_0_and_no_other() {
        let mut special = [0; 16];
        assert_eq!(
            fault(AccessMethod::Btree, &special, 0),
            Some(PageKindFault::NoMetaFlag)
        );
        special[12] = 8;
        assert_eq!(
            fault(AccessMethod::Btree, &special, 1),
            Some(PageKindFault::MetaFlagElsewhere)
        );
        let expected = PageKindFault::Magic {
            found: 0,
            expected: 0x0005_3162,
        };
        assert_eq!(fault(AccessMethod::Btree, &special, 0), Some(expected));
        let mut page = PageBuilder::new(8192, &special).finish(0);
        put_u32(&mut page, 24, 0x0005_3162);
        put_u32(&mut page, 28, 5);
        let page = Page::parse(&page).expect("a block size");
        let version = PageKindFault::Version { found: 5 };
        assert_eq!(page_kind_fault(AccessMethod::Btree, page, 0), Some(version));
    }
}
