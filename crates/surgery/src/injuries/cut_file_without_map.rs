//! A table was cut at the border of a block and its visibility map is gone, but an index knows its rows.

use pgclinic_format::Fork;
use pgclinic_model::plan::{Change, Patch};

use crate::followers;
use crate::index_entries::entries_to;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_FILE, Site};
use crate::way_out;

/// See the module.
pub struct CutFileWithoutMap;

impl Injury for CutFileWithoutMap {
    fn name(&self) -> &'static str {
        "cut-file-without-map"
    }

    fn summary(&self) -> &'static str {
        "a table was cut at the border of a block and its map is gone, an index knows its rows"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(HEAP_FILE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let files = site.files.filter(|files| files.segments.len() == 1)?;
        let block = u64::from(site.cluster.build.block_size);
        let blocks = files.bytes() / block;
        // More than one entry: a single one would rather be wrong itself.
        let left = seed.checked_rem(blocks.checked_sub(1)?)?;
        (site.checkpoint().is_some() && entries_to(site, left..u64::MAX) > 1).then_some(())?;
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
        Some(
            wound
                .must(&["file-truncated"])
                .may(&[followers::SHORT_FILES]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::FILE
    }
}
