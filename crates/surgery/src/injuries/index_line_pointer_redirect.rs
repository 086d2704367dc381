//! An index page holds a redirect, which only tables have.

use pgclinic_format::build::put_u32;
use pgclinic_format::index_page::has_line_pointers;
use pgclinic_format::{LinePointer, LpFlags};

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site, choose};
use crate::way_out;

/// See the module.
pub struct IndexLinePointerRedirect;

impl Injury for IndexLinePointerRedirect {
    fn name(&self) -> &'static str {
        "index-line-pointer-redirect"
    }

    fn summary(&self) -> &'static str {
        "an index page holds a redirect, which only tables have"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let page = site.page()?;
        site.method()
            .filter(|method| has_line_pointers(*method, page))?;
        let normal: Vec<_> = page
            .line_pointers()
            .filter(|(_, pointer)| pointer.flags() == LpFlags::Normal)
            .collect();
        let (item, _) = choose(&normal, seed)?;
        let pointer = LinePointer::new(1, LpFlags::Redirect, 0);
        let words = format!("line pointer {item} set to LP_REDIRECT");
        let wound = Wound::edit(site, words, |page| {
            put_u32(page, Site::pointer_at(*item), pointer.0)
        })?;
        Some(wound.item(*item).must(&["redirect-in-index"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
