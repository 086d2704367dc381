//! The page claims a change beyond the end of the WAL.

use pgclinic_format::build::put_u32;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ANY_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct PageLsn;

impl Injury for PageLsn {
    fn name(&self) -> &'static str {
        "page-lsn"
    }

    fn summary(&self) -> &'static str {
        "the page claims a change beyond the end of the WAL"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ANY_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.checkpoint()?;
        let words = "pd_lsn set to 7FFFFFFF/0, which no WAL reaches";
        Some(
            Wound::edit(site, words, |page| put_u32(page, 0, 0x7FFF_FFFF))?
                .must(&["lsn-beyond-wal"]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::RESTORE_PAGE
    }
}
