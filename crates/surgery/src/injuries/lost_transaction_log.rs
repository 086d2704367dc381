//! The last file of pg_xact is gone.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, TRANSACTION_LOG};
use crate::way_out;

/// See the module.
pub struct LostTransactionLog;

impl Injury for LostTransactionLog {
    fn name(&self) -> &'static str {
        "lost-transaction-log"
    }

    fn summary(&self) -> &'static str {
        "the last file of pg_xact is gone"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(TRANSACTION_LOG)
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
