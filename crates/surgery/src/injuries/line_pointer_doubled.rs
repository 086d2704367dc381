//! Two line pointers name the same row.

use pgclinic_format::build::put_u32;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ROW_PAGE, Site, rows_of};
use crate::way_out;

/// See the module.
pub struct LinePointerDoubled;

impl Injury for LinePointerDoubled {
    fn name(&self) -> &'static str {
        "line-pointer-doubled"
    }

    fn summary(&self) -> &'static str {
        "two line pointers name the same row"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ROW_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |_| true)?;
        let page = site.page()?;
        let other = rows_of(page)
            .into_iter()
            .find(|other| other.item != row.item)?;
        let pointer = other.pointer;
        let words = format!(
            "line pointer {} made the same as line pointer {}",
            row.item, other.item
        );
        let wound = Wound::edit(site, words, |page| {
            put_u32(page, Site::pointer_at(row.item), pointer.0)
        })?;
        Some(wound.item(row.item).must(&["items-overlap"]).may(&[
            followers::CHAINS,
            followers::TUPLE_HEADER,
            followers::ATTRIBUTES,
        ]))
    }

    fn way_out(&self) -> &'static str {
        way_out::LINE_POINTER
    }
}
