//! The redirect to a row is gone.

use pgclinic_cluster::XactStatus;
use pgclinic_format::build::put_u32;
use pgclinic_format::{LinePointer, LpFlags};

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site, choose, rows_of};
use crate::way_out;

/// See the module.
pub struct RedirectUnused;

impl Injury for RedirectUnused {
    fn name(&self) -> &'static str {
        "redirect-unused"
    }

    fn summary(&self) -> &'static str {
        "the redirect to a row is gone"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let page = site.page()?;
        let redirects: Vec<(u16, LinePointer)> = page
            .line_pointers()
            .filter(|(_, pointer)| pointer.flags() == LpFlags::Redirect)
            .filter(|(_, pointer)| {
                let mut rows = rows_of(page).into_iter();
                rows.any(|row| row.item == pointer.lp_off() && row.tuple.xmin_is_frozen())
                    || site
                        .row(0, |row| {
                            row.item == pointer.lp_off()
                                && site.status(row.tuple.t_xmin()) == Some(XactStatus::Committed)
                        })
                        .is_some()
            })
            .collect();
        let (item, _) = choose(&redirects, seed)?;
        let words = format!("redirect {item} set to LP_UNUSED");
        let wound = Wound::edit(site, words, |page| {
            put_u32(page, Site::pointer_at(*item), 0);
        })?;
        Some(wound.item(*item).must(&["heap-only-without-chain"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::LINE_POINTER
    }
}
