//! The last file of pg_multixact/members is gone.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{MULTIXACT_MEMBERS, Site};
use crate::way_out;

/// See the module.
pub struct LostMultixactMembers;

impl Injury for LostMultixactMembers {
    fn name(&self) -> &'static str {
        "lost-multixact-members"
    }

    fn summary(&self) -> &'static str {
        "the last file of pg_multixact/members is gone"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(MULTIXACT_MEMBERS)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.status_bytes_in_use()?;
        Some(
            Wound::remove(site.path.clone(), "the file removed")
                .must(&["status-file-missing"])
                .may(&[followers::TRANSACTION_STATUS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::STATUS
    }
}
