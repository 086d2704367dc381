//! What the injuries of BRIN pages ask of a site.

use pgclinic_format::brin::{
    PAGE_REGULAR, PAGE_REVMAP, map_entry, map_entry_at, page_type, ranges_per_map_page,
};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{LpFlags, Page};

use crate::site::{Site, choose};

/// A page of this type of a BRIN index.
fn page<'a>(site: &'a Site<'_>, wanted: u16) -> Option<Page<'a>> {
    let is_brin = site.method() == Some(AccessMethod::Brin);
    site.page()
        .filter(|page| is_brin && page_type(*page) == Some(wanted))
}

/// A place of the map that leads to a summary, and the offset of the line pointer's number that it names.
pub(crate) fn place_in_map(site: &Site<'_>, seed: u64) -> Option<(u32, usize)> {
    let page = page(site, PAGE_REVMAP)?;
    let known: Vec<u32> = (0..ranges_per_map_page(page.len()))
        .filter(|index| map_entry(page, *index).is_some())
        .collect();
    let index = *choose(&known, seed)?;
    Some((index, map_entry_at(index) + 4))
}

/// The line pointer of a summary, and the summary's offset on the page.
pub(crate) fn summary(site: &Site<'_>, seed: u64) -> Option<(u16, usize)> {
    let summaries: Vec<_> = page(site, PAGE_REGULAR)?
        .line_pointers()
        .filter(|(_, pointer)| pointer.flags() == LpFlags::Normal)
        .collect();
    let (item, pointer) = *choose(&summaries, seed)?;
    Some((item, usize::from(pointer.lp_off())))
}
