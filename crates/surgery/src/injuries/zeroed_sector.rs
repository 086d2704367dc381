//! A sector of 512 bytes in the middle of a page is zeros.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site, choose, hoff_contradiction};
use crate::way_out;

/// See the module.
pub struct ZeroedSector;

impl Injury for ZeroedSector {
    fn name(&self) -> &'static str {
        "zeroed-sector"
    }

    fn summary(&self) -> &'static str {
        "a sector of 512 bytes in the middle of a page is zeros"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let upper = usize::from(site.page()?.pd_upper());
        let sectors: Vec<usize> = (512..site.bytes.len())
            .step_by(512)
            .filter(|start| start + 512 > upper)
            .collect();
        let start = *choose(&sectors, seed)?;
        let mut after = site.bytes.clone();
        after.get_mut(start..start + 512)?.fill(0);
        let wound = Wound::bytes(
            site,
            &after,
            format!("bytes {start} to {} set to zero", start + 511),
        )?;
        let wound = wound.may(&[
            followers::LINE_POINTERS,
            followers::TUPLE_HEADER,
            followers::ATTRIBUTES,
        ]);
        Some(wound.must_or_blind(
            hoff_contradiction(&after),
            "no row begins in the sector, and zeros may be values",
        ))
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_LOST
    }
}
