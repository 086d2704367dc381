//! The control file is zeros.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{CONTROL_FILE, Site};
use crate::way_out;

/// See the module.
pub struct ControlFileZeroed;

impl Injury for ControlFileZeroed {
    fn name(&self) -> &'static str {
        "control-file-zeroed"
    }

    fn summary(&self) -> &'static str {
        "the control file is zeros"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(CONTROL_FILE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let wound = Wound::edit(site, "the whole file set to zero", |file| file.fill(0))?;
        Some(wound.must(&["control-file-unreadable"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::CONTROL
    }
}
