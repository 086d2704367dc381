//! The last file of pg_multixact/members was overwritten with zeros.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{MULTIXACT_MEMBERS, Site};
use crate::way_out;

/// See the module.
pub struct ZeroedMultixactMembers;

impl Injury for ZeroedMultixactMembers {
    fn name(&self) -> &'static str {
        "zeroed-multixact-members"
    }

    fn summary(&self) -> &'static str {
        "the last file of pg_multixact/members was overwritten with zeros"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(MULTIXACT_MEMBERS)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let end = site.status_bytes_in_use()?.next_multiple_of(512);
        let wound = Wound::edit(site, "the first sectors of the file zeroed", |bytes| {
            bytes.iter_mut().take(end).for_each(|byte| *byte = 0);
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
