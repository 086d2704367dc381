//! The last file of pg_xact was overwritten with zeros.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, TRANSACTION_LOG};
use crate::way_out;

/// See the module.
pub struct ZeroedTransactionLog;

impl Injury for ZeroedTransactionLog {
    fn name(&self) -> &'static str {
        "zeroed-transaction-log"
    }

    fn summary(&self) -> &'static str {
        "the last file of pg_xact was overwritten with zeros"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(TRANSACTION_LOG)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let end = site.status_bytes_in_use()?.next_multiple_of(512);
        let wound = Wound::edit(site, "the first sectors of the file zeroed", |bytes| {
            bytes.iter_mut().take(end).for_each(|byte| *byte = 0);
        })?;
        Some(
            wound
                .must(&["status-file-zeroed"])
                .may(&[followers::TRANSACTION_STATUS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::STATUS
    }
}
