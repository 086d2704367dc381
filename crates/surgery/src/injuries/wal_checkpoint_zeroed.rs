//! The checkpoint record in the WAL is zeroed.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, WAL_CHECKPOINT};
use crate::way_out;

/// See the module.
pub struct WalCheckpointZeroed;

impl Injury for WalCheckpointZeroed {
    fn name(&self) -> &'static str {
        "wal-checkpoint-zeroed"
    }

    fn summary(&self) -> &'static str {
        "the checkpoint record in the WAL is zeroed"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(WAL_CHECKPOINT)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let at = site.checkpoint_at()?;
        let wound = Wound::edit(site, "the checkpoint record filled with zeros", |page| {
            page.iter_mut().skip(at).take(64).for_each(|byte| *byte = 0);
        })?;
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
