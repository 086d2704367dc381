//! Two redirects lead to the same row.

use pgclinic_format::build::put_u32;
use pgclinic_format::{LinePointer, LpFlags};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site, choose};
use crate::way_out;

/// See the module.
pub struct RedirectsToOneRow;

impl Injury for RedirectsToOneRow {
    fn name(&self) -> &'static str {
        "redirects-to-one-row"
    }

    fn summary(&self) -> &'static str {
        "two redirects lead to the same row"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let page = site.page()?;
        let redirects: Vec<(u16, LinePointer)> = page
            .line_pointers()
            .filter(|(_, pointer)| pointer.flags() == LpFlags::Redirect)
            .collect();
        let pairs: Vec<_> = redirects.iter().zip(redirects.iter().skip(1)).collect();
        let ((_, first), (item, _)) = choose(&pairs, seed)?;
        let words = format!(
            "redirect {item} set to lead to line pointer {} as another one does",
            first.lp_off()
        );
        let wound = Wound::edit(site, words, |page| {
            put_u32(page, Site::pointer_at(*item), first.0);
        })?;
        Some(
            wound
                .item(*item)
                .must(&["update-chains-meet"])
                .may(&[followers::CHAINS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::LINE_POINTER
    }
}
