//! A member of a multixact does what no member can.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{MULTIXACT_MEMBERS, Site};
use crate::way_out;

/// See the module.
pub struct MultixactMemberStatus;

impl Injury for MultixactMemberStatus {
    fn name(&self) -> &'static str {
        "multixact-member-status"
    }

    fn summary(&self) -> &'static str {
        "a member of a multixact does what no member can"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(MULTIXACT_MEMBERS)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let groups = (site.status_bytes_in_use()? / 20).checked_sub(1)?;
        // Member 0 of the first group is never written.
        let at = match usize::try_from(seed).ok()? % (groups + 1) {
            0 => 1,
            group => group * 20,
        };
        let wound = Wound::edit(site, "the status of a member set to 77", |bytes| {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = 77;
            }
        })?;
        Some(
            wound
                .must(&["multixact-member-impossible"])
                .may(&[followers::TRANSACTION_STATUS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::STATUS
    }
}
