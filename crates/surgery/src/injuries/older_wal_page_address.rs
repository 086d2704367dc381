//! An older WAL page was written for another place.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, WAL_OLDER, flip};
use crate::way_out;

/// See the module.
pub struct OlderWalPageAddress;

impl Injury for OlderWalPageAddress {
    fn name(&self) -> &'static str {
        "older-wal-page-address"
    }

    fn summary(&self) -> &'static str {
        "an older WAL page was written for another place"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::large(WAL_OLDER)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.is_inner_older_page().then_some(())?;
        let wound = Wound::edit(site, "xlp_pageaddr changed", |page| flip(page, 10))?;
        Some(wound.must(&["wal-page-header"]).may(&[followers::WAL]))
    }

    fn way_out(&self) -> &'static str {
        way_out::OLDER_WAL
    }
}
