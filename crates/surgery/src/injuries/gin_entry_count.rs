//! An entry of a GIN index claims one row more than its list holds.

use pgclinic_format::build::put_u16;
use pgclinic_format::gin::{EntryTuple, Opaque, PageKind, Posting};
use pgclinic_format::index_page::AccessMethod;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site, choose};
use crate::way_out;

/// See the module.
pub struct GinEntryCount;

impl Injury for GinEntryCount {
    fn name(&self) -> &'static str {
        "gin-entry-count"
    }

    fn summary(&self) -> &'static str {
        "an entry of a GIN index counts a row that is not in its list"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        site.method()
            .filter(|method| *method == AccessMethod::Gin)?;
        let page = site.page()?;
        let opaque = Opaque::of(page)?;
        (opaque.kind()? == PageKind::EntryLeaf).then_some(())?;
        let lists: Vec<_> = page
            .line_pointers()
            .filter_map(|(item, pointer)| {
                let entry = EntryTuple::parse(page.item(pointer)?)?;
                match entry.posting()? {
                    Posting::List { count, .. } if count > 0 => Some((item, pointer, count + 1)),
                    _ => None,
                }
            })
            .collect();
        let (item, pointer, count) = *choose(&lists, seed)?;
        let at = usize::from(pointer.lp_off()) + 4;
        let words = format!("entry {item} set to {count} rows");
        let wound = Wound::edit(site, words, |page| put_u16(page, at, count))?;
        Some(wound.item(item).must(&["gin-entry"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
