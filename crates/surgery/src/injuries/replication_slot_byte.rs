//! A byte of a replication slot's state changed.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{REPLICATION_SLOT, Site};
use crate::way_out;

/// See the module.
pub struct ReplicationSlotByte;

impl Injury for ReplicationSlotByte {
    fn name(&self) -> &'static str {
        "replication-slot-byte"
    }

    fn summary(&self) -> &'static str {
        "a byte of a replication slot's state changed"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::large(REPLICATION_SLOT)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        Some(Wound::invert_byte(site, seed)?.must(&["replication-slot-file"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::SMALL_STATE
    }
}
