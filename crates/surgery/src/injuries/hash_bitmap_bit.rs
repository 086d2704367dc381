//! An overflow page of a hash index in use is marked as free.

use pgclinic_format::Page;
use pgclinic_format::hash::{LH_BITMAP_PAGE, Meta};

use super::hash_sites;
use crate::site::choose;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct HashBitmapBit;

impl Injury for HashBitmapBit {
    fn name(&self) -> &'static str {
        "hash-bitmap-bit"
    }

    fn summary(&self) -> &'static str {
        "an overflow page of a hash index in use is marked as free"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (opaque, _) = hash_sites::opaque(site)?;
        (opaque.page_type() == LH_BITMAP_PAGE).then_some(())?;
        let meta_page = site.other_block(0)?;
        let meta = Meta::parse(Page::parse(&meta_page)?)?;
        // Bit 0 of a bitmap is its own page; only the first bitmap is taken here.
        (meta.mapp(0)? == site.block).then_some(())?;
        let pages = meta.overflow_pages().min(8 * u32::from(meta.bmsize()));
        let at = |bit: u32| usize::try_from(bit / 8).map_or(usize::MAX, |byte| byte + 24);
        let is_used = |bit: &u32| {
            let byte = site.bytes.get(at(*bit));
            byte.is_some_and(|byte| byte & (1 << (bit % 8)) != 0)
        };
        let used: Vec<u32> = (1..pages).filter(is_used).collect();
        let bit = *choose(&used, seed)?;
        let wound = Wound::edit(site, format!("bit {bit} cleared"), |page| {
            if let Some(byte) = page.get_mut(at(bit)) {
                *byte &= !(1 << (bit % 8));
            }
        })?;
        Some(wound.must(&["hash-bitmap-wrong"]).may(&[followers::HASH]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
