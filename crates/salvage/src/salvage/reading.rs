//! What is wrong with a page as a whole.

use pgclinic_cluster::{Cluster, ForkFiles, fork_path};
use pgclinic_format::checksum::page_checksum;
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::visibility_map::heap_blocks_per_page;
use pgclinic_format::{BlockNo, Fork, Page};

use crate::carve::PageState;
use crate::shape::Table;

/// Of a page of zeros that is none of those which were never written.
pub(super) const HELD_ROWS: &str =
    "the page is all zeros, and the visibility map says that it held rows";

/// What a page is, and what is wrong with it as a whole.
pub(super) fn look(
    cluster: &Cluster,
    page: Page<'_>,
    block: BlockNo,
) -> (PageState, Option<&'static str>) {
    let state = PageState::of_major(page, cluster.layout.major);
    let why = match state {
        PageState::Empty => None,
        PageState::Broken => {
            Some("the header of the page makes no sense: its rows were found by their structure")
        }
        PageState::Emptied => Some(
            "the header of the page says that it is empty, and bytes of rows are on it: they were found by their structure",
        ),
        PageState::Sound if cluster.checksums() != Some(true) => None,
        PageState::Sound if page.pd_checksum() == page_checksum(page.bytes(), block) => None,
        PageState::Sound => {
            Some("the checksum of the page is wrong: its rows were taken as they are")
        }
    };
    (state, why)
}

/// The bit of a map that says so of all rows of a page.
pub(super) const ALL_VISIBLE: u8 = 1;

/// The visibility map says something of this block, which is true of no page without rows.
pub(super) fn map_marks(cluster: &Cluster, table: &Table, block: BlockNo) -> bool {
    map_bits(cluster, &table.files, block).is_some_and(|bits| bits != 0)
}

/// What the visibility map of a table says of a block; nothing where it does not reach so far.
pub(super) fn map_bits(cluster: &Cluster, files: &ForkFiles, block: BlockNo) -> Option<u8> {
    let page_bytes = u64::from(cluster.build.block_size);
    let per_page = heap_blocks_per_page(usize::try_from(page_bytes).unwrap_or(8192));
    let (map_page, within) = (u64::from(block) / per_page, u64::from(block) % per_page);
    let path = fork_path(&files.home.folder, files.filenode, Fork::Vm, 0);
    let at = map_page * page_bytes + HEADER_BYTES as u64 + within / 4;
    let mut byte = [0];
    let read = cluster.source().read_at(&path, at, &mut byte);
    (read == Ok(1)).then(|| byte[0] >> (within % 4 * 2) & 3)
}
