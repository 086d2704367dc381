//! A byte of the control file is wrong.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{CONTROL_FILE, Site};
use crate::way_out;

/// See the module.
pub struct ControlFileByte;

impl Injury for ControlFileByte {
    fn name(&self) -> &'static str {
        "control-file-byte"
    }

    fn summary(&self) -> &'static str {
        "a byte of the control file is wrong"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(CONTROL_FILE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let at = usize::try_from(40 + seed % 80).ok()?;
        let wound = Wound::edit(site, format!("byte {at} changed"), |file| {
            file.iter_mut()
                .skip(at)
                .take(1)
                .for_each(|byte| *byte ^= 0x10);
        })?;
        Some(
            wound
                .must(&["control-file-checksum"])
                .may(&[&["control-file-sense"]]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::CONTROL
    }
}
