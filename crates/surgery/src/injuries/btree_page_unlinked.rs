//! The neighbours of a btree leaf pass it by, though it is not deleted.

use pgclinic_format::build::{put_u32, seal_page};
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::plan::{Change, Patch};

use crate::btree_site;
use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// Offsets of `btpo_prev` and `btpo_next` in the special space.
const PREV_AT: usize = 0;
const NEXT_AT: usize = 4;

/// See the module.
pub struct BtreePageUnlinked;

impl Injury for BtreePageUnlinked {
    fn name(&self) -> &'static str {
        "btree-page-unlinked"
    }

    fn summary(&self) -> &'static str {
        "the neighbours of a btree leaf pass it by, though it is not deleted"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let leaf = btree_site::leaf(site).filter(|page| page.prev != 0 && page.next != 0)?;
        btree_site::keys_differ(site, leaf.first_data())?;
        let changes = vec![
            link(site, leaf.prev, NEXT_AT, leaf.next)?,
            link(site, leaf.next, PREV_AT, leaf.prev)?,
        ];
        let (left, right) = (leaf.prev, leaf.next);
        let words = format!("blocks {left} and {right} linked past block {}", site.block);
        let wound = Wound::of_all(Patch { changes }, words)?;
        Some(
            wound
                .must(&["btree-page-unreached"])
                .may(&[followers::BTREE]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}

/// Another page of the index, with one of its links changed and a true checksum.
fn link(site: &Site<'_>, block: BlockNo, at: usize, to: BlockNo) -> Option<Change> {
    let before = site.other_block(block)?;
    let special = usize::from(Page::parse(&before)?.pd_special());
    let mut after = before.clone();
    put_u32(&mut after, special + at, to);
    if site.has_checksums() {
        seal_page(&mut after, block);
    }
    let (path, offset) = site.place_of_block(block)?;
    Some(Change::Bytes {
        path,
        offset,
        before,
        after,
    })
}
