//! Injuries of GIN indexes (`src/include/access/ginblock.h`).
//!
//! ```text
//! special space:  0 rightlink  4 maxoff  6 flags
//! ```

use pgclinic_format::Page;
use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::gin::{
    DATA_AT, EntryTuple, GIN_COMPRESSED, GIN_INCOMPLETE_SPLIT, GIN_LIST, Meta, Opaque, PageKind,
    Posting, Segments, right_bound,
};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::INVALID_BLOCK;

use crate::advice;
use crate::byte_edits::put_u8;
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{INDEX_PAGE, InjuryTarget, choose};

const MAXOFF_AT: usize = 4;
const FLAGS_AT: usize = 6;
/// The line pointer number of the right bound of a page of row numbers.
const BOUND_OFFSET_AT: usize = 28;
/// `nbytes` and the first row number of a posting list, before the others.
const LIST_HEADER_BYTES: usize = 8;
/// Operator classes whose order is known to the check.
const KNOWN_CLASSES: [&str; 4] = ["array_ops", "tsvector_ops", "jsonb_ops", "jsonb_path_ops"];

/// A page of this kind, and its special space.
fn gin_page<'a>(target: &'a InjuryTarget<'_>, kind: PageKind) -> Option<(Page<'a>, Opaque)> {
    let page = target.page_of(AccessMethod::Gin)?;
    let opaque = Opaque::of(page)?;
    (opaque.kind()? == kind).then_some((page, opaque))
}

pub(super) const GIN_PAGE_FLAGS: Injury = Injury {
    name: "gin-page-flags",
    summary: "the flags of a GIN page contradict each other",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: set_contradicting_flag,
};

fn set_contradicting_flag(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let (_, opaque) = gin_page(target, PageKind::EntryLeaf)?;
    let at = target.special_at()? + FLAGS_AT;
    let flags = opaque.flags | GIN_LIST;
    let words = format!("flags set to {flags:#06x}");
    let damage = Damage::edit(target, words, |page| put_u16(page, at, flags))?;
    Some(damage.must(&["gin-page-flags"]))
}

pub(super) const GIN_META_HEAD: Injury = Injury {
    name: "gin-meta-head",
    summary: "the list of waiting entries of a GIN index begins elsewhere",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: move_pending_head,
};

fn move_pending_head(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let (page, _) = gin_page(target, PageKind::Meta)?;
    let head = match Meta::of(page)?.head {
        INVALID_BLOCK => 1,
        _ => INVALID_BLOCK,
    };
    let words = format!("head set to {head}");
    let damage = Damage::edit(target, words, |page| put_u32(page, Meta::HEAD_AT, head))?;
    Some(damage.must(&["gin-meta-page"]))
}

pub(super) const GIN_META_PAGES: Injury = Injury {
    name: "gin-meta-pages",
    summary: "a GIN index counts pages of waiting entries that are not there",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: count_more_pending_pages,
};

fn count_more_pending_pages(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let (page, _) = gin_page(target, PageKind::Meta)?;
    let meta = Meta::of(page).filter(|meta| meta.head != INVALID_BLOCK)?;
    let pages = meta.pending_pages.checked_add(3)?;
    let damage = Damage::edit(target, format!("nPendingPages set to {pages}"), |page| {
        put_u32(page, Meta::PENDING_PAGES_AT, pages)
    })?;
    Some(damage.must(&["gin-pending-list"]))
}

pub(super) const GIN_ENTRY_COUNT: Injury = Injury {
    name: "gin-entry-count",
    summary: "an entry of a GIN index counts a row that is not in its list",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: count_more_rows,
};

fn count_more_rows(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (page, _) = gin_page(target, PageKind::EntryLeaf)?;
    let pointers = page.line_pointers();
    let lists: Vec<_> = pointers
        .filter_map(|(item, pointer)| {
            let entry = EntryTuple::parse(page.item(pointer)?)?;
            match entry.posting()? {
                Posting::List { count, .. } if count > 0 => Some((item, count + 1)),
                _ => None,
            }
        })
        .collect();
    let (item, count) = *choose(&lists, seed)?;
    // The count takes the place of a row's line pointer number.
    let at = target.item_at(item)? + 4;
    let words = format!("entry {item} set to {count} rows");
    let damage = Damage::edit(target, words, |page| put_u16(page, at, count))?;
    Some(damage.item(item).must(&["gin-entry"]))
}

pub(super) const GIN_POSTING_NUMBER: Injury = Injury {
    name: "gin-posting-number",
    summary: "a TID of a GIN index stands twice in its list",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: repeat_row_number,
};

fn repeat_row_number(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let (page, opaque) = gin_page(target, PageKind::PostingLeaf)?;
    opaque.has(GIN_COMPRESSED).then_some(())?;
    let rows = Segments::of(page).next()?.rows.count();
    (rows > 1).then_some(())?;
    // The difference to the row before.
    let at = DATA_AT + LIST_HEADER_BYTES;
    let words = format!("byte {at} of the first list set to 0");
    let damage = Damage::edit(target, words, |page| put_u8(page, at, 0))?;
    let damage = damage.must(&["gin-posting-page"]);
    Some(damage.may(&[&["gin-posting-tree-order"]]))
}

pub(super) const GIN_PENDING_COUNT: Injury = Injury {
    name: "gin-pending-count",
    summary: "a page of waiting entries of a GIN index counts a row that it does not hold",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: count_more_pending_rows,
};

fn count_more_pending_rows(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let (_, opaque) = gin_page(target, PageKind::Pending)?;
    let at = target.special_at()? + MAXOFF_AT;
    let rows = opaque.maxoff.checked_add(1)?;
    let words = format!("maxoff set to {rows}");
    let damage = Damage::edit(target, words, |page| put_u16(page, at, rows))?;
    let damage = damage.must(&["gin-pending-page"]);
    Some(damage.may(&[&["gin-pending-list"]]))
}

pub(super) const GIN_LINK_BEYOND_END: Injury = Injury {
    name: "gin-link-beyond-end",
    summary: "a GIN page names a right neighbour past the end of the index",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: link_beyond_end,
};

fn link_beyond_end(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let kind = Opaque::of(target.page_of(AccessMethod::Gin)?)?.kind()?;
    (!matches!(kind, PageKind::Meta | PageKind::Deleted)).then_some(())?;
    let at = target.special_at()?;
    let right = target.block_beyond_end()?;
    let words = format!("rightlink set to {right}");
    let damage = Damage::edit(target, words, |page| put_u32(page, at, right))?;
    Some(damage.must(&["gin-link-beyond-end"]))
}

pub(super) const GIN_RIGHT_LINK: Injury = Injury {
    name: "gin-right-link",
    summary: "a page of a GIN index has lost its right neighbour",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: drop_right_link,
};

fn drop_right_link(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let leaves = [PageKind::EntryLeaf, PageKind::PostingLeaf];
    let (_, opaque) = leaves.into_iter().find_map(|kind| gin_page(target, kind))?;
    (!opaque.has(GIN_INCOMPLETE_SPLIT)).then_some(())?;
    let right = opaque.right()?;
    let at = target.special_at()?;
    let words = format!("rightlink {right} taken away");
    let damage = Damage::edit(target, words, |page| put_u32(page, at, INVALID_BLOCK))?;
    Some(damage.must(&["gin-tree-link"]))
}

pub(super) const GIN_KEYS_SWAPPED: Injury = Injury {
    name: "gin-keys-swapped",
    summary: "two keys of a GIN index have changed places",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: swap_keys,
};

fn swap_keys(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let (page, _) = gin_page(target, PageKind::EntryLeaf)?;
    KNOWN_CLASSES
        .contains(&target.first_class()?)
        .then_some(())?;
    let (first, second) = (page.line_pointer(1)?, page.line_pointer(2)?);
    let words = "line pointers 1 and 2 exchanged";
    let damage = Damage::edit(target, words, |page| {
        put_u32(page, InjuryTarget::pointer_at(1), second.0);
        put_u32(page, InjuryTarget::pointer_at(2), first.0);
    })?;
    Some(damage.must(&["gin-key-order"]))
}

pub(super) const GIN_RIGHT_BOUND: Injury = Injury {
    name: "gin-right-bound",
    summary: "a posting tree page of a GIN index reaches further than the page above says",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: raise_right_bound,
};

fn raise_right_bound(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let (page, opaque) = gin_page(target, PageKind::PostingLeaf)?;
    opaque.right()?;
    let bound = right_bound(page)?;
    let offset = bound.offset.checked_add(1)?;
    let words = format!("the right bound {bound} given the TID {offset}");
    let damage = Damage::edit(target, words, |page| put_u16(page, BOUND_OFFSET_AT, offset))?;
    Some(damage.must(&["gin-posting-tree-order"]))
}
