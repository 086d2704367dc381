//! Injuries of GiST indexes (`src/include/access/gist.h`).
//!
//! ```text
//! special space:  0 nsn  8 rightlink  12 flags  14 page id
//! entry:          0 child block, two halves  4 line pointer number  6 t_info  8 key
//! ```

use pgclinic_format::Page;
use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::gist::{
    F_DELETED, F_FOLLOW_RIGHT, GistItem, GistPage, ROOT, TUPLE_IS_INVALID,
};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::index_tuple::INDEX_NULL_MASK;

use super::page_header::LOWER_AT;
use crate::advice;
use crate::byte_edits::{put_block, put_bytes};
use crate::followers::INDEX_TREES;
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{INDEX_PAGE, InjuryTarget, choose};

const RIGHT_LINK_AT: usize = 8;
const FLAGS_AT: usize = 12;
const TID_OFFSET_AT: usize = 4;
const INFO_AT: usize = 6;
const KEY_AT: usize = 8;

/// The target as a page that was not deleted.
fn gist_page<'a>(target: &'a InjuryTarget<'_>) -> Option<GistPage<'a>> {
    let page = target.page_of(AccessMethod::Gist)?;
    GistPage::parse(page).filter(|page| !page.is_deleted())
}

/// The entries of an inner page that has several.
fn downlinks<'a>(target: &'a InjuryTarget<'_>) -> Option<Vec<GistItem<'a>>> {
    let page = gist_page(target).filter(|page| !page.is_leaf())?;
    let items: Vec<_> = page.items().collect();
    (items.len() > 1).then_some(items)
}

pub(super) const GIST_FLAGS: Injury = Injury {
    name: "gist-flags",
    summary: "a GiST page is marked with flags that exclude each other",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: set_contradicting_flags,
};

fn set_contradicting_flags(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let page = gist_page(target)?;
    let at = target.special_at()? + FLAGS_AT;
    // Nothing of the root may be deleted; elsewhere an unfinished split excludes it.
    let wrong = match target.block {
        ROOT => F_DELETED,
        _ => F_DELETED | F_FOLLOW_RIGHT,
    };
    let flags = page.flags() | wrong;
    let words = format!("flags set to {flags:#06x}");
    let damage = Damage::edit(target, words, |page| put_u16(page, at, flags))?;
    Some(damage.must(&["gist-page-flags"]))
}

pub(super) const GIST_RIGHT_LINK: Injury = Injury {
    name: "gist-right-link",
    summary: "a GiST page names a right neighbour past the end of the index",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: link_beyond_end,
};

fn link_beyond_end(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    gist_page(target).filter(|_| target.block != ROOT)?;
    let at = target.special_at()? + RIGHT_LINK_AT;
    let right = target.block_beyond_end()?;
    let words = format!("rightlink set to {right}");
    let damage = Damage::edit(target, words, |page| put_u32(page, at, right))?;
    Some(damage.must(&["gist-link-beyond-end"]))
}

pub(super) const GIST_CHILD_BEYOND_END: Injury = Injury {
    name: "gist-child-beyond-end",
    summary: "an entry of an inner GiST page names a child past the end of the index",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: descend_beyond_end,
};

fn descend_beyond_end(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let item = choose(&downlinks(target)?, seed)?.number;
    let at = target.item_at(item)?;
    let child = target.block_beyond_end()?;
    let words = format!("the child of entry {item} set to {child}");
    let damage = Damage::edit(target, words, |page| put_block(page, at, child))?;
    Some(damage.item(item).must(&["gist-link-beyond-end"]))
}

pub(super) const GIST_CHILD_DOUBLED: Injury = Injury {
    name: "gist-child-duplicate",
    summary: "two entries of an inner GiST page name the same child",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: descend_to_first_child,
};

fn descend_to_first_child(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let items = downlinks(target)?;
    let (first, rest) = items.split_first()?;
    let (item, child) = (choose(rest, seed)?.number, first.tuple.t_tid().block);
    let at = target.item_at(item)?;
    let model = first.number;
    let words = format!("the child of entry {item} set to {child}, as in entry {model}");
    let damage = Damage::edit(target, words, |page| put_block(page, at, child))?;
    let damage = damage.item(item).must(&["gist-downlink"]);
    Some(damage.may(&[INDEX_TREES]))
}

pub(super) const GIST_CHILD_LOST: Injury = Injury {
    name: "gist-child-lost",
    summary: "the last entry of an inner GiST page is gone",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: drop_last_downlink,
};

fn drop_last_downlink(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let child = downlinks(target)?.last()?.tuple.t_tid().block;
    let bytes = target.other_block(child)?;
    let child_page = Page::parse(&bytes).and_then(GistPage::parse)?;
    (child_page.item_count() > 0).then_some(())?;
    let lower = target.page()?.pd_lower().checked_sub(4)?;
    let words = format!("pd_lower set to {lower}, before the entry for block {child}");
    let damage = Damage::edit(target, words, |page| put_u16(page, LOWER_AT, lower))?;
    let damage = damage.must(&["gist-page-unreachable"]);
    Some(damage.may(&[INDEX_TREES]))
}

pub(super) const GIST_ENTRY_SIZE: Injury = Injury {
    name: "gist-entry-size",
    summary: "an entry of a GiST page says that it is longer than its item",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: lengthen_entry,
};

fn lengthen_entry(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let items: Vec<_> = gist_page(target)?.items().collect();
    let entry = choose(&items, seed)?;
    let item = entry.number;
    let at = target.item_at(item)? + INFO_AT;
    let info = entry.tuple.t_info().checked_add(8)?;
    let words = format!("t_info of entry {item} set to {info:#06x}");
    let damage = Damage::edit(target, words, |page| put_u16(page, at, info))?;
    Some(damage.item(item).must(&["gist-tuple"]))
}

pub(super) const GIST_ENTRY_INVALID: Injury = Injury {
    name: "gist-entry-invalid",
    summary: "an entry of an inner GiST page is marked as invalid",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: mark_entry_invalid,
};

fn mark_entry_invalid(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let item = choose(&downlinks(target)?, seed)?.number;
    let at = target.item_at(item)? + TID_OFFSET_AT;
    let words = format!("the line pointer number in entry {item} set to 0xfffe");
    let damage = Damage::edit(target, words, |page| put_u16(page, at, TUPLE_IS_INVALID))?;
    Some(damage.item(item).must(&["gist-invalid-tuple"]))
}

pub(super) const GIST_SPLIT_IN_THE_FUTURE: Injury = Injury {
    name: "gist-split-in-the-future",
    summary: "a GiST page was split in the future, by what it says",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: split_in_the_future,
};

fn split_in_the_future(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    gist_page(target).filter(|_| target.checkpoint().is_some())?;
    let at = target.special_at()?;
    let damage = Damage::edit(target, "nsn set to 7FFFFFFF/0", |page| {
        put_u32(page, at, 0x7FFF_FFFF);
        put_u32(page, at + 4, 0);
    })?;
    Some(damage.must(&["gist-nsn"]))
}

pub(super) const GIST_KEY_OUTSIDE: Injury = Injury {
    name: "gist-key-outside",
    summary: "a box on a leaf of a GiST index is enlarged beyond the key above",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: enlarge_box,
};

fn enlarge_box(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let page = gist_page(target).filter(|page| page.is_leaf() && target.block != ROOT)?;
    let boxes = ["box_ops", "poly_ops", "circle_ops", "point_ops"];
    boxes.contains(&target.first_class()?).then_some(())?;
    let mut items: Vec<_> = page.items().collect();
    items.retain(|item| !item.tuple.has(INDEX_NULL_MASK));
    let item = choose(&items, seed)?.number;
    let at = target.item_at(item)? + KEY_AT;
    let words = format!("the right side of the box in entry {item} set to 1e300");
    let side = 1.0e300_f64.to_le_bytes();
    let damage = Damage::edit(target, words, |page| put_bytes(page, at, &side))?;
    Some(damage.item(item).must(&["gist-key-not-covered"]))
}
