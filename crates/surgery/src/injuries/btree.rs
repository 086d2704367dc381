//! Injuries of B-trees (`src/include/access/nbtree.h`).
//!
//! ```text
//! special space:  0 btpo_prev  4 btpo_next  8 btpo_level  12 btpo_flags  14 btpo_cycleid
//! meta page:     24 btm_magic  28 btm_version  32 btm_root  36 btm_level  64 btm_allequalimage
//! entry:          0 row or child: block in two halves, item at 4  6 t_info  8 key
//! ```

use pgclinic_cluster::Visibility;
use pgclinic_cluster::read_block;
use pgclinic_format::btree::{BTP_LEAF, BTP_ROOT, BtreePage, BtreeTuple, Meta, NO_PAGE};
use pgclinic_format::build::{put_u16, put_u32, seal_page};
use pgclinic_format::heap_tuple::HEAP_HOT_UPDATED;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Fork, HeapTuple, LinePointer, Oid, Page};
use pgclinic_model::plan::Change;

use super::page_header::LOWER_AT;
use crate::advice;
use crate::byte_edits::{put_block, put_bytes, put_u8};
use crate::followers::BTREE;
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{INDEX_PAGE, InjuryTarget};

/// `int8`, `int2`, `int4` and `oid`: other keys in other bytes are other keys.
const NUMBERS: [Oid; 4] = [20, 21, 23, 26];
const META_BLOCK: BlockNo = 0;
pub(super) const ROOT_AT: usize = 32;
const ROOT_LEVEL_AT: usize = 36;
const PREV_AT: usize = 0;
const NEXT_AT: usize = 4;
const LEVEL_AT: usize = 8;
const FLAGS_AT: usize = 12;
const TID_OFFSET_AT: usize = 4;
const INFO_AT: usize = 6;
const KEY_AT: usize = 8;

/// Any page of the tree.
fn tree_page<'a>(target: &'a InjuryTarget<'_>) -> Option<BtreePage<'a>> {
    let page = target.page_of(AccessMethod::Btree)?;
    (target.block != META_BLOCK && !page.is_new()).then(|| BtreePage::parse(page))?
}

/// A leaf with three entries or more.
fn leaf<'a>(target: &'a InjuryTarget<'_>) -> Option<BtreePage<'a>> {
    tree_page(target).filter(|page| {
        page.is_leaf() && !page.is_ignored() && page.tuple(page.first_data() + 2).is_some()
    })
}

/// A leaf with three entries or more and a neighbour on each side.
fn inner_leaf<'a>(target: &'a InjuryTarget<'_>) -> Option<BtreePage<'a>> {
    leaf(target).filter(|page| page.prev != NO_PAGE && page.next != NO_PAGE)
}

/// An inner page with four entries or more.
fn inner_page<'a>(target: &'a InjuryTarget<'_>) -> Option<BtreePage<'a>> {
    tree_page(target).filter(|page| {
        !page.is_leaf() && !page.is_ignored() && page.tuple(page.first_data() + 3).is_some()
    })
}

/// What the meta page says.
fn meta(target: &InjuryTarget<'_>) -> Option<Meta> {
    let page = target.page_of(AccessMethod::Btree)?;
    Meta::parse(page).filter(|_| target.block == META_BLOCK)
}

/// An entry that names one row.
fn plain_tuple<'a>(page: &BtreePage<'a>, item: u16) -> Option<BtreeTuple<'a>> {
    page.tuple(item).filter(|tuple| !tuple.is_posting())
}

/// The order of the index is known here, and the keys of an entry and the next one differ.
fn keys_differ(target: &InjuryTarget<'_>, item: u16) -> Option<()> {
    let relation = target.relation?;
    let index = relation.index.as_ref()?;
    let first = relation.columns.as_ref()?.first();
    let known =
        index.key_count == 1 && first.is_some_and(|column| NUMBERS.contains(&column.type_oid));
    let leaf = tree_page(target)?;
    let (low, high) = (leaf.tuple(item)?, leaf.tuple(item + 1)?);
    let differ = low.key_bytes().get(KEY_AT..) != high.key_bytes().get(KEY_AT..);
    (known && differ && index.valid && !index.has_predicate).then_some(())
}

/// The entry names one row that is live by itself, in an index that is complete.
fn names_live_row(target: &InjuryTarget<'_>, item: u16) -> Option<()> {
    let index = target.relation?.index.as_ref()?;
    (index.valid && !index.has_predicate).then_some(())?;
    let tid = plain_tuple(&tree_page(target)?, item)?.0.t_tid();
    let table = target.catalog?.relations.get(&index.table)?;
    let cluster = target.cluster;
    let database = target.files.map_or(0, |files| files.home.database);
    let mut homes = cluster.homes.iter();
    let home =
        homes.find(|home| home.tablespace == table.tablespace && home.database == database)?;
    let files = cluster.files(home).ok()?;
    let own = files
        .iter()
        .find(|files| files.filenode == table.filenode && files.fork == Fork::Main)?;
    let bytes = read_block(cluster.source().as_ref(), own, cluster.build, tid.block)?;
    let page = Page::parse(&bytes)?;
    let row = HeapTuple::parse(page.item(page.line_pointer(tid.offset)?)?)?;
    let is_visible = Visibility::new(cluster).is_visible(row);
    (is_visible && row.t_infomask2() & HEAP_HOT_UPDATED == 0).then_some(())
}

/// Sets a field of the special space that is a block.
fn set_link(target: &InjuryTarget<'_>, name: &str, at: usize, block: BlockNo) -> Option<Damage> {
    let at = target.special_at()? + at;
    let words = format!("{name} set to {block}");
    Damage::edit(target, words, |page| put_u32(page, at, block))
}

/// Takes the last entry off the page.
fn drop_last_entry(target: &InjuryTarget<'_>) -> Option<Damage> {
    let lower = target.page()?.pd_lower().checked_sub(4)?;
    let words = format!("pd_lower set to {lower}");
    let damage = Damage::edit(target, words, |page| put_u16(page, LOWER_AT, lower))?;
    Some(damage.may(&[BTREE]))
}

pub(super) const BTREE_SIBLING: Injury = Injury {
    name: "btree-sibling",
    summary: "a btree page names a right neighbour past the end of the index",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: link_beyond_end,
};

fn link_beyond_end(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    target.page_of(AccessMethod::Btree)?;
    (target.block != META_BLOCK).then_some(())?;
    let next = target.block_beyond_end()?;
    let damage = set_link(target, "btpo_next", NEXT_AT, next)?;
    Some(damage.must(&["btree-link-beyond-end"]))
}

pub(super) const BTREE_ROOT_FLAG: Injury = Injury {
    name: "btree-root-flag",
    summary: "a btree page with neighbours is marked as the root",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: mark_as_root,
};

fn mark_as_root(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let page = tree_page(target).filter(|page| page.next != NO_PAGE && !page.is_ignored())?;
    let (at, flags) = (target.special_at()? + FLAGS_AT, page.flags | BTP_ROOT);
    let damage = Damage::edit(target, "BTP_ROOT set", |page| put_u16(page, at, flags))?;
    Some(damage.must(&["btree-page-flags"]))
}

pub(super) const BTREE_LEVEL: Injury = Injury {
    name: "btree-level",
    summary: "a leaf of a btree claims to stand on level 1",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: raise_leaf,
};

fn raise_leaf(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let leaf = leaf(target).filter(|page| page.prev != NO_PAGE)?;
    let (special, flags) = (target.special_at()?, leaf.flags & !BTP_LEAF);
    let words = "level set to 1, BTP_LEAF cleared";
    let damage = Damage::edit(target, words, |page| {
        put_u16(page, special + FLAGS_AT, flags);
        put_u32(page, special + LEVEL_AT, 1);
    })?;
    Some(damage.must(&["btree-level"]).may(&[BTREE]))
}

pub(super) const BTREE_LEFT_LINK: Injury = Injury {
    name: "btree-left-link",
    summary: "a btree page names another page of the index as its left neighbour",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: link_to_another_left_page,
};

fn link_to_another_left_page(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let leaf = leaf(target).filter(|page| page.prev > 1)?;
    let prev = leaf.prev - 1;
    (prev != target.block && prev != leaf.next).then_some(())?;
    let damage = set_link(target, "btpo_prev", PREV_AT, prev)?;
    Some(damage.must(&["btree-sibling"]).may(&[BTREE]))
}

pub(super) const BTREE_ENTRIES_SWAPPED: Injury = Injury {
    name: "btree-entries-swapped",
    summary: "two entries of a btree leaf stand in each other's place",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: swap_entries,
};

fn swap_entries(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let first = leaf(target)?.first_data();
    let second = first + 1;
    keys_differ(target, first)?;
    let low = InjuryTarget::pointer_at(first);
    let words = format!("line pointers {first} and {second} swapped");
    let damage = Damage::edit(target, words, |page| {
        let both = page.get_mut(low..low + 2 * LinePointer::SIZE);
        both.into_iter()
            .for_each(|both| both.rotate_left(LinePointer::SIZE));
    })?;
    Some(damage.must(&["btree-item-order"]).may(&[BTREE]))
}

pub(super) const BTREE_ENTRY_SIZE: Injury = Injury {
    name: "btree-entry-size",
    summary: "an entry of a btree claims more bytes than its line pointer",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: lengthen_entry,
};

fn lengthen_entry(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let leaf = leaf(target)?;
    let item = leaf.first_data();
    let at = target.item_at(item)? + INFO_AT;
    let info = leaf.tuple(item)?.0.t_info() + 8;
    let words = "the size in t_info is 8 more";
    let damage = Damage::edit(target, words, |page| put_u16(page, at, info))?;
    let damage = damage.item(item).must(&["btree-tuple-shape"]);
    Some(damage.may(&[BTREE]))
}

pub(super) const BTREE_LEFT_PAGE_REPEATED: Injury = Injury {
    name: "btree-left-page-repeated",
    summary: "a btree leaf holds the entries of the page to its left",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: repeat_left_page,
};

fn repeat_left_page(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let leaf = inner_leaf(target)?;
    keys_differ(target, leaf.first_data())?;
    let left = target.other_block(leaf.prev)?;
    let entries = LOWER_AT..target.special_at()?;
    let mut after = target.bytes.clone();
    after
        .get_mut(entries.clone())?
        .copy_from_slice(left.get(entries)?);
    let words = format!("entries of block {} written here", leaf.prev);
    let damage = Damage::bytes(target, &after, words)?;
    let damage = damage.must(&["btree-page-order", "btree-child-bounds"]);
    Some(damage.must(&["index-entry-duplicate"]).may(&[BTREE]))
}

pub(super) const BTREE_DOWNLINKS_SWAPPED: Injury = Injury {
    name: "btree-downlinks-swapped",
    summary: "two entries of an inner page of a btree lead to each other's pages",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: swap_downlinks,
};

fn swap_downlinks(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let page = inner_page(target)?;
    let item = page.first_data() + 1;
    let (one, other) = (page.tuple(item)?.child(), page.tuple(item + 1)?.child());
    let (at, next) = (target.item_at(item)?, target.item_at(item + 1)?);
    let words = format!("entries lead to {other} and {one}");
    let damage = Damage::edit(target, words, |page| {
        put_block(page, at, other);
        put_block(page, next, one);
    })?;
    let damage = damage.item(item).must(&["btree-downlink"]);
    Some(damage.may(&[BTREE]))
}

pub(super) const BTREE_DOWNLINK_REMOVED: Injury = Injury {
    name: "btree-downlink-removed",
    summary: "the last entry of an inner page of a btree is gone",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: drop_last_downlink,
};

fn drop_last_downlink(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    inner_page(target).filter(BtreePage::is_rightmost)?;
    let damage = drop_last_entry(target)?;
    Some(damage.must(&["btree-downlink-missing"]))
}

pub(super) const BTREE_ROOT_LEVEL: Injury = Injury {
    name: "btree-root-level",
    summary: "the meta page of a btree tells another level of its root",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: raise_root_level,
};

fn raise_root_level(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let meta = meta(target).filter(|meta| meta.root != NO_PAGE)?;
    let level = meta.level + 1;
    let words = format!("btm_level set to {level}");
    let damage = Damage::edit(target, words, |page| put_u32(page, ROOT_LEVEL_AT, level))?;
    Some(damage.must(&["btree-root"]).may(&[BTREE]))
}

pub(super) const BTREE_ENTRY_REMOVED: Injury = Injury {
    name: "btree-entry-removed",
    summary: "the last entry of a btree leaf is gone",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: drop_last_leaf_entry,
};

fn drop_last_leaf_entry(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let leaf = leaf(target)?;
    let last = target.page()?.line_pointer_count();
    names_live_row(target, last)?;
    leaf.tuple(last).filter(|_| last > leaf.first_data() + 1)?;
    let damage = drop_last_entry(target)?;
    Some(damage.must(&["row-without-index-entry"]))
}

pub(super) const BTREE_ENTRY_WITHOUT_ROW: Injury = Injury {
    name: "btree-entry-without-row",
    summary: "an entry of a btree leaf names a row that is not there",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: name_missing_row,
};

fn name_missing_row(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let leaf = leaf(target)?;
    let item = leaf.first_data();
    let row = plain_tuple(&leaf, item)?.0.t_tid();
    let at = target.item_at(item)? + TID_OFFSET_AT;
    names_live_row(target, item)?;
    let words = format!("row {row} becomes number 2000 of its block");
    let damage = Damage::edit(target, words, |page| put_u16(page, at, 2000))?;
    let damage = damage.must(&["index-entry-without-row", "row-without-index-entry"]);
    Some(damage.item(item).may(&[BTREE]))
}

pub(super) const BTREE_ENTRY_DOUBLED: Injury = Injury {
    name: "btree-entry-duplicate",
    summary: "two entries of a btree leaf name one row",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: name_row_of_next_entry,
};

fn name_row_of_next_entry(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let leaf = leaf(target)?;
    let item = leaf.first_data();
    let row = plain_tuple(&leaf, item + 1)?.0.t_tid();
    keys_differ(target, item)?;
    names_live_row(target, item)?;
    names_live_row(target, item + 1)?;
    let at = target.item_at(item)?;
    let words = format!("the entry names row {row}");
    let damage = Damage::edit(target, words, |page| {
        put_block(page, at, row.block);
        put_u16(page, at + TID_OFFSET_AT, row.offset);
    })?;
    let damage = damage.must(&["index-entry-duplicate", "row-without-index-entry"]);
    Some(damage.item(item).may(&[BTREE]))
}

pub(super) const BTREE_KEY_REPEATED: Injury = Injury {
    name: "btree-key-repeated",
    summary: "an entry of a unique btree has the key of the one before it",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: repeat_key,
};

fn repeat_key(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let leaf = leaf(target)?;
    let item = leaf.first_data();
    let next = item + 1;
    let (low, high) = (plain_tuple(&leaf, item)?, plain_tuple(&leaf, next)?);
    (low.0.t_tid() < high.0.t_tid()).then_some(())?;
    let width = unique_key_width(target)?;
    names_live_row(target, item)?;
    names_live_row(target, next)?;
    let key = low.0.item().get(KEY_AT..KEY_AT + width)?;
    let at = target.item_at(next)? + KEY_AT;
    let words = format!("entry {next} has the key of entry {item}");
    let damage = Damage::edit(target, words, |page| put_bytes(page, at, key))?;
    let damage = damage.must(&["unique-key-duplicate", "index-entry-of-other-key"]);
    Some(damage.item(next).may(&[BTREE]))
}

/// Bytes of the key of a unique index over one column of fixed width.
fn unique_key_width(target: &InjuryTarget<'_>) -> Option<usize> {
    let relation = target.relation?;
    let index = relation.index.as_ref()?;
    match relation.layouts.as_deref()? {
        [layout] if index.unique && index.valid && index.key_count == 1 => {
            usize::try_from(layout.attlen).ok()
        }
        _ => None,
    }
}

pub(super) const BTREE_ROOT: Injury = Injury {
    name: "btree-root",
    summary: "the meta page of a btree names a root past the end of the index",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: move_root_beyond_end,
};

fn move_root_beyond_end(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    target.page_of(AccessMethod::Btree)?;
    (target.block == META_BLOCK).then_some(())?;
    let root = target.block_beyond_end()?;
    let words = format!("btm_root set to {root}");
    let damage = Damage::edit(target, words, |page| put_u32(page, ROOT_AT, root))?;
    Some(damage.must(&["btree-link-beyond-end"]))
}

pub(super) const BTREE_PAGE_UNLINKED: Injury = Injury {
    name: "btree-page-unlinked",
    summary: "the neighbours of a btree leaf pass it by, though it is not deleted",
    wants: Wants::once(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: link_neighbours,
};

fn link_neighbours(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let leaf = inner_leaf(target)?;
    keys_differ(target, leaf.first_data())?;
    let (left, right) = (leaf.prev, leaf.next);
    let changes = vec![
        relinked(target, left, NEXT_AT, right)?,
        relinked(target, right, PREV_AT, left)?,
    ];
    let words = format!(
        "blocks {left} and {right} linked past block {}",
        target.block
    );
    let damage = Damage::changes(changes, words)?;
    Some(damage.must(&["btree-page-unreachable"]).may(&[BTREE]))
}

/// Another page of the index, with one of its links changed and a true checksum.
fn relinked(
    target: &InjuryTarget<'_>,
    block: BlockNo,
    link_at: usize,
    neighbour: BlockNo,
) -> Option<Change> {
    let before = target.other_block(block)?;
    let special = usize::from(Page::parse(&before)?.pd_special());
    let mut after = before.clone();
    put_u32(&mut after, special + link_at, neighbour);
    if target.has_checksums() {
        seal_page(&mut after, block);
    }
    let (path, offset) = target.place_of_block(block)?;
    Some(Change::Bytes {
        path,
        offset,
        before,
        after,
    })
}

pub(super) const BTREE_SHARED_ENTRIES: Injury = Injury {
    name: "btree-shared-entries",
    summary: "the meta page of a btree lets equal keys share an entry that need not look alike",
    wants: Wants::page(INDEX_PAGE),
    recovery_advice: advice::INDEX,
    damage: allow_shared_entries,
};

fn allow_shared_entries(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let meta = meta(target)?;
    let (catalog, index) = (target.catalog?, target.relation?.index.as_ref()?);
    let deterministic = |oid| Some(catalog.collation(oid)?.deterministic);
    let unlike = index.is_equal_image(deterministic) == Some(false) && !index.has_interval();
    (unlike && !meta.all_equal_image && meta.version >= 4).then_some(())?;
    let damage = Damage::edit(target, "btm_allequalimage set", |page| {
        put_u8(page, Meta::ALL_EQUAL_IMAGE_AT, 1)
    })?;
    Some(damage.must(&["btree-shared-entries-wrong"]))
}
