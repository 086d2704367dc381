//! A page of another table was written here.

use pgclinic_cluster::{Persistence, RelKind};
use pgclinic_format::Page;
use pgclinic_format::heap_tuple::HEAP_XMIN_COMMITTED;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Row, Site, rows_of};
use crate::way_out;

/// See the module.
pub struct PageOfAnotherTable;

impl Injury for PageOfAnotherTable {
    fn name(&self) -> &'static str {
        "page-of-another-table"
    }

    fn summary(&self) -> &'static str {
        "a page of another table was written here"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let columns = site.relation?.layouts.as_ref()?.len();
        let donors = site.donors(seed, |relation| {
            relation.kind == RelKind::Table && relation.persistence == Persistence::Permanent
        });
        let (donor, block, page) = donors.into_iter().next()?;
        let more = |row: &Row<'_>| {
            let inserted = row.tuple.xmin_is_frozen() || row.tuple.has(HEAP_XMIN_COMMITTED);
            inserted && usize::from(row.tuple.attribute_count()) > columns
        };
        let seen = rows_of(Page::parse(&page)?)
            .iter()
            .any(more)
            .then_some("too-many-attributes");
        let words = format!(
            "overwritten with block {block} of {}",
            donor.qualified_name()
        );
        let wound = Wound::bytes(site, &page, words)?.may(&[
            followers::LINE_POINTERS,
            followers::TUPLE_HEADER,
            followers::ATTRIBUTES,
        ]);
        Some(wound.must_or_blind(
            seen,
            "a page does not say which table it belongs to, and its rows may fit",
        ))
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_LOST
    }
}
