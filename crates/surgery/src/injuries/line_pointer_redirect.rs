//! A line pointer to a row is marked as a redirect.

use pgclinic_format::build::put_u32;
use pgclinic_format::{LinePointer, LpFlags};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ROW_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct LinePointerRedirect;

impl Injury for LinePointerRedirect {
    fn name(&self) -> &'static str {
        "line-pointer-redirect"
    }

    fn summary(&self) -> &'static str {
        "a line pointer to a row is marked as a redirect"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ROW_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |_| true)?;

        let pointer = LinePointer::new(
            row.pointer.lp_off(),
            LpFlags::Redirect,
            row.pointer.lp_len(),
        );
        let words = format!("line pointer {} set to LP_REDIRECT", row.item);
        let wound = Wound::edit(site, words, |page| {
            put_u32(page, Site::pointer_at(row.item), pointer.0)
        })?;
        Some(
            wound
                .item(row.item)
                .must(&["redirect-target"])
                .may(&[followers::CHAINS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::LINE_POINTER
    }
}
