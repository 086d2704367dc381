//! Two keys on a leaf of a GIN index have changed places.

use pgclinic_format::build::put_u32;
use pgclinic_format::gin::{Opaque, PageKind};
use pgclinic_format::index_page::AccessMethod;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct GinKeysSwapped;

impl Injury for GinKeysSwapped {
    fn name(&self) -> &'static str {
        "gin-keys-swapped"
    }

    fn summary(&self) -> &'static str {
        "two keys of a GIN index have changed places"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.method()
            .filter(|method| *method == AccessMethod::Gin)?;
        let page = site.page()?;
        let opaque = Opaque::of(page)?;
        (opaque.kind()? == PageKind::EntryLeaf).then_some(())?;
        let class = &site.relation?.index.as_ref()?.classes.first()?.name;
        KNOWN.contains(&class.as_str()).then_some(())?;
        let (first, second) = (page.line_pointer(1)?, page.line_pointer(2)?);
        let words = "line pointers 1 and 2 exchanged";
        let wound = Wound::edit(site, words, |page| {
            put_u32(page, Site::pointer_at(1), second.0);
            put_u32(page, Site::pointer_at(2), first.0);
        })?;
        Some(wound.must(&["gin-key-order"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}

/// Operator classes whose order is known to the check.
const KNOWN: [&str; 4] = ["array_ops", "tsvector_ops", "jsonb_ops", "jsonb_path_ops"];
