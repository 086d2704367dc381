//! A line pointer claims fewer bytes than any row has.

use pgclinic_format::build::put_u32;
use pgclinic_format::{LinePointer, LpFlags};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ROW_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct LinePointerLengthTiny;

impl Injury for LinePointerLengthTiny {
    fn name(&self) -> &'static str {
        "line-pointer-length-tiny"
    }

    fn summary(&self) -> &'static str {
        "a line pointer claims fewer bytes than any row has"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ROW_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |_| true)?;
        let len = if seed.is_multiple_of(2) { 0 } else { 16 };
        let pointer = LinePointer::new(row.pointer.lp_off(), LpFlags::Normal, len);
        let words = format!("lp_len of line pointer {} set to {len}", row.item);
        let wound = Wound::edit(site, words, |page| {
            put_u32(page, Site::pointer_at(row.item), pointer.0)
        })?;
        Some(
            wound
                .item(row.item)
                .must(&["item-too-short"])
                .may(&[followers::CHAINS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::LINE_POINTER
    }
}
