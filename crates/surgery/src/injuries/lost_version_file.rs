//! PG_VERSION of a database is gone.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, VERSION_FILE};
use crate::way_out;

/// See the module.
pub struct LostVersionFile;

impl Injury for LostVersionFile {
    fn name(&self) -> &'static str {
        "lost-version-file"
    }

    fn summary(&self) -> &'static str {
        "PG_VERSION of a database is gone"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(VERSION_FILE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        Some(Wound::remove(site.path.clone(), "PG_VERSION removed").must(&["version-file"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::VERSION
    }
}
