//! A line pointer names an offset that no row begins at.

use pgclinic_format::build::put_u32;
use pgclinic_format::{LinePointer, LpFlags};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ROW_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct LinePointerMisaligned;

impl Injury for LinePointerMisaligned {
    fn name(&self) -> &'static str {
        "line-pointer-misaligned"
    }

    fn summary(&self) -> &'static str {
        "a line pointer names an offset that no row begins at"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ROW_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |_| true)?;
        let start = row.pointer.lp_off().checked_add(4)?;
        let pointer = LinePointer::new(start, LpFlags::Normal, row.pointer.lp_len());
        let words = format!("lp_off of line pointer {} set to {start}", row.item);
        let wound = Wound::edit(site, words, |page| {
            put_u32(page, Site::pointer_at(row.item), pointer.0)
        })?;
        Some(
            wound
                .item(row.item)
                .must(&["item-misaligned"])
                .may(&[&["item-beyond-page"], followers::CHAINS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::LINE_POINTER
    }
}
