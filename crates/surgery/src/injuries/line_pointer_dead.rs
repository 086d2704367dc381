//! A line pointer to a row is marked as dead.

use pgclinic_format::build::put_u32;
use pgclinic_format::page::PD_ALL_VISIBLE;
use pgclinic_format::{LinePointer, LpFlags};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ROW_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct LinePointerDead;

impl Injury for LinePointerDead {
    fn name(&self) -> &'static str {
        "line-pointer-dead"
    }

    fn summary(&self) -> &'static str {
        "a line pointer to a row is marked as dead"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ROW_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let targets = site.redirect_targets();
        let row = site.row(seed, |row| !targets.contains(&row.item))?;

        let pointer = LinePointer::new(row.pointer.lp_off(), LpFlags::Dead, row.pointer.lp_len());
        let words = format!("line pointer {} set to LP_DEAD", row.item);
        let wound = Wound::edit(site, words, |page| {
            put_u32(page, Site::pointer_at(row.item), pointer.0)
        })?;
        let flags = site.page()?.pd_flags();
        let promised = site.checkpoint().is_some() && flags & PD_ALL_VISIBLE != 0;
        let wound = wound.item(row.item).may(&[followers::CHAINS]);
        Some(wound.must_or_blind(
            promised.then_some("page-not-all-visible"),
            "a dead line pointer may keep its storage until the next vacuum",
        ))
    }

    fn way_out(&self) -> &'static str {
        way_out::LINE_POINTER
    }
}
