//! How the pages of a GiST index hang together: who has the downlink to whom, and how deep each
//! lies.
//!
//! Ten bytes a block are kept. A page gets its place by the one downlink that leads to it, or,
//! while a split is incomplete (`F_FOLLOW_RIGHT`), by the right link of the page it was split off
//! from.

use pgclinic_format::gist::{self, F_FOLLOW_RIGHT, GistPage};
use pgclinic_format::types::INVALID_BLOCK;
use pgclinic_format::{BlockNo, Page};

/// What a block holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holds {
    /// Nothing that can be read as a page of GiST.
    Nothing,
    /// A page that was taken out of the tree.
    Deleted,
    /// A leaf without entries.
    EmptyLeaf,
    /// A leaf.
    Leaf,
    /// An inner page.
    Inner,
}

/// How a block is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reached {
    /// Not at all.
    Not,
    /// By a downlink on this page.
    From(BlockNo),
    /// By the right link of this page, whose split is not complete.
    RightOf(BlockNo),
}

/// A downlink, or the right link of an incomplete split, that cannot be right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DoubleLink {
    /// The page that holds it.
    pub(crate) block: BlockNo,
    /// Its line pointer number; nothing for a right link.
    pub(crate) item: Option<u16>,
    /// Where it leads.
    pub(crate) to: BlockNo,
    /// Who leads there already; nothing when it leads to the root.
    pub(crate) other: Option<BlockNo>,
}

/// Levels that no tree has: 2^32 blocks with two children each.
const DEPTH_MAX: u8 = 100;
const UNKNOWN: u8 = 0;
const NOWHERE: u8 = u8::MAX;

/// The tree.
pub(crate) struct GistTree {
    holds: Vec<Holds>,
    reached: Vec<Reached>,
    /// Levels from the root (1) down; see [`GistTree::measure`].
    depths: Vec<u8>,
    splits: Vec<(BlockNo, BlockNo)>,
}

/// Bytes of memory for each block.
pub(crate) const BYTES_PER_BLOCK: u64 =
    (size_of::<Holds>() + size_of::<Reached>() + size_of::<u8>()) as u64;

impl GistTree {
    /// Of so many blocks, none looked at.
    pub(crate) fn new(blocks: usize) -> Self {
        GistTree {
            holds: vec![Holds::Nothing; blocks],
            reached: vec![Reached::Not; blocks],
            depths: vec![UNKNOWN; blocks],
            splits: Vec::new(),
        }
    }

    /// Takes in a page and gives back its downlinks that cannot be right.
    pub(crate) fn add(&mut self, block: BlockNo, page: Option<Page<'_>>) -> Vec<DoubleLink> {
        let mut doubles = Vec::new();
        let Some(page) = page.and_then(GistPage::parse) else {
            return doubles;
        };
        let holds = match () {
            () if page.is_deleted() => Holds::Deleted,
            () if !page.is_leaf() => Holds::Inner,
            () if page.item_count() == 0 => Holds::EmptyLeaf,
            () => Holds::Leaf,
        };
        if let Some(slot) = self.holds.get_mut(index(block)) {
            *slot = holds;
        }
        if page.has(F_FOLLOW_RIGHT) && page.rightlink() != INVALID_BLOCK {
            self.splits.push((block, page.rightlink()));
        }
        if holds == Holds::Inner {
            for item in page.items() {
                let to = item.tuple.t_tid().block;
                doubles.extend(self.link(to, Reached::From(block)).map(|other| DoubleLink {
                    block,
                    item: Some(item.number),
                    to,
                    other,
                }));
            }
        }
        doubles
    }

    /// After all pages: the right halves of incomplete splits; those that have a downlink too are
    /// given back.
    pub(crate) fn join_splits(&mut self) -> Vec<DoubleLink> {
        let mut doubles = Vec::new();
        for (left, right) in std::mem::take(&mut self.splits) {
            let other = self.link(right, Reached::RightOf(left));
            doubles.extend(other.map(|other| DoubleLink {
                block: left,
                item: None,
                to: right,
                other,
            }));
        }
        doubles
    }

    /// Notes who leads to a block; something when it was reached before, or is the root.
    fn link(&mut self, to: BlockNo, by: Reached) -> Option<Option<BlockNo>> {
        if to == gist::ROOT {
            return Some(None);
        }
        let slot = self.reached.get_mut(index(to))?;
        match *slot {
            Reached::Not => {
                *slot = by;
                None
            }
            Reached::From(other) | Reached::RightOf(other) => Some(Some(other)),
        }
    }

    /// What a block holds.
    pub(crate) fn holds(&self, block: BlockNo) -> Holds {
        let held = self.holds.get(index(block));
        held.copied().unwrap_or(Holds::Nothing)
    }

    /// How a block is reached.
    pub(crate) fn reached(&self, block: BlockNo) -> Reached {
        let reached = self.reached.get(index(block));
        reached.copied().unwrap_or(Reached::Not)
    }

    /// The page whose downlink is responsible for a block: the parent, also through unfinished
    /// splits.
    pub(crate) fn parent(&self, block: BlockNo) -> Option<(BlockNo, BlockNo)> {
        let mut child = block;
        for _ in 0..=self.reached.len() {
            match self.reached(child) {
                Reached::From(parent) => return Some((parent, child)),
                Reached::RightOf(left) => child = left,
                Reached::Not => return None,
            }
        }
        None
    }

    /// Levels from the root (1) down to a block; nothing when no way leads there from the root.
    pub(crate) fn depth(&mut self, block: BlockNo) -> Option<u8> {
        let mut way = Vec::new();
        let mut at = block;
        let mut depth = loop {
            let known = self.depths.get(index(at)).copied().unwrap_or(NOWHERE);
            if at == gist::ROOT {
                break 1;
            }
            if known != UNKNOWN {
                break known;
            }
            if way.len() > self.reached.len() {
                break NOWHERE;
            }
            way.push(at);
            at = match self.reached(at) {
                Reached::From(parent) => parent,
                Reached::RightOf(left) => left,
                Reached::Not => break NOWHERE,
            };
        };
        for block in way.into_iter().rev() {
            let down = matches!(self.reached(block), Reached::From(_));
            depth = match depth {
                NOWHERE => NOWHERE,
                deep if deep > DEPTH_MAX => NOWHERE,
                depth => depth + u8::from(down),
            };
            if let Some(slot) = self.depths.get_mut(index(block)) {
                *slot = depth;
            }
        }
        (depth != NOWHERE).then_some(depth)
    }
}

fn index(block: BlockNo) -> usize {
    usize::try_from(block).unwrap_or(usize::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use pgclinic_format::build::{PageBuilder, put_u16, put_u32};
    use pgclinic_format::gist::{F_LEAF, PAGE_ID};

    /// A page with these children, or a leaf with one row.
    pub(crate) fn page(flags: u16, right: u32, children: &[u32]) -> Vec<u8> {
        let mut special = [0; 16];
        put_u32(&mut special, 8, right);
        put_u16(&mut special, 12, flags);
        put_u16(&mut special, 14, PAGE_ID);
        let mut builder = PageBuilder::new(8192, &special);
        for child in children {
            let mut tuple = [0; 8];
            put_u16(&mut tuple, 0, u16::try_from(child >> 16).expect("16 bits"));
            put_u16(
                &mut tuple,
                2,
                u16::try_from(child & 0xFFFF).expect("16 bits"),
            );
            put_u16(&mut tuple, 4, if flags & F_LEAF == 0 { 0xFFFF } else { 1 });
            put_u16(&mut tuple, 6, 8);
            builder = builder.item(&tuple);
        }
        builder.finish(0)
    }

    fn tree(pages: &[Vec<u8>]) -> (GistTree, Vec<DoubleLink>) {
        let mut tree = GistTree::new(pages.len());
        let mut doubles = Vec::new();
        for (block, page) in (0..).zip(pages) {
            doubles.extend(tree.add(block, Page::parse(page)));
        }
        doubles.extend(tree.join_splits());
        (tree, doubles)
    }

    #[test]
    fn an_unfinished_split_is_part_of_the_tree() {
        let none = INVALID_BLOCK;
        let pages = [
            page(0, none, &[1]),
            page(F_LEAF | F_FOLLOW_RIGHT, 2, &[5]),
            page(F_LEAF, none, &[6]),
            page(F_LEAF, none, &[7]),
        ];
        let (mut tree, doubles) = tree(&pages);
        assert_eq!(doubles, []);
        assert_eq!(
            (0..4).map(|block| tree.depth(block)).collect::<Vec<_>>(),
            [Some(1), Some(2), Some(2), None]
        );
        assert_eq!(tree.parent(2), Some((0, 1)));
    }

    #[test]
    fn circles_end() {
        let none = INVALID_BLOCK;
        let pages = [
            page(0, none, &[3]),
            page(0, none, &[2]),
            page(0, none, &[1]),
            page(0, none, &[0]),
        ];
        let (mut tree, doubles) = tree(&pages);
        assert_eq!(doubles.len(), 1, "a downlink to the root");
        assert_eq!((tree.depth(1), tree.depth(2)), (None, None));
        assert_eq!(tree.depth(3), Some(2));
    }

    #[test]
    fn a_page_has_one_downlink() {
        let none = INVALID_BLOCK;
        let pages = [page(0, none, &[1, 1]), page(F_LEAF, none, &[5])];
        let (_, doubles) = tree(&pages);
        let double = DoubleLink {
            block: 0,
            item: Some(2),
            to: 1,
            other: Some(0),
        };
        assert_eq!(doubles, [double]);
    }
}
