//! The map of a BRIN index leads to a place where no summary is.

use pgclinic_format::brin::{PAGE_REVMAP, map_entry, map_entry_at, page_type, ranges_per_map_page};
use pgclinic_format::build::put_u16;
use pgclinic_format::index_page::AccessMethod;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site, choose};
use crate::way_out;

/// See the module.
pub struct BrinMapEntry;

impl Injury for BrinMapEntry {
    fn name(&self) -> &'static str {
        "brin-map-entry"
    }

    fn summary(&self) -> &'static str {
        "the map of a BRIN index leads to a place where no summary is"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        site.method()
            .filter(|method| *method == AccessMethod::Brin)?;
        let page = site.page()?;
        (page_type(page)? == PAGE_REVMAP).then_some(())?;
        let known: Vec<u32> = (0..ranges_per_map_page(page.len()))
            .filter(|index| map_entry(page, *index).is_some())
            .collect();
        let index = *choose(&known, seed)?;
        let at = map_entry_at(index) + 4;

        let words = format!("place {index} of the map leads to summary 2000 of its page");
        let wound = Wound::edit(site, words, |page| put_u16(page, at, 2000))?;
        let wound = wound.must(&["brin-map-entry"]);
        Some(wound.may(&[&["brin-summary-unreferenced"]]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
