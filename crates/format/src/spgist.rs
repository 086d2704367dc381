//! SP-GiST pages: block 0 is the meta page, block 1 the root, block 2 the root of the nulls' tree.
//!
//! ```text
//! special space, 8 bytes: flags, redirects, placeholders, page id 0xff82 (u16 each)
//!
//! inner tuple   | state:2 all-the-same:1 nodes:13 prefix bytes:16 | size u16 | pad | prefix | nodes … |
//! node          | t_tid | t_info: size, 0x8000 without label | label? |
//! leaf tuple    | state:2 size:30 | next:14, 0x8000 bitmap | row | bitmap? | value and included columns |
//! other states  | state:2 size:30 | u16 | pointer | xid |
//! ```
//!
//! A node leads to one inner tuple or to the head of one chain of leaf tuples. A chain stays on its
//! page; the rows of a root that is a leaf are not chained.
//!
//! Truth: `src/include/access/spgist_private.h`, `src/backend/access/spgist/README`.

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::index_tuple::{INDEX_NULL_MASK, IndexTuple};
use crate::page::Page;
use crate::types::{BlockNo, Tid, Xid};

/// `SPGIST_METAPAGE_BLKNO`.
pub const META: BlockNo = 0;
/// `SPGIST_ROOT_BLKNO`.
pub const ROOT: BlockNo = 1;
/// `SPGIST_NULL_BLKNO`.
pub const NULL_ROOT: BlockNo = 2;
/// `SPGIST_PAGE_ID`.
pub const PAGE_ID: u16 = 0xFF82;
/// Bytes of the special space.
pub const SPECIAL_BYTES: usize = 8;
/// `SPGIST_META`.
pub const SPGIST_META: u16 = 0x0001;
/// `SPGIST_DELETED`: never set by a server of 13-18.
pub const SPGIST_DELETED: u16 = 0x0002;
/// `SPGIST_LEAF`.
pub const SPGIST_LEAF: u16 = 0x0004;
/// `SPGIST_NULLS`: it belongs to the nulls' tree.
pub const SPGIST_NULLS: u16 = 0x0008;
/// Bytes before the prefix of an inner tuple, the label of a node and the value of a leaf tuple.
pub const TUPLE_HEADER_BYTES: usize = 8;
/// `SGDTSIZE`: bytes of a tuple that is not live, and the least of any.
pub const DEAD_TUPLE_BYTES: usize = 16;
/// Bytes of a leaf tuple before its value, without and with a bitmap of nulls.
const LEAF_HEADER_BYTES: usize = 16;
/// Offset of the last-used pages in the meta page, and their number.
const LAST_USED_AT: usize = 28;
const LAST_USED_COUNT: usize = 8;
/// `SGLT_GET_NEXTOFFSET`.
const NEXT_MASK: u16 = 0x3FFF;

/// `tupstate`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// In use.
    Live,
    /// Moved; scans that were on their way follow its pointer.
    Redirect,
    /// The last row of its chain was removed; a node still leads here.
    Dead,
    /// Nothing leads here; it keeps the numbers of its neighbours.
    Placeholder,
}

impl State {
    /// The state in a word for people.
    pub fn name(self) -> &'static str {
        match self {
            State::Live => "live",
            State::Redirect => "redirect",
            State::Dead => "dead",
            State::Placeholder => "placeholder",
        }
    }
}

/// A view of an SP-GiST page. Promised: a special space of 8 bytes with SP-GiST's page id.
#[derive(Clone, Copy, Debug)]
pub struct SpgistPage<'a> {
    page: Page<'a>,
    special: &'a [u8],
}

impl<'a> SpgistPage<'a> {
    /// The page, if its special space is SP-GiST's.
    pub fn parse(page: Page<'a>) -> Option<Self> {
        let special = page.special()?;
        let own = special.len() == SPECIAL_BYTES && u16_at(special, 6) == Some(PAGE_ID);
        own.then_some(SpgistPage { page, special })
    }

    /// The page under the view.
    pub fn page(self) -> Page<'a> {
        self.page
    }

    /// Flag bits.
    pub fn flags(self) -> u16 {
        u16_at(self.special, 0).unwrap_or_default()
    }

    /// How many redirects it says it has.
    pub fn redirect_count(self) -> u16 {
        u16_at(self.special, 2).unwrap_or_default()
    }

    /// How many placeholders it says it has.
    pub fn placeholder_count(self) -> u16 {
        u16_at(self.special, 4).unwrap_or_default()
    }

    /// The meta page.
    pub fn is_meta(self) -> bool {
        self.flags() & SPGIST_META != 0
    }

    /// Its tuples are rows.
    pub fn is_leaf(self) -> bool {
        self.flags() & SPGIST_LEAF != 0
    }

    /// It belongs to the nulls' tree.
    pub fn holds_nulls(self) -> bool {
        self.flags() & SPGIST_NULLS != 0
    }

    /// Tuples that are large enough to have a state, with their line pointer numbers; none on the
    /// meta page.
    pub fn tuples(self) -> impl Iterator<Item = (u16, Tuple<'a>)> + 'a {
        let (page, meta) = (self.page, self.is_meta());
        let pointers = page.line_pointers().take_while(move |_| !meta);
        pointers.filter_map(move |(number, pointer)| {
            let tuple = Tuple::parse(page.item(pointer)?)?;
            Some((number, tuple))
        })
    }

    /// One tuple.
    pub fn tuple(self, number: u16) -> Option<Tuple<'a>> {
        let pointer = self.page.line_pointer(number)?;
        Tuple::parse(self.page.item(pointer).filter(|_| !self.is_meta())?)
    }

    /// The last-used pages that the meta page keeps as hints: block and free bytes.
    pub fn last_used(self) -> Vec<(BlockNo, u32)> {
        let at = |slot: usize| {
            let start = LAST_USED_AT + slot * 8;
            let bytes = self.page.bytes();
            Some((u32_at(bytes, start)?, u32_at(bytes, start + 4)?))
        };
        (0..LAST_USED_COUNT).filter_map(at).collect()
    }
}

/// A view of any tuple. Promised: 16 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Tuple<'a> {
    bytes: &'a [u8],
}

impl<'a> Tuple<'a> {
    /// The tuple in an item's bytes, unless they are fewer than the least of any tuple.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= DEAD_TUPLE_BYTES).then_some(Tuple { bytes })
    }

    /// All bytes of the item.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    fn word(self) -> u32 {
        u32_at(self.bytes, 0).unwrap_or_default()
    }

    /// `tupstate`.
    pub fn state(self) -> State {
        match self.word() & 3 {
            0 => State::Live,
            1 => State::Redirect,
            2 => State::Dead,
            _ => State::Placeholder,
        }
    }

    /// The size that a leaf tuple, or any tuple that is not live, claims.
    pub fn leaf_size(self) -> u32 {
        self.word() >> 2
    }

    /// Where a redirect leads.
    pub fn pointer(self) -> Tid {
        tid_at(self.bytes, 6)
    }

    /// Who made a redirect; 0 for nobody with a number.
    pub fn xid(self) -> Xid {
        Xid(u32_at(self.bytes, 12).unwrap_or_default())
    }

    /// The same as a live tuple of a leaf page.
    pub fn leaf(self) -> LeafTuple<'a> {
        LeafTuple { bytes: self.bytes }
    }

    /// The same as a live tuple of an inner page.
    pub fn inner(self) -> InnerTuple<'a> {
        InnerTuple { bytes: self.bytes }
    }
}

/// A live tuple of a leaf page. Promised: 16 bytes.
#[derive(Clone, Copy, Debug)]
pub struct LeafTuple<'a> {
    bytes: &'a [u8],
}

impl<'a> LeafTuple<'a> {
    /// The size that it claims.
    pub fn size(self) -> u32 {
        u32_at(self.bytes, 0).unwrap_or_default() >> 2
    }

    /// `t_info`: the next tuple and two flag bits.
    pub fn t_info(self) -> u16 {
        u16_at(self.bytes, 4).unwrap_or_default()
    }

    /// Line pointer number of the next tuple of the chain, 0 for none.
    pub fn next(self) -> u16 {
        self.t_info() & NEXT_MASK
    }

    /// It has a bitmap of nulls, which only tuples of 14 and later with included columns have.
    pub fn has_null_bitmap(self) -> bool {
        self.t_info() & 0x8000 != 0
    }

    /// The row.
    pub fn row(self) -> Tid {
        tid_at(self.bytes, 6)
    }

    /// The bitmap of nulls, without its padding.
    pub fn null_bitmap(self) -> Option<&'a [u8]> {
        self.bytes.get(12..16).filter(|_| self.has_null_bitmap())
    }

    /// The value and the included columns. The bitmap lies in the padding of the header.
    pub fn data(self) -> &'a [u8] {
        self.bytes.get(LEAF_HEADER_BYTES..).unwrap_or_default()
    }
}

/// A live tuple of an inner page. Promised: 16 bytes.
#[derive(Clone, Copy, Debug)]
pub struct InnerTuple<'a> {
    bytes: &'a [u8],
}

impl<'a> InnerTuple<'a> {
    /// The size that it claims.
    pub fn size(self) -> u16 {
        u16_at(self.bytes, 4).unwrap_or_default()
    }

    /// All nodes are equal, and rows were dealt to them at random.
    pub fn all_the_same(self) -> bool {
        u32_at(self.bytes, 0).unwrap_or_default() & 4 != 0
    }

    /// How many nodes it says it has, 0 to 8191.
    pub fn node_count(self) -> u16 {
        u16_at(self.bytes, 0).unwrap_or_default() >> 3
    }

    /// Bytes of the prefix, 0 for none.
    pub fn prefix_size(self) -> u16 {
        u16_at(self.bytes, 2).unwrap_or_default()
    }

    /// The prefix, if there is one and it lies in the tuple.
    pub fn prefix(self) -> Option<&'a [u8]> {
        let size = usize::from(self.prefix_size());
        let end = TUPLE_HEADER_BYTES.checked_add(size)?;
        self.bytes
            .get(TUPLE_HEADER_BYTES..end)
            .filter(|_| size != 0)
    }

    /// Its nodes, as many as it says; fewer where one is cut or claims less than its header.
    pub fn nodes(self) -> Nodes<'a> {
        let start = TUPLE_HEADER_BYTES + usize::from(self.prefix_size());
        Nodes {
            rest: self.bytes.get(start..).unwrap_or_default(),
            left: self.node_count(),
        }
    }
}

/// The nodes of an inner tuple.
#[derive(Clone, Debug)]
pub struct Nodes<'a> {
    rest: &'a [u8],
    left: u16,
}

impl<'a> Nodes<'a> {
    /// The bytes behind the nodes that were given out.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Nodes<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Node<'a>> {
        self.left = self.left.checked_sub(1)?;
        let size = IndexTuple::parse(self.rest)?.size();
        let fits = size >= TUPLE_HEADER_BYTES && size <= self.rest.len();
        let (tuple, rest) = self.rest.split_at_checked(size).filter(|_| fits)?;
        self.rest = rest;
        IndexTuple::parse(tuple).map(|tuple| Node { tuple })
    }
}

/// One node of an inner tuple: a label and where it leads.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    tuple: IndexTuple<'a>,
}

impl<'a> Node<'a> {
    /// Where it leads; nothing when no row came along here yet.
    pub fn downlink(self) -> Option<Tid> {
        Some(self.tuple.t_tid()).filter(|tid| tid.offset != 0)
    }

    /// The label's bytes; values passed by value are stored in 8 bytes.
    pub fn label(self) -> Option<&'a [u8]> {
        let labelled = !self.tuple.has(INDEX_NULL_MASK);
        self.tuple
            .bytes()
            .get(TUPLE_HEADER_BYTES..)
            .filter(|label| labelled && !label.is_empty())
    }

    /// The label as the 16-bit number that it is in a tree of texts.
    pub fn label_number(self) -> Option<i16> {
        let low = u64_at(self.label()?, 0)? & 0xFFFF;
        u16::try_from(low).ok().map(u16::cast_signed)
    }
}

fn tid_at(bytes: &[u8], at: usize) -> Tid {
    let half = |at| u16_at(bytes, at).unwrap_or_default();
    Tid {
        block: u32::from(half(at)) << 16 | u32::from(half(at + 2)),
        offset: half(at + 4),
    }
}

/// The row of every live tuple of a leaf page, nulls' tree included, with its line pointer number.
pub fn for_each_row(page: Page<'_>, each: &mut dyn FnMut(Tid, u16)) {
    let Some(page) = SpgistPage::parse(page).filter(|page| page.is_leaf()) else {
        return;
    };
    for (number, tuple) in page.tuples() {
        if tuple.state() == State::Live {
            each(tuple.leaf().row(), number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{put_u16, put_u32};

    #[test]
    fn an_inner_tuple_gives_its_prefix_and_nodes() {
        let mut bytes = vec![0; 48];
        put_u16(&mut bytes, 0, 2 << 3 | 4);
        put_u16(&mut bytes, 2, 8);
        put_u16(&mut bytes, 4, 48);
        bytes[8..16].copy_from_slice(b"prefix..");
        for (start, label) in [(16, 97_u32), (32, 0xFFFF)] {
            put_u16(&mut bytes, start + 2, 7);
            put_u16(&mut bytes, start + 4, 1);
            put_u16(&mut bytes, start + 6, 16);
            put_u32(&mut bytes, start + 8, label);
        }
        let tuple = Tuple::parse(&bytes).expect("16 bytes").inner();
        assert!(tuple.all_the_same());
        assert_eq!(tuple.prefix(), Some(&b"prefix.."[..]));
        let nodes: Vec<_> = tuple
            .nodes()
            .map(|node| (node.downlink(), node.label_number()))
            .collect();
        let down = Some(Tid {
            block: 7,
            offset: 1,
        });
        assert_eq!(nodes, [(down, Some(97)), (down, Some(-1))]);
        put_u16(&mut bytes, 16 + 6, 4);
        let cut = Tuple::parse(&bytes).expect("16 bytes").inner();
        assert_eq!(
            cut.nodes().count(),
            0,
            "a node smaller than its header ends the list"
        );
    }

    #[test]
    fn a_leaf_tuple_gives_its_row_and_the_next() {
        let mut bytes = vec![0; 24];
        put_u32(&mut bytes, 0, 24 << 2);
        put_u16(&mut bytes, 4, 0x8005);
        put_u16(&mut bytes, 8, 3);
        put_u16(&mut bytes, 10, 4);
        let tuple = Tuple::parse(&bytes).expect("16 bytes");
        assert_eq!(tuple.state(), State::Live);
        let leaf = tuple.leaf();
        assert_eq!(
            (leaf.size(), leaf.next(), leaf.has_null_bitmap()),
            (24, 5, true)
        );
        assert_eq!(
            leaf.row(),
            Tid {
                block: 3,
                offset: 4
            }
        );
        assert_eq!(leaf.data().len(), 8);
    }
}
