//! The leaves of a btree, page by page, as its files have them; and what entries of any index name.

use pgclinic_format::btree::{BtreePage, Meta};
use pgclinic_format::hash;
use pgclinic_format::index_entries::for_each_entry;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, Lsn, Page};

use crate::block_set::BlockSet;
use crate::cluster::Cluster;
use crate::files::ForkFiles;
use crate::pieces::{Piece, Pieces};

/// The meta page.
const META: BlockNo = 0;
/// A link that leads nowhere, as block 0 is never a page of the tree.
const NONE: BlockNo = 0;

/// What a walk over the leaves saw of the tree as a whole.
#[derive(Default)]
pub struct LeafWalk {
    /// Pages of the tree, and pages to which a leaf leads.
    pages: BlockSet,
    targets: BlockSet,
    /// Pages of which nothing can be read, or whose checksum denies them.
    broken: u64,
    has_meta: bool,
}

impl LeafWalk {
    /// No leaf is missing, as far as its neighbours and checksums tell.
    pub fn is_whole(&self) -> bool {
        self.has_meta && self.broken == 0 && self.pages.hold_all(&self.targets)
    }

    /// The meta page names the root: an index that is all zeros behind it, or that is empty as a
    /// file, is none.
    fn take_meta(&mut self, cluster: &Cluster, page: Page<'_>, blocks: u64) {
        self.has_meta = true;
        let root =
            Meta::parse(page).filter(|_| !page.is_new() && cluster.page_is_sound(page, META));
        match root.map(|meta| meta.root) {
            Some(NONE) => {}
            Some(root) if u64::from(root) < blocks => self.targets.insert(root),
            _ => self.broken += 1,
        }
    }
}

/// Which leaves are given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Leaves {
    /// Also broken ones, with what they still hold.
    All,
    /// Only those whose header and checksum nothing denies: what they say accuses others.
    Sound,
}

/// Gives every leaf that is in use, with its block; `each` says whether more are wanted.
pub fn each_leaf(
    cluster: &Cluster,
    files: &ForkFiles,
    leaves: Leaves,
    each: &mut dyn FnMut(BlockNo, BtreePage<'_>) -> bool,
) -> LeafWalk {
    let pieces = Pieces::of(files, cluster.build);
    let blocks = files.bytes() / u64::from(cluster.build.block_size);
    let mut seen = LeafWalk::default();
    let mut buffer = Vec::new();
    for piece in (0..pieces.count()).filter_map(|number| pieces.get(number)) {
        for (block, page) in pages(cluster, &piece, &mut buffer, &mut seen.broken) {
            if block == META {
                seen.take_meta(cluster, page, blocks);
                continue;
            }
            let broken = seen.broken;
            let Some(tree) = tree_page(cluster, page, block, &mut seen.broken) else {
                continue;
            };
            seen.pages.insert(block);
            if !tree.is_leaf() || tree.is_ignored() {
                continue;
            }
            // A link behind the end would make the list of bits as long as it likes.
            for neighbour in [tree.prev, tree.next] {
                match neighbour {
                    NONE => {}
                    there if u64::from(there) < blocks => seen.targets.insert(there),
                    _ => seen.broken += 1,
                }
            }
            if leaves == Leaves::Sound && seen.broken > broken {
                continue;
            }
            if !each(block, tree) {
                return seen;
            }
        }
    }
    seen
}

/// Pages of an index that gave no entries and may have had some.
#[derive(Clone, Copy, Default)]
pub struct SilentPages {
    /// Nothing of them can be read, or header or checksum denies them.
    pub broken: u64,
    /// All zero, apart from pages of a hash index that no split has reached.
    pub zeroed: u64,
}

/// Gives every row that an entry of the index names, of pages whose header and checksum nothing
/// denies; `each` says whether more are wanted.
pub fn each_row_named(
    cluster: &Cluster,
    files: &ForkFiles,
    method: AccessMethod,
    each: &mut dyn FnMut(Tid, Lsn) -> bool,
) -> SilentPages {
    let pieces = Pieces::of(files, cluster.build);
    let mut silent = SilentPages::default();
    let mut buffer = Vec::new();
    let mut hash_meta = Vec::new();
    let mut goes_on = true;
    for piece in (0..pieces.count()).filter_map(|number| pieces.get(number)) {
        let mut denied = 0;
        for (block, page) in pages(cluster, &piece, &mut buffer, &mut silent.broken) {
            if block == META && method == AccessMethod::Hash {
                page.bytes().clone_into(&mut hash_meta);
            }
            if page.is_zeroed() {
                silent.zeroed += u64::from(!is_laid_out_ahead(&hash_meta, block));
            } else if page.is_new() || !cluster.page_is_sound(page, block) {
                denied += 1;
            } else {
                let lsn = page.pd_lsn();
                for_each_entry(method, page, |_, tid| goes_on &= each(tid, lsn));
            }
            if !goes_on {
                return silent;
            }
        }
        silent.broken += denied;
    }
    silent
}

fn is_laid_out_ahead(hash_meta: &[u8], block: BlockNo) -> bool {
    let meta = Page::parse(hash_meta).and_then(hash::Meta::parse);
    meta.is_some_and(|meta| meta.is_laid_out_ahead(block))
}

/// The whole pages of a piece; what cannot be read is counted.
pub(crate) fn pages<'b>(
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
    if page.is_zeroed() {
        return None;
    }
    let tree = BtreePage::parse(page);
    // What it still holds is given all the same.
    *broken += u64::from(tree.is_none() || !cluster.page_is_sound(page, block));
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_only_its_neighbour_knows_is_missed() {
        let mut seen = LeafWalk {
            has_meta: true,
            ..LeafWalk::default()
        };
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
