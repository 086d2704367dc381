//! A byte of an older WAL record is wrong.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, WAL_OLDER, flip};
use crate::way_out;

/// See the module.
pub struct OlderWalRecordByte;

impl Injury for OlderWalRecordByte {
    fn name(&self) -> &'static str {
        "older-wal-record-byte"
    }

    fn summary(&self) -> &'static str {
        "a byte of an older WAL record is wrong"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(WAL_OLDER)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let at = site.first_record()? + 24;
        let words = format!("byte {at} of the WAL page, in a record, changed");
        let wound = Wound::edit(site, words, |page| flip(page, at))?;
        Some(wound.must(&["wal-record-checksum"]).may(&[followers::WAL]))
    }

    fn way_out(&self) -> &'static str {
        way_out::OLDER_WAL
    }
}
