//! The control file was cut.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{CONTROL_FILE, Site};
use crate::way_out;

/// See the module.
pub struct ControlFileCut;

impl Injury for ControlFileCut {
    fn name(&self) -> &'static str {
        "control-file-cut"
    }

    fn summary(&self) -> &'static str {
        "the control file was cut"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(CONTROL_FILE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let len = 16 + seed % 200;
        Some(
            Wound::cut(site, len, format!("the file cut to {len} bytes"))
                .must(&["control-file-unreadable"]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::CONTROL
    }
}
