//! The init fork of an unlogged relation is gone.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INIT_FILE, Site};
use crate::way_out;

/// See the module.
pub struct LostInitFork;

impl Injury for LostInitFork {
    fn name(&self) -> &'static str {
        "lost-init-fork"
    }

    fn summary(&self) -> &'static str {
        "the init fork of an unlogged relation is gone"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(INIT_FILE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.files?;
        Some(Wound::remove(site.path.clone(), "the init fork removed").must(&["missing-init-fork"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::FILE
    }
}
