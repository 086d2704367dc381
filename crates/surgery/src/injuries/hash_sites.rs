//! What injuries of hash indexes ask of a place.

use pgclinic_format::Page;
use pgclinic_format::hash::{self, Entry, Opaque};
use pgclinic_format::index_page::AccessMethod;

use crate::site::{Site, choose};

/// The special space of a page of a hash index, and where it begins.
pub(super) fn opaque(site: &Site<'_>) -> Option<(Opaque, usize)> {
    site.method()
        .filter(|method| *method == AccessMethod::Hash)?;
    let page = site.page()?;
    Some((hash::opaque(page)?, usize::from(page.pd_special())))
}

/// An entry of the page that has a neighbour on both sides, with where it stands, by the seed. Asked is what the
/// codes before, here and behind are.
pub(super) fn entry(
    site: &Site<'_>,
    seed: u64,
    fits: impl Fn([u32; 3]) -> bool,
) -> Option<(Entry, usize)> {
    let (opaque, _) = opaque(site)?;
    opaque.holds_entries().then_some(())?;
    let page = site.page()?;
    let mut entries = Vec::new();
    hash::for_each_row(page, &mut |entry| entries.push(entry));
    let fitting: Vec<Entry> = entries
        .windows(3)
        .filter_map(|three| match three {
            [before, entry, behind] if fits([before.code, entry.code, behind.code]) => Some(*entry),
            _ => None,
        })
        .filter(|entry| site.item.is_none_or(|item| item == entry.item))
        .collect();
    let entry = *choose(&fitting, seed)?;
    Some((entry, offset_of(page, entry.item)?))
}

fn offset_of(page: Page<'_>, item: u16) -> Option<usize> {
    page.line_pointer(item)
        .map(|pointer| usize::from(pointer.lp_off()))
}
