//! A byte of the checkpoint record in the WAL is wrong.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, WAL_CHECKPOINT, flip};
use crate::way_out;

/// See the module.
pub struct WalCheckpointByte;

impl Injury for WalCheckpointByte {
    fn name(&self) -> &'static str {
        "wal-checkpoint-byte"
    }

    fn summary(&self) -> &'static str {
        "a byte of the checkpoint record in the WAL is wrong"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(WAL_CHECKPOINT)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let at = site.checkpoint_at()? + 40;
        let words = format!("byte {at} of the WAL page, in the checkpoint record, changed");
        let wound = Wound::edit(site, words, |page| flip(page, at))?;
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
