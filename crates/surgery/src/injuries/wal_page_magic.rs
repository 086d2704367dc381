//! The WAL page with the checkpoint record carries the magic number of another version.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, WAL_CHECKPOINT, flip};
use crate::way_out;

/// See the module.
pub struct WalPageMagic;

impl Injury for WalPageMagic {
    fn name(&self) -> &'static str {
        "wal-page-magic"
    }

    fn summary(&self) -> &'static str {
        "the WAL page with the checkpoint record carries the magic number of another version"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(WAL_CHECKPOINT)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let wound = Wound::edit(site, "xlp_magic changed", |page| flip(page, 0))?;
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
