//! A table was cut at the border of a block, and no index and no map tells how long it was.

use pgclinic_format::Fork;
use pgclinic_model::plan::{Change, Patch};

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
        let left = (len / block).checked_sub(1)?;
        nothing_leads_to(site, left..u64::MAX).then_some(())?;
        let cut = Change::Cut {
            path: site.path.clone(),
            len: left * block,
            kept: "cut".into(),
        };
        let remove = site.sibling(Fork::Vm).map(|map| Change::Remove {
            path: map.path(0),
            kept: "removed".into(),
        });
        let changes = std::iter::once(cut).chain(remove).collect();
        let words = format!("the file cut to {left} blocks, its map removed");
        let wound = Wound::of_all(Patch { changes }, words)?;
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
