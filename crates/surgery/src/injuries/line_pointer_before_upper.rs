//! A line pointer names bytes of the free space.

use pgclinic_format::build::put_u32;
use pgclinic_format::{LinePointer, LpFlags};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ROW_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct LinePointerBeforeUpper;

impl Injury for LinePointerBeforeUpper {
    fn name(&self) -> &'static str {
        "line-pointer-before-upper"
    }

    fn summary(&self) -> &'static str {
        "a line pointer names bytes of the free space"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ROW_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |_| true)?;
        let page = site.page()?;
        let start = page
            .pd_upper()
            .checked_sub(8)
            .filter(|start| *start >= page.pd_lower())?;
        let pointer = LinePointer::new(start, LpFlags::Normal, row.pointer.lp_len());
        let words = format!(
            "lp_off of line pointer {} set to {start}, in the free space",
            row.item
        );
        let wound = Wound::edit(site, words, |page| {
            put_u32(page, Site::pointer_at(row.item), pointer.0)
        })?;
        Some(wound.item(row.item).must(&["item-before-upper"]).may(&[
            followers::LINE_POINTERS,
            followers::TUPLE_HEADER,
            followers::ATTRIBUTES,
            followers::TOAST_CHUNKS,
        ]))
    }

    fn way_out(&self) -> &'static str {
        way_out::LINE_POINTER
    }
}
