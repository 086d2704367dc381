//! The members of a multixact begin elsewhere.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{MULTIXACT_OFFSETS, Site};
use crate::way_out;

/// See the module.
pub struct MultixactOffset;

impl Injury for MultixactOffset {
    fn name(&self) -> &'static str {
        "multixact-offset"
    }

    fn summary(&self) -> &'static str {
        "the members of a multixact begin elsewhere"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(MULTIXACT_OFFSETS)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let in_use = site.status_bytes_in_use()?;
        // Not the last one, which the next number bounds only from above.
        let multis = (in_use / 4).checked_sub(3).filter(|count| *count > 0)?;
        let at = 8 + usize::try_from(seed).ok()? % multis * 4;
        let wound = Wound::edit(site, "an offset raised by 65536", |bytes| {
            if let Some(byte) = bytes.get_mut(at + 2) {
                *byte = byte.wrapping_add(1);
            }
        })?;
        Some(
            wound
                .must(&["multixact-offset-impossible"])
                .may(&[followers::TRANSACTION_STATUS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::STATUS
    }
}
