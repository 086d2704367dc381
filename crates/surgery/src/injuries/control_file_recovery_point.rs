//! The control file of a stopped cluster asks for recovery.

use pgclinic_format::build::put_u32;
use pgclinic_format::control_file;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{CONTROL_FILE, Site};
use crate::way_out;

/// See the module.
pub struct ControlFileRecoveryPoint;

impl Injury for ControlFileRecoveryPoint {
    fn name(&self) -> &'static str {
        "control-file-recovery-point"
    }

    fn summary(&self) -> &'static str {
        "the control file of a stopped cluster asks for recovery"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(CONTROL_FILE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.checkpoint()?;
        let mut after = site.bytes.clone();
        put_u32(&mut after, 136, 0x0200_0000);
        control_file::seal(&mut after).then_some(())?;
        Some(
            Wound::bytes(
                site,
                &after,
                "minRecoveryPoint set to 0/2000000, with a right checksum",
            )?
            .must(&["control-file-sense"]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::CONTROL
    }
}
