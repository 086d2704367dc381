//! An older WAL page does not say that it goes on with a record.

use pgclinic_format::build::{put_u16, put_u32};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, WAL_OLDER};
use crate::way_out;

/// See the module.
pub struct OlderWalPageFlags;

impl Injury for OlderWalPageFlags {
    fn name(&self) -> &'static str {
        "older-wal-page-flags"
    }

    fn summary(&self) -> &'static str {
        "an older WAL page does not say that it goes on with a record"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::large(WAL_OLDER)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.is_inner_older_page().then_some(())?;
        let wound = Wound::edit(site, "xlp_info and xlp_rem_len cleared", |page| {
            put_u16(page, 2, 0);
            put_u32(page, 16, 0);
        })?;
        Some(wound.must(&["wal-record-broken"]).may(&[followers::WAL]))
    }

    fn way_out(&self) -> &'static str {
        way_out::OLDER_WAL
    }
}
