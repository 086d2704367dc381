//! Injuries of what a heap page and its visibility map say of each other
//! (`src/backend/access/heap/visibilitymap.c`).

use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::{HEAP_XMIN_FROZEN, HEAP_XMIN_INVALID};
use pgclinic_format::page::PD_ALL_VISIBLE;
use pgclinic_format::visibility_map::{ALL_FROZEN, ALL_VISIBLE};

use super::page_header::FLAGS_AT;
use super::transaction_ids::is_deleted;
use super::tuple_header::set_infomask;
use crate::advice;
use crate::followers::FATES;
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{HEAP_PAGE, InjuryTarget};

/// The map's word for the page can be relied on, and has this bit.
fn map_says(target: &InjuryTarget<'_>, bit: u8) -> Option<()> {
    (target.checkpoint().is_some() && target.map_bits() & bit != 0).then_some(())
}

pub(super) const ALL_VISIBLE_FLAG_SET: Injury = Injury {
    name: "all-visible-flag-set",
    summary: "a page with deleted rows says that everybody sees all of them",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::SET_RIGHT_BY_VACUUM,
    damage: set_all_visible_flag,
};

fn set_all_visible_flag(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let flags = target.page()?.pd_flags();
    (flags & PD_ALL_VISIBLE == 0).then_some(())?;
    let row = target.row(seed, |row| is_deleted(target, row))?;
    let words = "PD_ALL_VISIBLE set on a page with deleted rows";
    let damage = Damage::edit(target, words, |page| {
        put_u16(page, FLAGS_AT, flags | PD_ALL_VISIBLE)
    })?;
    Some(damage.item(row.item).must(&["page-not-all-visible"]))
}

pub(super) const ALL_VISIBLE_FLAG_CLEARED: Injury = Injury {
    name: "all-visible-flag-cleared",
    summary: "a page denies what the visibility map says of it",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::SET_RIGHT_BY_VACUUM,
    damage: clear_all_visible_flag,
};

fn clear_all_visible_flag(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let flags = target.page()?.pd_flags();
    (flags & PD_ALL_VISIBLE != 0).then_some(())?;
    map_says(target, ALL_VISIBLE)?;
    let words = "PD_ALL_VISIBLE cleared on a page that the visibility map calls all-visible";
    let damage = Damage::edit(target, words, |page| {
        put_u16(page, FLAGS_AT, flags & !PD_ALL_VISIBLE)
    })?;
    Some(damage.must(&["visibility-map-wrong"]))
}

pub(super) const FROZEN_ROW_THAWED: Injury = Injury {
    name: "frozen-row-thawed",
    summary: "a row is not frozen on a page that the visibility map calls frozen",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::TRANSACTION,
    damage: thaw_row,
};

fn thaw_row(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    map_says(target, ALL_FROZEN)?;
    let row = target.row(seed, |row| {
        row.tuple.has(HEAP_XMIN_FROZEN) && row.tuple.t_xmin().is_normal()
    })?;
    let mask = row.tuple.t_infomask() & !HEAP_XMIN_INVALID;
    let words = "HEAP_XMIN_INVALID cleared, so that xmin is no longer frozen";
    let damage = set_infomask(target, &row, mask, words)?;
    let damage = damage.must(&["visibility-map-wrong"]);
    Some(damage.may(&[&["xmin-before-freeze"], FATES]))
}
