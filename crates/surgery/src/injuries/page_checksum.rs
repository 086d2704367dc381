//! The stored checksum alone is wrong.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ANY_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct PageChecksum;

impl Injury for PageChecksum {
    fn name(&self) -> &'static str {
        "page-checksum"
    }

    fn summary(&self) -> &'static str {
        "the stored checksum alone is wrong"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(ANY_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let stored = site.page()?.pd_checksum();
        let wrong = stored ^ 0x5A5A;
        let wound = Wound::edit(
            site,
            format!("pd_checksum {stored} replaced by {wrong}"),
            |page| put_u16(page, 8, wrong),
        )?;
        let seen = site.has_checksums().then_some("checksum-mismatch");
        Some(wound.must_or_blind(seen, "with data checksums off nothing reads the field"))
    }

    fn way_out(&self) -> &'static str {
        way_out::CHECKSUM_ONLY
    }
}
