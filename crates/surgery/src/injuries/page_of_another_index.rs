//! A page of an index of another kind was written here.

use pgclinic_cluster::RelKind;
use pgclinic_format::Page;
use pgclinic_format::index_page::{AccessMethod, page_kind_fault};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct PageOfAnotherIndex;

impl Injury for PageOfAnotherIndex {
    fn name(&self) -> &'static str {
        "page-of-another-index"
    }

    fn summary(&self) -> &'static str {
        "a page of an index of another kind was written here"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let method = site.method().filter(|_| site.block > 0)?;
        let alike = |other: AccessMethod| {
            other != method && other.special_bytes() == method.special_bytes()
        };
        let donors = site.donors(seed, |relation| {
            relation.kind == RelKind::Index && relation.page_method().is_some_and(alike)
        });
        let told = |page: &[u8]| {
            Page::parse(page)
                .is_some_and(|page| page_kind_fault(method, page, site.block).is_some())
        };
        let (donor, block, page) = donors.into_iter().find(|(_, _, page)| told(page))?;
        let words = format!(
            "overwritten with block {block} of {}",
            donor.qualified_name()
        );
        let wound = Wound::bytes(site, &page, words)?.must(&["index-page-kind"]);
        Some(wound.may(&[followers::INDEX_PAGES, followers::LINE_POINTERS]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
