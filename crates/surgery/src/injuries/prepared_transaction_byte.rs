//! A byte of a prepared transaction's file changed.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{PREPARED_TRANSACTION, Site};
use crate::way_out;

/// See the module.
pub struct PreparedTransactionByte;

impl Injury for PreparedTransactionByte {
    fn name(&self) -> &'static str {
        "prepared-transaction-byte"
    }

    fn summary(&self) -> &'static str {
        "a byte of a prepared transaction's file changed"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::large(PREPARED_TRANSACTION)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        Some(Wound::invert_byte(site, seed)?.must(&["prepared-transaction-file"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::SMALL_STATE
    }
}
