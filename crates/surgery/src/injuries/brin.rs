//! Injuries of BRIN indexes (`src/include/access/brin_page.h`): a meta page, a map from ranges to
//! summaries, pages of summaries.
//!
//! ```text
//! special space:  0 vector: flags at 4, page type at 6
//! summary:        0 first block of the range  4 bits, with the offset of the values
//! ```

use pgclinic_format::brin::{
    BrinTuple, Meta, PAGE_META, PAGE_REGULAR, PAGE_REVMAP, map_entry, map_entry_at, page_type,
    ranges_per_map_page,
};
use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{LinePointer, LpFlags, Page};

use crate::advice;
use crate::byte_edits::put_u8;
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{INDEX_PAGE, InjuryTarget, choose};

const PAGE_TYPE_AT: usize = 6;
const INFO_AT: usize = 4;
/// The bits of the info byte that are the offset of the values.
const OFFSET_MASK: u8 = 0x1F;

/// A page of this type.
fn brin_page<'a>(target: &'a InjuryTarget<'_>, wanted: u16) -> Option<Page<'a>> {
    let page = target.page_of(AccessMethod::Brin)?;
    (page_type(page)? == wanted).then_some(page)
}

/// A place of the map that leads to a summary, and the offset of the line pointer number that it
/// names.
fn place_in_map(target: &InjuryTarget<'_>, seed: u64) -> Option<(u32, usize)> {
    let page = brin_page(target, PAGE_REVMAP)?;
    let known: Vec<u32> = (0..ranges_per_map_page(page.len()))
        .filter(|index| map_entry(page, *index).is_some())
        .collect();
    let index = *choose(&known, seed)?;
    Some((index, map_entry_at(index) + 4))
}

fn summaries(page: Page<'_>) -> impl Iterator<Item = (u16, LinePointer)> {
    page.line_pointers()
        .filter(|(_, pointer)| pointer.flags() == LpFlags::Normal)
}

/// The line pointer of a summary, and the summary's offset on the page.
fn summary(target: &InjuryTarget<'_>, seed: u64) -> Option<(u16, usize)> {
    let summaries: Vec<_> = summaries(brin_page(target, PAGE_REGULAR)?).collect();
    let (item, pointer) = *choose(&summaries, seed)?;
    Some((item, usize::from(pointer.lp_off())))
}

pub(super) const BRIN_PAGES_PER_RANGE: Injury = Injury {
    name: "brin-pages-per-range",
    summary: "a BRIN index says that a summary covers no page",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: zero_pages_per_range,
};

fn zero_pages_per_range(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    brin_page(target, PAGE_META)?;
    let at = Meta::PAGES_PER_RANGE_AT;
    let words = "pagesPerRange set to 0";
    let damage = Damage::edit(target, words, |page| put_u32(page, at, 0))?;
    Some(damage.must(&["brin-meta-page"]))
}

pub(super) const BRIN_PAGE_TYPE: Injury = Injury {
    name: "brin-page-type",
    summary: "a page of summaries of a BRIN index is marked as a page of the map",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: mark_as_map,
};

fn mark_as_map(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    brin_page(target, PAGE_REGULAR)?;
    let at = target.special_at()? + PAGE_TYPE_AT;
    let words = format!("page type set to {PAGE_REVMAP:#06x}");
    let damage = Damage::edit(target, words, |page| put_u16(page, at, PAGE_REVMAP))?;
    let damage = damage.must(&["brin-page-type"]);
    Some(damage.may(&[&["brin-map-entry"]]))
}

pub(super) const BRIN_MAP_ENTRY: Injury = Injury {
    name: "brin-map-entry",
    summary: "the map of a BRIN index leads to a place where no summary is",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: lead_to_no_summary,
};

fn lead_to_no_summary(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (index, at) = place_in_map(target, seed)?;
    let words = format!("place {index} of the map leads to summary 2000 of its page");
    let damage = Damage::edit(target, words, |page| put_u16(page, at, 2000))?;
    let damage = damage.must(&["brin-map-entry"]);
    Some(damage.may(&[&["brin-summary-unreferenced"]]))
}

pub(super) const BRIN_MAP_ENTRY_LOST: Injury = Injury {
    name: "brin-map-entry-lost",
    summary: "the map of a BRIN index has lost the place of a summary",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: empty_map_entry,
};

fn empty_map_entry(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (index, at) = place_in_map(target, seed)?;
    let words = format!("place {index} of the map emptied");
    let damage = Damage::edit(target, words, |page| put_u16(page, at, 0))?;
    Some(damage.must(&["brin-summary-unreferenced"]))
}

pub(super) const BRIN_SUMMARY_RANGE: Injury = Injury {
    name: "brin-summary-range",
    summary: "a summary of a BRIN index says that it is that of another range",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: give_to_another_range,
};

fn give_to_another_range(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (item, at) = summary(target, seed)?;
    let range = 1 << 30;
    let words = format!("summary {item} given to the range from block {range}");
    let damage = Damage::edit(target, words, |page| put_u32(page, at, range))?;
    let damage = damage.item(item).must(&["brin-map-entry"]);
    Some(damage.may(&[&["brin-summary-unreferenced", "brin-summary"]]))
}

pub(super) const BRIN_SUMMARY_OFFSET: Injury = Injury {
    name: "brin-summary-offset",
    summary: "the values of a summary of a BRIN index begin elsewhere",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: move_values,
};

fn move_values(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (item, at) = summary(target, seed)?;
    let at = at + INFO_AT;
    let info = *target.bytes.get(at)?;
    let moved = info & !OFFSET_MASK | ((info & OFFSET_MASK) + 8);
    let words = format!("the values of summary {item} begin eight bytes later");
    let damage = Damage::edit(target, words, |page| put_u8(page, at, moved))?;
    Some(damage.item(item).must(&["brin-summary"]))
}

pub(super) const BRIN_SUMMARY_NARROWED: Injury = Injury {
    name: "brin-summary-narrowed",
    summary: "a summary of a BRIN index leaves out rows of its range",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: lower_highest_value,
};

fn lower_highest_value(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let page = brin_page(target, PAGE_REGULAR)?;
    (target.first_class()? == "int4_minmax_ops").then_some(())?;
    let values = |pointer: LinePointer| {
        let summary = BrinTuple::parse(page.item(pointer)?)?;
        let at = usize::from(pointer.lp_off()) + summary.data_at();
        let differ = page.bytes().get(at..at + 4)? != page.bytes().get(at + 4..at + 8)?;
        (!summary.has_nulls() && !summary.is_placeholder() && differ).then_some(at)
    };
    let wide: Vec<_> = summaries(page)
        .filter_map(|(item, pointer)| Some((item, values(pointer)?)))
        .collect();
    let (item, at) = *choose(&wide, seed)?;
    let words = format!("the highest value of summary {item} set to the lowest");
    let damage = Damage::edit(target, words, |page| page.copy_within(at..at + 4, at + 4))?;
    Some(damage.item(item).must(&["brin-summary-misses-row"]))
}
