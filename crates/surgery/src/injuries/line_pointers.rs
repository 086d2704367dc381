//! Injuries of line pointers, `ItemIdData` in `src/include/storage/itemid.h`: 15 bits `lp_off`, 2
//! bits `lp_flags`, 15 bits `lp_len`.

use pgclinic_cluster::XactStatus;
use pgclinic_format::build::put_u32;
use pgclinic_format::index_page::has_line_pointers;
use pgclinic_format::page::{HEADER_BYTES, PD_ALL_VISIBLE};
use pgclinic_format::{LinePointer, LpFlags, Page};

use crate::advice;
use crate::followers::{ATTRIBUTES, CHAINS, LINE_POINTERS, TOAST_CHUNKS, TUPLE_HEADER};
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{
    HEAP_PAGE, INDEX_PAGE, InjuryTarget, ROW_PAGE, Row, Value, choose, rows_of,
};

/// Replaces a line pointer.
fn replace(
    target: &InjuryTarget<'_>,
    item: u16,
    pointer: LinePointer,
    words: String,
) -> Option<Damage> {
    let at = InjuryTarget::pointer_at(item);
    let damage = Damage::edit(target, words, |page| put_u32(page, at, pointer.0))?;
    Some(damage.item(item))
}

fn set_offset(target: &InjuryTarget<'_>, row: &Row<'_>, offset: u16) -> Option<Damage> {
    let pointer = LinePointer::new(offset, LpFlags::Normal, row.pointer.lp_len());
    let words = format!("lp_off of line pointer {} set to {offset}", row.item);
    replace(target, row.item, pointer, words)
}

fn set_length(target: &InjuryTarget<'_>, row: &Row<'_>, len: u16) -> Option<Damage> {
    let pointer = LinePointer::new(row.pointer.lp_off(), LpFlags::Normal, len);
    let words = format!("lp_len of line pointer {} set to {len}", row.item);
    replace(target, row.item, pointer, words)
}

fn set_flags(target: &InjuryTarget<'_>, row: &Row<'_>, flags: LpFlags) -> Option<Damage> {
    let name = match flags {
        LpFlags::Unused => "LP_UNUSED",
        LpFlags::Normal => "LP_NORMAL",
        LpFlags::Redirect => "LP_REDIRECT",
        LpFlags::Dead => "LP_DEAD",
    };
    let pointer = LinePointer::new(row.pointer.lp_off(), flags, row.pointer.lp_len());
    let words = format!("line pointer {} set to {name}", row.item);
    replace(target, row.item, pointer, words)
}

fn with_flags(page: Page<'_>, flags: LpFlags) -> Vec<(u16, LinePointer)> {
    let pointers = page.line_pointers();
    pointers
        .filter(|(_, pointer)| pointer.flags() == flags)
        .collect()
}

pub(super) const LINE_POINTER_BEYOND_PAGE: Injury = Injury {
    name: "line-pointer-beyond-page",
    summary: "a line pointer names bytes past the end of the page",
    wants: Wants::page(ROW_PAGE),
    recovery_advice: advice::LINE_POINTER,
    damage: point_beyond_page,
};

fn point_beyond_page(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let damage = set_offset(target, &target.any_row(seed)?, 0x7FF8)?;
    Some(damage.must(&["item-beyond-page"]).may(&[CHAINS]))
}

pub(super) const LINE_POINTER_BEFORE_UPPER: Injury = Injury {
    name: "line-pointer-before-upper",
    summary: "a line pointer names bytes of the free space",
    wants: Wants::page(ROW_PAGE),
    recovery_advice: advice::LINE_POINTER,
    damage: point_into_free_space,
};

fn point_into_free_space(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let page = target.page()?;
    let start = page.pd_upper().checked_sub(8)?;
    (start >= page.pd_lower()).then_some(())?;
    let mut damage = set_offset(target, &target.any_row(seed)?, start)?;
    damage.words.push_str(", in the free space");
    let may = [LINE_POINTERS, TUPLE_HEADER, ATTRIBUTES, TOAST_CHUNKS];
    Some(damage.must(&["item-before-upper"]).may(&may))
}

pub(super) const LINE_POINTER_MISALIGNED: Injury = Injury {
    name: "line-pointer-misaligned",
    summary: "a line pointer names an offset that no row begins at",
    wants: Wants::page(ROW_PAGE),
    recovery_advice: advice::LINE_POINTER,
    damage: misalign,
};

fn misalign(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.any_row(seed)?;
    let damage = set_offset(target, &row, row.pointer.lp_off().checked_add(4)?)?;
    let damage = damage.must(&["item-misaligned"]);
    Some(damage.may(&[&["item-beyond-page"], CHAINS]))
}

pub(super) const LINE_POINTER_DOUBLED: Injury = Injury {
    name: "line-pointer-duplicate",
    summary: "two line pointers name the same row",
    wants: Wants::page(ROW_PAGE),
    recovery_advice: advice::LINE_POINTER,
    damage: point_to_another_row,
};

fn point_to_another_row(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.any_row(seed)?;
    let mut rows = rows_of(target.page()?).into_iter();
    let other = rows.find(|other| other.item != row.item)?;
    let (item, model) = (row.item, other.item);
    let words = format!("line pointer {item} made the same as line pointer {model}");
    let damage = replace(target, item, other.pointer, words)?;
    let damage = damage.must(&["items-overlap"]);
    Some(damage.may(&[CHAINS, TUPLE_HEADER, ATTRIBUTES]))
}

pub(super) const LINE_POINTER_LENGTH_HUGE: Injury = Injury {
    name: "line-pointer-length-huge",
    summary: "a line pointer claims more bytes than the page has",
    wants: Wants::page(ROW_PAGE),
    recovery_advice: advice::LINE_POINTER,
    damage: claim_huge_length,
};

fn claim_huge_length(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let damage = set_length(target, &target.any_row(seed)?, 0x7FFF)?;
    Some(damage.must(&["item-beyond-page"]).may(&[CHAINS]))
}

pub(super) const LINE_POINTER_LENGTH_TINY: Injury = Injury {
    name: "line-pointer-length-tiny",
    summary: "a line pointer claims fewer bytes than any row has",
    wants: Wants::page(ROW_PAGE),
    recovery_advice: advice::LINE_POINTER,
    damage: claim_tiny_length,
};

fn claim_tiny_length(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let len = if seed.is_multiple_of(2) { 0 } else { 16 };
    let damage = set_length(target, &target.any_row(seed)?, len)?;
    Some(damage.must(&["item-too-short"]).may(&[CHAINS]))
}

pub(super) const LINE_POINTER_LENGTH_SHORT: Injury = Injury {
    name: "line-pointer-length-short",
    summary: "the length in a line pointer ends inside of a value",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::LINE_POINTER,
    damage: end_inside_value,
};

fn end_inside_value(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    // The first value is a number of 4 or 8 bytes, and half of it stays.
    let wide = |value: &Value| value.attribute == 1 && value.column.attlen >= 4;
    let (row, value) = target.value(seed, |_, value| wide(value))?;
    let half = value.range.start + value.range.len() / 2;
    let damage = set_length(target, &row, u16::try_from(half).ok()?)?;
    Some(damage.must(&["attribute-beyond-tuple"]))
}

pub(super) const LINE_POINTER_UNUSED: Injury = Injury {
    name: "line-pointer-unused",
    summary: "a line pointer to a row is marked as unused",
    wants: Wants::page(ROW_PAGE),
    recovery_advice: advice::LINE_POINTER,
    damage: mark_unused,
};

fn mark_unused(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let damage = set_flags(target, &target.any_row(seed)?, LpFlags::Unused)?;
    let damage = damage.must(&["unused-with-storage"]);
    Some(damage.may(&[&["redirect-target"], CHAINS]))
}

pub(super) const LINE_POINTER_DEAD: Injury = Injury {
    name: "line-pointer-dead",
    summary: "a line pointer to a row is marked as dead",
    wants: Wants::page(ROW_PAGE),
    recovery_advice: advice::LINE_POINTER,
    damage: mark_dead,
};

fn mark_dead(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let redirected = target.redirect_targets();
    let row = target.row(seed, |row| !redirected.contains(&row.item))?;
    let damage = set_flags(target, &row, LpFlags::Dead)?.may(&[CHAINS]);
    let promised = target.checkpoint().is_some() && target.page()?.pd_flags() & PD_ALL_VISIBLE != 0;
    Some(damage.must_or_blind(
        promised.then_some("page-not-all-visible"),
        "a dead line pointer may keep its storage until the next vacuum",
    ))
}

pub(super) const LINE_POINTER_REDIRECT: Injury = Injury {
    name: "line-pointer-redirect",
    summary: "a line pointer to a row is marked as a redirect",
    wants: Wants::page(ROW_PAGE),
    recovery_advice: advice::LINE_POINTER,
    damage: mark_redirect,
};

fn mark_redirect(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let damage = set_flags(target, &target.any_row(seed)?, LpFlags::Redirect)?;
    Some(damage.must(&["redirect-target"]).may(&[CHAINS]))
}

pub(super) const LINE_POINTER_REDIRECT_TO_ITSELF: Injury = Injury {
    name: "line-pointer-redirect-to-itself",
    summary: "a line pointer redirects to itself",
    wants: Wants::page(ROW_PAGE),
    recovery_advice: advice::LINE_POINTER,
    damage: redirect_to_itself,
};

fn redirect_to_itself(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let item = target.any_row(seed)?.item;
    let pointer = LinePointer::new(item, LpFlags::Redirect, 0);
    let words = format!("line pointer {item} set to redirect to itself");
    let damage = replace(target, item, pointer, words)?;
    Some(damage.must(&["redirect-target"]).may(&[CHAINS]))
}

pub(super) const LINE_POINTERS_RANDOM: Injury = Injury {
    name: "line-pointers-random",
    summary: "the line pointers are random bytes",
    wants: Wants::page(ROW_PAGE),
    recovery_advice: advice::PAGE_LOST,
    damage: overwrite_with_random_bytes,
};

fn overwrite_with_random_bytes(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let end = usize::from(target.page()?.pd_lower());
    let mut random = fastrand::Rng::with_seed(seed);
    // A few random numbers may all be legal by chance.
    (0..100).find_map(|_| {
        let mut after = target.bytes.clone();
        random.fill(after.get_mut(HEADER_BYTES..end)?);
        let page = Page::parse(&after)?;
        let special = usize::from(page.pd_special());
        let beyond = |pointer: LinePointer| pointer.range().is_some_and(|item| item.end > special);
        page.line_pointers()
            .any(|(_, pointer)| beyond(pointer))
            .then_some(())?;
        let words = "the line pointers overwritten with random bytes";
        let may = [LINE_POINTERS, TUPLE_HEADER, ATTRIBUTES, TOAST_CHUNKS];
        let damage = Damage::bytes(target, &after, words)?;
        Some(damage.must(&["item-beyond-page"]).may(&may))
    })
}

pub(super) const INDEX_LINE_POINTER_REDIRECT: Injury = Injury {
    name: "index-line-pointer-redirect",
    summary: "an index page holds a redirect, which only tables have",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: redirect_in_index,
};

fn redirect_in_index(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let page = target.page()?;
    has_line_pointers(target.method()?, page).then_some(())?;
    let (item, _) = *choose(&with_flags(page, LpFlags::Normal), seed)?;
    let pointer = LinePointer::new(1, LpFlags::Redirect, 0);
    let words = format!("line pointer {item} set to LP_REDIRECT");
    let damage = replace(target, item, pointer, words)?;
    Some(damage.must(&["redirect-in-index"]))
}

pub(super) const REDIRECTS_TO_ONE_ROW: Injury = Injury {
    name: "redirects-to-one-row",
    summary: "two redirects lead to the same row",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::LINE_POINTER,
    damage: redirect_as_another_does,
};

fn redirect_as_another_does(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let redirects = with_flags(target.page()?, LpFlags::Redirect);
    let pairs: Vec<_> = redirects.iter().zip(redirects.iter().skip(1)).collect();
    let ((_, first), (item, _)) = *choose(&pairs, seed)?;
    let leads_to = first.lp_off();
    let words =
        format!("redirect {item} set to lead to line pointer {leads_to} as another one does");
    let damage = replace(target, *item, *first, words)?;
    Some(damage.must(&["update-chains-meet"]).may(&[CHAINS]))
}

pub(super) const REDIRECT_UNUSED: Injury = Injury {
    name: "redirect-unused",
    summary: "the redirect to a row is gone",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::LINE_POINTER,
    damage: remove_redirect,
};

fn remove_redirect(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let page = target.page()?;
    let is_frozen = |item: u16| {
        let mut rows = rows_of(page).into_iter();
        rows.any(|row| row.item == item && row.tuple.xmin_is_frozen())
    };
    let is_committed =
        |row: &Row<'_>| target.status(row.tuple.t_xmin()) == Some(XactStatus::Committed);
    let leads_to_row = |item: u16| {
        is_frozen(item)
            || target
                .row(0, |row| row.item == item && is_committed(row))
                .is_some()
    };
    let mut redirects = with_flags(page, LpFlags::Redirect);
    redirects.retain(|(_, pointer)| leads_to_row(pointer.lp_off()));
    let (item, _) = *choose(&redirects, seed)?;
    let words = format!("redirect {item} set to LP_UNUSED");
    let damage = replace(target, item, LinePointer(0), words)?;
    Some(damage.must(&["heap-only-without-chain"]))
}
