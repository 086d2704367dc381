//! The page of another block of the same relation was written here.

use pgclinic_format::heap_tuple::HEAP_XMAX_INVALID;
use pgclinic_format::{BlockNo, Page, Xid};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ROW_PAGE, Site, rows_of};
use crate::way_out;

/// Its rows without a successor all name their own block, and there is one.
fn names_only(bytes: &[u8], block: BlockNo) -> bool {
    let rows = Page::parse(bytes).map(rows_of).unwrap_or_default();
    let lasting = rows.iter().filter(|row| {
        let tuple = row.tuple;
        tuple.t_ctid().offset == row.item
            && (tuple.t_xmax() == Xid::INVALID || tuple.has(HEAP_XMAX_INVALID))
    });
    let mut blocks = lasting.map(|row| row.tuple.t_ctid().block).peekable();
    blocks.peek().is_some() && blocks.all(|own| own == block)
}

/// See the module.
pub struct PageOfAnotherBlock;

impl Injury for PageOfAnotherBlock {
    fn name(&self) -> &'static str {
        "page-of-another-block"
    }

    fn summary(&self) -> &'static str {
        "the page of another block of the same relation was written here"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ROW_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let found = site.other_blocks(seed).into_iter().find_map(|block| {
            let page = site.other_block(block)?;
            names_only(&page, block).then_some((block, page))
        });
        let (block, page) = found?;
        let wound = Wound::bytes(
            site,
            &page,
            format!("overwritten with the page of block {block}"),
        )?;
        Some(wound.must(&["page-of-another-block"]).may(&[
            &["hot-update-leaves-page"],
            followers::CHAINS,
            followers::FATES,
        ]))
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_LOST
    }
}
