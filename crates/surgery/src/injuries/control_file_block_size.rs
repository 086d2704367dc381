//! The control file names a block size that does not exist.

use pgclinic_format::build::put_u32;
use pgclinic_format::control_file;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{CONTROL_FILE, Site};
use crate::way_out;

/// See the module.
pub struct ControlFileBlockSize;

impl Injury for ControlFileBlockSize {
    fn name(&self) -> &'static str {
        "control-file-block-size"
    }

    fn summary(&self) -> &'static str {
        "the control file names a block size that does not exist"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(CONTROL_FILE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let mut after = site.bytes.clone();
        put_u32(&mut after, 216, 12_345);
        control_file::seal(&mut after).then_some(())?;
        Some(
            Wound::bytes(
                site,
                &after,
                "the block size set to 12345, with a right checksum",
            )?
            .must(&["control-file-sense"]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::CONTROL
    }
}
