//! A byte of the replication origins' progress changed.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{REPLICATION_ORIGINS, Site};
use crate::way_out;

/// See the module.
pub struct ReplicationOriginByte;

impl Injury for ReplicationOriginByte {
    fn name(&self) -> &'static str {
        "replication-origin-byte"
    }

    fn summary(&self) -> &'static str {
        "a byte of the replication origins' progress changed"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(REPLICATION_ORIGINS)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        Some(Wound::invert_byte(site, seed)?.must(&["replication-origin-file"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::SMALL_STATE
    }
}
