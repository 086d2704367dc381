//! What is wrong with a page as a whole.

use pgclinic_cluster::{Cluster, ForkFiles};
use pgclinic_format::checksum::page_checksum;
use pgclinic_format::{BlockNo, Page};

use crate::carve::PageState;
use crate::shape::Table;

/// Of a page of zeros that is none of those which were never written.
pub(super) const HELD_ROWS: &str =
    "the page is all zeros, and the visibility map says that it held rows";

const OF_AN_INDEX: &str = "the page has a special space, which pages of tables have not: it is a page of an index or sequence";
const SPECIAL: &str =
    "the page has a special space, which pages of tables have not: its rows were taken as they are";

/// What a page is, and what is wrong with it as a whole.
pub(super) fn look(
    cluster: &Cluster,
    page: Page<'_>,
    block: BlockNo,
) -> (PageState, Option<&'static str>) {
    let state = PageState::of_major(page, cluster.layout.major);
    let has_special = usize::from(page.pd_special()) != page.bytes().len();
    if state == PageState::Sound && has_special {
        let is_checked = cluster.checksums() == Some(true);
        // With its checksum it is as it was written, and no page of a table.
        return if is_checked && page.pd_checksum() == page_checksum(page.bytes(), block) {
            (PageState::Broken, Some(OF_AN_INDEX))
        } else {
            (state, Some(SPECIAL))
        };
    }
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
    map_bits(cluster, &table.files, block) != 0
}

/// What the visibility map of a table says of a block; 0 where it does not reach so far.
pub(super) fn map_bits(cluster: &Cluster, files: &ForkFiles, block: BlockNo) -> u8 {
    cluster.map_bits(files, block)
}
