//! PG_VERSION of a database names another major.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, VERSION_FILE};
use crate::way_out;

/// See the module.
pub struct VersionFile;

impl Injury for VersionFile {
    fn name(&self) -> &'static str {
        "version-file"
    }

    fn summary(&self) -> &'static str {
        "PG_VERSION of a database names another major"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(VERSION_FILE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let wound = Wound::edit(site, "PG_VERSION changed", |text| {
            let last = text.iter_mut().rev().find(|byte| byte.is_ascii_digit());
            last.into_iter()
                .for_each(|digit| *digit = if *digit == b'4' { b'5' } else { b'4' });
        })?;
        Some(wound.must(&["version-file"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::VERSION
    }
}
