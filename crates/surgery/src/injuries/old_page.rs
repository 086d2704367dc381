//! An old copy of the page came back, without its newest row.

use pgclinic_format::LpFlags;
use pgclinic_format::build::{put_u16, put_u32, seal_page};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct OldPage;

impl Injury for OldPage {
    fn name(&self) -> &'static str {
        "old-page"
    }

    fn summary(&self) -> &'static str {
        "an old copy of the page came back, without its newest row"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let page = site.page()?;
        let (item, pointer) = page.line_pointers().last()?;
        let newest = pointer.flags() == LpFlags::Normal && pointer.lp_off() == page.pd_upper();
        (newest && item > 1 && !site.redirect_targets().contains(&item)).then_some(())?;
        let (lower, upper) = (
            page.pd_lower().checked_sub(4)?,
            pointer.range()?.end.next_multiple_of(8),
        );
        let lsn = page.pd_lsn().0.saturating_sub(0x100);
        let mut after = site.bytes.clone();
        after.get_mut(usize::from(lower)..upper)?.fill(0);
        put_u32(&mut after, 0, u32::try_from(lsn >> 32).ok()?);
        put_u32(&mut after, 4, u32::try_from(lsn & 0xFFFF_FFFF).ok()?);
        put_u16(&mut after, 12, lower);
        put_u16(&mut after, 14, u16::try_from(upper).ok()?);
        // What was written then was right then.
        if site.has_checksums() {
            seal_page(&mut after, site.block);
        }
        let wound = Wound::bytes(
            site,
            &after,
            format!("item {item} taken off again, with an older LSN"),
        )?;
        Some(
            wound
                .item(item)
                .may(&[followers::CHAINS, followers::FATES])
                .blind("an old page is right in itself"),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_LOST
    }
}
