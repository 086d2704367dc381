//! A line pointer names bytes behind the end of the page.

use pgclinic_format::build::put_u32;
use pgclinic_format::{LinePointer, LpFlags};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ROW_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct LinePointerBeyondPage;

impl Injury for LinePointerBeyondPage {
    fn name(&self) -> &'static str {
        "line-pointer-beyond-page"
    }

    fn summary(&self) -> &'static str {
        "a line pointer names bytes behind the end of the page"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ROW_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |_| true)?;

        let pointer = LinePointer::new(0x7FF8, LpFlags::Normal, row.pointer.lp_len());
        let words = format!("lp_off of line pointer {} set to 32760", row.item);
        let wound = Wound::edit(site, words, |page| {
            put_u32(page, Site::pointer_at(row.item), pointer.0)
        })?;
        Some(
            wound
                .item(row.item)
                .must(&["item-beyond-page"])
                .may(&[followers::CHAINS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::LINE_POINTER
    }
}
