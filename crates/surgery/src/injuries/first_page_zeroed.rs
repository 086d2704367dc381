//! The first page of an index or a sequence is all zeros.

use crate::followers::INDEX_TREES;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, SiteKind};
use crate::way_out;

/// See the module.
pub struct FirstPageZeroed;

impl Injury for FirstPageZeroed {
    fn name(&self) -> &'static str {
        "first-page-zeroed"
    }

    fn summary(&self) -> &'static str {
        "the first page of an index or a sequence is all zeros"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(&[SiteKind::IndexPage, SiteKind::SequencePage])
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        (site.block == 0 && site.checkpoint().is_some()).then_some(())?;
        let index = site.relation.and_then(|relation| relation.index.as_ref());
        index.is_none_or(|index| index.ready).then_some(())?;
        let wound = Wound::edit(site, "the whole page set to zero", |page| page.fill(0))?;
        Some(wound.must(&["first-page-zeroed"]).may(&[INDEX_TREES]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
