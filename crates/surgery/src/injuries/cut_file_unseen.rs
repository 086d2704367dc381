//! A table was cut at the border of a block, and no index and no map tells how long it was.

use crate::index_entries::nothing_leads_to;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_FILE, Site};
use crate::way_out;

/// See the module.
pub struct CutFileUnseen;

impl Injury for CutFileUnseen {
    fn name(&self) -> &'static str {
        "cut-file-unseen"
    }

    fn summary(&self) -> &'static str {
        "a table was cut at the border of a block, and no index and no map tells how long it was"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(HEAP_FILE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let files = site.files.filter(|files| files.segments.len() == 1)?;
        let len = files.bytes();
        let block = u64::from(site.cluster.build.block_size);
        let left = (len / block).checked_sub(1).filter(|left| *left > 0)?;
        site.last_marked()
            .is_none_or(|marked| u64::from(marked) < left)
            .then_some(())?;
        nothing_leads_to(site, left..u64::MAX).then_some(())?;
        let wound = Wound::cut(site, left * block, format!("the file cut to {left} blocks"));
        let counted = site
            .relation
            .and_then(|relation| u64::try_from(relation.relpages).ok());
        let seen = counted
            .filter(|relpages| *relpages > left)
            .map(|_| "pages-beyond-end");
        Some(wound.must_or_blind(
            seen,
            "a table may end at any block where no index and no map knows more; relpages is only an estimate",
        ))
    }

    fn way_out(&self) -> &'static str {
        way_out::FILE
    }
}
