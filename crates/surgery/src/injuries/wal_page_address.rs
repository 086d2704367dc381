//! The WAL page with the checkpoint record was written for another place.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, WAL_CHECKPOINT, flip};
use crate::way_out;

/// See the module.
pub struct WalPageAddress;

impl Injury for WalPageAddress {
    fn name(&self) -> &'static str {
        "wal-page-address"
    }

    fn summary(&self) -> &'static str {
        "the WAL page with the checkpoint record was written for another place"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(WAL_CHECKPOINT)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let wound = Wound::edit(site, "xlp_pageaddr changed", |page| flip(page, 10))?;
        Some(
            wound
                .must(&["checkpoint-record-missing"])
                .may(&[followers::WAL]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::WAL
    }
}
