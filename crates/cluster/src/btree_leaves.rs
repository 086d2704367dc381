//! The leaves of a btree, page by page, as its files have them.

use pgclinic_format::btree::BtreePage;
use pgclinic_format::checksum::page_checksum;
use pgclinic_format::{BlockNo, Page};

use crate::cluster::Cluster;
use crate::files::ForkFiles;
use crate::pieces::{Piece, Pieces};

/// The meta page.
const META: BlockNo = 0;

/// What a walk over the leaves saw of the tree as a whole.
#[derive(Default)]
pub struct LeafWalk {
    /// Pages of the tree, and pages to which a leaf leads.
    pages: Blocks,
    targets: Blocks,
    /// Pages of which nothing can be read, or whose checksum denies them.
    broken: u64,
}

impl LeafWalk {
    /// No leaf is missing, as far as its neighbours and checksums tell.
    pub fn is_whole(&self) -> bool {
        self.broken == 0 && self.pages.hold_all(&self.targets)
    }
}

/// Numbers of blocks, a bit each.
#[derive(Default)]
struct Blocks(Vec<u64>);

impl Blocks {
    fn insert(&mut self, block: BlockNo) {
        let word = usize::try_from(block / 64).unwrap_or(usize::MAX);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        if let Some(word) = self.0.get_mut(word) {
            *word |= 1 << (block % 64);
        }
    }

    fn hold_all(&self, other: &Blocks) -> bool {
        let own = self.0.iter().copied().chain(std::iter::repeat(0));
        other
            .0
            .iter()
            .zip(own)
            .all(|(other, own)| other & !own == 0)
    }
}

/// Gives every leaf that is in use; `each` says whether more are wanted.
pub fn each_leaf(
    cluster: &Cluster,
    files: &ForkFiles,
    each: &mut dyn FnMut(BtreePage<'_>) -> bool,
) -> LeafWalk {
    let pieces = Pieces::of(files, cluster.build);
    let blocks = files.bytes() / u64::from(cluster.build.block_size);
    let mut seen = LeafWalk::default();
    let mut buffer = Vec::new();
    for piece in (0..pieces.count()).filter_map(|number| pieces.get(number)) {
        for (block, page) in pages(cluster, &piece, &mut buffer, &mut seen.broken) {
            let Some(tree) = tree_page(cluster, page, block, &mut seen.broken) else {
                continue;
            };
            seen.pages.insert(block);
            if !tree.is_leaf() || tree.is_ignored() {
                continue;
            }
            // A link behind the end would make the list of bits as long as it likes.
            match tree.is_rightmost() {
                true => {}
                false if u64::from(tree.next) < blocks => seen.targets.insert(tree.next),
                false => seen.broken += 1,
            }
            if !each(tree) {
                return seen;
            }
        }
    }
    seen
}

/// The whole pages of a piece; what cannot be read is counted.
fn pages<'b>(
    cluster: &Cluster,
    piece: &Piece,
    buffer: &'b mut Vec<u8>,
    broken: &mut u64,
) -> impl Iterator<Item = (BlockNo, Page<'b>)> + use<'b> {
    let page_bytes = usize::try_from(cluster.build.block_size).unwrap_or(8192);
    buffer.resize(usize::try_from(piece.len).unwrap_or(0), 0);
    let read = cluster.source().read_at(&piece.path, piece.offset, buffer);
    let read = read.unwrap_or(0);
    *broken += u64::from(read < buffer.len() || !read.is_multiple_of(page_bytes));
    let whole = buffer.get(..read).unwrap_or_default();
    let pages = whole.chunks_exact(page_bytes).filter_map(Page::parse);
    (piece.first_block..).zip(pages)
}

/// A page of the tree; one of zeros was never written, or is missed by its neighbour.
fn tree_page<'p>(
    cluster: &Cluster,
    page: Page<'p>,
    block: BlockNo,
    broken: &mut u64,
) -> Option<BtreePage<'p>> {
    if block == META || page.is_zeroed() {
        return None;
    }
    let tree = BtreePage::parse(page);
    let is_denied = cluster.checksums() == Some(true)
        && page.pd_checksum() != page_checksum(page.bytes(), block);
    let is_right = tree.is_some() && page.header_is_sane_to_the_server() && !is_denied;
    // What it still holds is given all the same.
    *broken += u64::from(!is_right);
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_only_its_neighbour_knows_is_missed() {
        let mut seen = LeafWalk::default();
        [1, 2, 200]
            .into_iter()
            .for_each(|block| seen.pages.insert(block));
        [2, 200]
            .into_iter()
            .for_each(|block| seen.targets.insert(block));
        assert!(seen.is_whole());
        seen.targets.insert(64);
        assert!(!seen.is_whole());
        seen.pages.insert(64);
        assert!(seen.is_whole());
        seen.broken = 1;
        assert!(!seen.is_whole());
    }
}
