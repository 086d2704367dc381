//! An older WAL record has an impossible length.

use pgclinic_format::build::put_u32;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, WAL_OLDER};
use crate::way_out;

/// See the module.
pub struct OlderWalRecordLength;

impl Injury for OlderWalRecordLength {
    fn name(&self) -> &'static str {
        "older-wal-record-length"
    }

    fn summary(&self) -> &'static str {
        "an older WAL record has an impossible length"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(WAL_OLDER)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let at = site.first_record()?;
        let wound = Wound::edit(site, "xl_tot_len of a record set to 8", |page| {
            put_u32(page, at, 8);
        })?;
        Some(wound.must(&["wal-record-broken"]).may(&[followers::WAL]))
    }

    fn way_out(&self) -> &'static str {
        way_out::OLDER_WAL
    }
}
