//! The last file of pg_multixact/offsets was cut.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{MULTIXACT_OFFSETS, Site};
use crate::way_out;

/// See the module.
pub struct CutMultixactOffsets;

impl Injury for CutMultixactOffsets {
    fn name(&self) -> &'static str {
        "cut-multixact-offsets"
    }

    fn summary(&self) -> &'static str {
        "the last file of pg_multixact/offsets was cut"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(MULTIXACT_OFFSETS)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let in_use = site.status_bytes_in_use()? as u64;
        let len = seed % in_use;
        Some(
            Wound::cut(site, len, format!("the file cut to {len} bytes"))
                .must(&["status-file-cut"])
                .may(&[followers::TRANSACTION_STATUS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::STATUS
    }
}
