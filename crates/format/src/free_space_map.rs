//! The free space map: on each page a tree of bytes behind a standard page header, where every node
//! holds the larger of its two children.
//!
//! ```text
//! 24             28              28 + BLCKSZ / 2 - 1             BLCKSZ
//! | fp_next_slot | upper nodes … | leaf nodes, one a block … |
//! ```
//!
//! A byte stands for room in steps of a 256th of a block. The map is a hint: it is not written to
//! the WAL, it lags behind the heap, and after a crash it may speak of blocks that are not there.
//! Only the tree within a page has to be right, and the server mends it when it comes by.
//!
//! Truth: `src/include/storage/fsm_internals.h`,
//! `src/backend/storage/freespace/{README,fsmpage.c}`.

use crate::page::{HEADER_BYTES, Page};

/// Offset of `fp_nodes` on the page.
pub const NODES_AT: usize = HEADER_BYTES + 4;

/// The nodes of a page's tree, the root first.
pub fn nodes(page: Page<'_>) -> &[u8] {
    page.bytes().get(NODES_AT..).unwrap_or_default()
}

/// `NonLeafNodesPerPage`: nodes with children.
pub fn upper_nodes(page: Page<'_>) -> usize {
    page.len() / 2 - 1
}

/// A node that is not the larger of its children.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreeFault {
    /// Its number, from 0 at the root.
    pub node: usize,
    /// What it holds.
    pub value: u8,
    /// What its children ask for.
    pub expected: u8,
}

/// The nodes that are not the larger of their children, from the root on.
pub fn tree_faults(page: Page<'_>) -> impl Iterator<Item = TreeFault> {
    let nodes = nodes(page);
    let upper = nodes.get(..upper_nodes(page)).unwrap_or_default();
    upper.iter().enumerate().filter_map(move |(node, value)| {
        let child = |side: usize| nodes.get(2 * node + side).copied().unwrap_or(0);
        let expected = child(1).max(child(2));
        (expected != *value).then_some(TreeFault {
            node,
            value: *value,
            expected,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::PageBuilder;

    #[test]
    fn each_node_is_the_larger_of_its_children() {
        let mut bytes = PageBuilder::new(8192, &[]).finish(0);
        // The last leaf, and its way to the root.
        let mut node = 8192 - NODES_AT - 1;
        bytes[NODES_AT + node] = 200;
        while node > 0 {
            node = (node - 1) / 2;
            bytes[NODES_AT + node] = 200;
        }
        let page = Page::parse(&bytes).expect("a page");
        assert_eq!(tree_faults(page).count(), 0);
        bytes[NODES_AT] = 7;
        let page = Page::parse(&bytes).expect("a page");
        let fault = TreeFault {
            node: 0,
            value: 7,
            expected: 200,
        };
        assert_eq!(tree_faults(page).collect::<Vec<_>>(), [fault]);
    }

    #[test]
    fn every_block_size_has_room_for_its_tree() {
        for len in [1024, 4096, 32768] {
            let mut bytes = vec![0xFF; len];
            let page = Page::parse(&bytes).expect("a page");
            // Inner nodes whose children would lie behind the page are 0, and so on upwards.
            let (count, upper) = (nodes(page).len(), upper_nodes(page));
            for node in (0..upper).rev() {
                let children = [2 * node + 1, 2 * node + 2];
                let present = children.into_iter().filter(|child| *child < count);
                bytes[NODES_AT + node] = present
                    .map(|child| bytes[NODES_AT + child])
                    .max()
                    .unwrap_or(0);
            }
            let page = Page::parse(&bytes).expect("a page");
            assert!(upper_nodes(page) * 2 + 1 > nodes(page).len() / 2);
            assert_eq!(tree_faults(page).count(), 0, "{len}");
        }
    }
}
