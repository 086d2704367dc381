//! A line pointer to a row is marked as dead.

use pgclinic_format::build::put_u32;
use pgclinic_format::{LinePointer, LpFlags};

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
        Some(
            wound
                .item(row.item)
                .blind("a dead line pointer may keep its storage until the next vacuum"),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::LINE_POINTER
    }
}
