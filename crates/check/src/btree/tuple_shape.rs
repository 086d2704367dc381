//! A tuple of a btree that no server forms.
//!
//! Truth: `_bt_check_natts` in `src/backend/access/nbtree/nbtutils.c`, `_bt_form_posting` in
//! `nbtdedup.c`.

use pgclinic_format::Page;
use pgclinic_format::btree::{BtreePage, BtreeTuple};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::{INVALID_BLOCK, Tid};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::btree::KeyOrder;
use crate::check::{PageCheck, PageClass, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const BTREE_TUPLE_SHAPE: Rule =
    Rule::from_page(include_str!("../../rules/btree-tuple-shape.md"));

/// See [`BTREE_TUPLE_SHAPE`].
pub struct BtreeTupleShape;

impl PageCheck for BtreeTupleShape {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&BTREE_TUPLE_SHAPE] }
    }

    fn wants(&self) -> Wants {
        Wants {
            level: Level::Structure,
            pages: PageClass::Index,
            screened: true,
        }
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        if cx.fork.method != Some(AccessMethod::Btree) || cx.block == 0 {
            return;
        }
        let Some(tree) = BtreePage::parse(page).filter(|tree| !tree.is_ignored()) else {
            return;
        };
        let high_key = tree.high_key().map(|tuple| (1, tuple));
        for (item, tuple) in high_key.into_iter().chain(tree.data()) {
            if let Some(words) = fault(tree, item, tuple, cx.fork.key_order.as_ref()) {
                out.add(Draft::new(&BTREE_TUPLE_SHAPE, words).item(item));
            }
        }
    }
}

/// What is wrong with an entry, or with a high key. The screen asks it too.
#[inline]
pub(crate) fn fault(
    tree: BtreePage<'_>,
    item: u16,
    tuple: BtreeTuple<'_>,
    keys: Option<&KeyOrder>,
) -> Option<String> {
    let (size, len) = (tuple.0.size(), tuple.0.item().len());
    if size != len {
        return Some(format!(
            "the entry claims {size} bytes, its line pointer {len}"
        ));
    }
    let is_row = tree.is_leaf() && item >= tree.first_data();
    if is_row {
        row_fault(tuple)
    } else {
        pivot_fault(tree, item, tuple, keys)
    }
    .or_else(|| key_fault(tree, item, tuple, keys))
}

#[inline]
fn row_fault(tuple: BtreeTuple<'_>) -> Option<String> {
    if tuple.is_posting() {
        return posting_fault(tuple);
    }
    if tuple.is_pivot() {
        return Some("an entry of a leaf is marked as a pivot".into());
    }
    tid_fault(tuple.0.t_tid())
}

#[inline]
fn tid_fault(tid: Tid) -> Option<String> {
    let names_a_row = tid.offset != 0 && tid.offset < 0xfffd && tid.block != INVALID_BLOCK;
    (!names_a_row).then(|| format!("{tid} names no row"))
}

fn posting_fault(tuple: BtreeTuple<'_>) -> Option<String> {
    let (count, offset) = (tuple.posting_count(), tuple.posting_offset());
    let end = offset.checked_add(count * 6)?;
    if count < 2 || !offset.is_multiple_of(8) || end > tuple.0.size() {
        let size = tuple.0.size();
        return Some(format!(
            "a list of {count} rows at offset {offset} does not fit an entry of {size} bytes"
        ));
    }
    let mut before: Option<Tid> = None;
    for tid in tuple.rows() {
        if let Some(words) = tid_fault(tid) {
            return Some(words);
        }
        if let Some(before) = before.filter(|before| *before >= tid) {
            return Some(format!("row {tid} stands after {before} in its list"));
        }
        before = Some(tid);
    }
    None
}

/// A high key or an entry of an internal page.
fn pivot_fault(
    tree: BtreePage<'_>,
    item: u16,
    tuple: BtreeTuple<'_>,
    keys: Option<&KeyOrder>,
) -> Option<String> {
    if tuple.is_posting() {
        return Some("a pivot is marked as a list of rows".into());
    }
    let keys = keys?;
    // Indexes made before 12 do not mark their pivots, which carry all columns.
    if !tuple.is_pivot() {
        return None;
    }
    let stored = tuple.stored_columns(keys.column_count());
    let minus_infinity = !tree.is_leaf() && item == tree.first_data();
    let right = if minus_infinity {
        stored == 0
    } else {
        (1..=keys.key_count().max(keys.column_count())).contains(&stored)
    };
    (!right).then(|| format!("a pivot has {stored} of {} key columns", keys.key_count()))
}

/// The columns do not fit the entry.
#[inline]
fn key_fault(
    tree: BtreePage<'_>,
    item: u16,
    tuple: BtreeTuple<'_>,
    keys: Option<&KeyOrder>,
) -> Option<String> {
    let keys = keys?;
    if !tree.is_leaf() && item == tree.first_data() {
        return None;
    }
    if keys.fits_plainly(tuple) {
        return None;
    }
    let stored = tuple.stored_columns(keys.column_count());
    let fault = tuple
        .0
        .attributes(keys.layouts().get(..stored)?)
        .find_map(Result::err)?;
    Some(format!(
        "column {} does not fit the entry: it begins at offset {}",
        fault.attribute, fault.at
    ))
}
