//! A btree lost its last blocks.

use pgclinic_format::Page;
use pgclinic_format::index_page::{AccessMethod, btree_links};

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_FILE, Site};
use crate::way_out;

/// See the module.
pub struct CutIndex;

impl Injury for CutIndex {
    fn name(&self) -> &'static str {
        "cut-index"
    }

    fn summary(&self) -> &'static str {
        "a btree lost its last blocks"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(INDEX_FILE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let files = site.files.filter(|files| files.segments.len() == 1)?;
        let len = files.bytes();
        site.method()
            .filter(|method| *method == AccessMethod::Btree)?;
        let block = u64::from(site.cluster.build.block_size);
        let left = (len / block).checked_sub(1).filter(|left| *left > 1)?;
        let page = site.other_block(u32::try_from(left).ok()?)?;
        // The left neighbour still leads to the page that is cut off.
        let (previous, _, _) = btree_links(Page::parse(&page)?)?;
        let neighbour = site.other_block(previous).filter(|_| previous != 0)?;
        let (_, next, _) = btree_links(Page::parse(&neighbour)?)?;
        (u64::from(next) == left).then_some(())?;
        let wound = Wound::cut(site, left * block, format!("the file cut to {left} blocks"));
        Some(
            wound
                .must(&["btree-link-beyond-end"])
                .may(&[&["pages-beyond-end"]]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
