//! A leaf of a btree whose entries are formed and ordered as they should be, in one pass.

use std::cmp::Ordering;

use pgclinic_format::btree::{BtreePage, BtreeTuple};
use pgclinic_format::index_tuple::IndexTuple;
use pgclinic_format::order::Word;
use pgclinic_format::types::INVALID_BLOCK;
use pgclinic_format::{LinePointer, LpFlags, Page};

use crate::btree::{FixedKeys, KeyOrder, Tie, image, tuple_shape};
use crate::fast_path::INDEX_ITEM_BYTES;
use crate::fast_path::items::{Bounds, Starts, Taken};

/// Row numbers from here on mean something else.
const OFFSET_END: u16 = 0xFFFD;

/// What is known of a leaf that nobody needs to look at.
struct Right<'p> {
    /// No two rows have one key: an entry of several is none of these.
    is_distinct: bool,
    last: Option<BtreeTuple<'p>>,
}

/// Nobody needs to look at the page; then `keep` is called with what the walks will ask of it.
pub(super) fn is_right(
    tree: BtreePage<'_>,
    keys: &KeyOrder,
    keep: &mut dyn FnMut(BtreePage<'_>, Option<BtreeTuple<'_>>),
) -> bool {
    let fixed = keys.fixed();
    let plain = fixed.and_then(|fixed| all_are_plain(tree, keys, fixed));
    let Some(right) = plain.or_else(|| any_leaf(tree, keys)) else {
        return false;
    };
    keep(tree, right.last.filter(|_| right.is_distinct));
    true
}

/// The short way: every entry names one row and has the size that all have.
fn all_are_plain<'p>(tree: BtreePage<'p>, keys: &KeyOrder, fixed: &FixedKeys) -> Option<Right<'p>> {
    let size = fixed.entry_bytes;
    if let Some(words) = fixed.words::<1>() {
        plain_leaf(tree, keys, size, words)
    } else if let Some(words) = fixed.words::<2>() {
        plain_leaf(tree, keys, size, words)
    } else if let Some(words) = fixed.words::<3>() {
        plain_leaf(tree, keys, size, words)
    } else {
        None
    }
}

/// Nothing where somebody has to look closer.
fn plain_leaf<'p, const N: usize>(
    tree: BtreePage<'p>,
    keys: &KeyOrder,
    size: u16,
    words: &[Word; N],
) -> Option<Right<'p>> {
    let page = tree.page();
    let (bounds, mut taken) = (Bounds::of(page, INDEX_ITEM_BYTES), Taken::new());
    let mut pointers = page.line_pointers();
    let high_key = if tree.is_rightmost() {
        None
    } else {
        Some(high_key(
            tree,
            keys,
            pointers.next()?.1,
            &bounds,
            &mut taken,
        )?)
    };
    let mut starts = Starts::new();
    let mut before: Option<([u64; N], u64)> = None;
    let (mut last, mut is_distinct) = (None, true);
    for (_, pointer) in pointers {
        let entry = plain_entry(page, pointer, &bounds, size)?;
        starts.add(usize::from(pointer.lp_off()));
        let (row, key) = (row_of(entry, size)?, image(words, entry)?);
        if let Some((key_before, row_before)) = before
            && key_before >= key
        {
            is_distinct = false;
            (key_before == key && row_before < row).then_some(())?;
        }
        before = Some((key, row));
        last = Some(entry);
    }
    starts.take_all(usize::from(size), &mut taken);
    let last = last.and_then(IndexTuple::parse).map(BtreeTuple);
    let beyond = last.zip(high_key).is_some_and(|(last, high_key)| {
        keys.compare(last, high_key, Tie::HighestFirst) == Some(Ordering::Greater)
    });
    (taken.is_disjoint() && !beyond).then_some(Right { is_distinct, last })
}

/// The high key, formed as it should be.
fn high_key<'p>(
    tree: BtreePage<'p>,
    keys: &KeyOrder,
    pointer: LinePointer,
    bounds: &Bounds,
    taken: &mut Taken,
) -> Option<BtreeTuple<'p>> {
    (pointer.flags() == LpFlags::Normal && bounds.hold(pointer)).then_some(())?;
    taken.take(pointer);
    let tuple = BtreeTuple(IndexTuple::parse(tree.page().item(pointer)?)?);
    let fault = tuple_shape::fault(tree, 1, tuple, Some(keys));
    fault.is_none().then_some(tuple)
}

/// The bytes of an item of the size that all have.
#[inline]
fn plain_entry<'p>(
    page: Page<'p>,
    pointer: LinePointer,
    bounds: &Bounds,
    size: u16,
) -> Option<&'p [u8]> {
    let wanted = LinePointer::new(pointer.lp_off(), LpFlags::Normal, size);
    (pointer == wanted && bounds.hold(pointer)).then_some(())?;
    let start = usize::from(pointer.lp_off());
    page.bytes().get(start..start + usize::from(size))
}

/// The row as a number, where the entry says its own size and nothing else, and names one.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "sixteen bits are meant")]
fn row_of(entry: &[u8], size: u16) -> Option<u64> {
    let header = u64::from_le_bytes(*entry.first_chunk()?);
    let half = |at: u32| (header >> at) as u16;
    let (high, low, offset) = (half(0), half(16), half(32));
    let block = u32::from(high) << 16 | u32::from(low);
    let is_row = half(48) == size && (1..OFFSET_END).contains(&offset) && block != INVALID_BLOCK;
    is_row.then(|| u64::from(block) << 16 | u64::from(offset))
}

/// The way of every leaf.
fn any_leaf<'p>(tree: BtreePage<'p>, keys: &KeyOrder) -> Option<Right<'p>> {
    let page = tree.page();
    let first = tree.first_data();
    let (mut taken, bounds) = (Taken::new(), Bounds::of(page, INDEX_ITEM_BYTES));
    let (mut high_key, mut before): (_, Option<BtreeTuple<'_>>) = (None, None);
    let mut is_distinct = true;
    for (item, pointer) in page.line_pointers() {
        match pointer.flags() {
            LpFlags::Unused | LpFlags::Dead if pointer.lp_len() == 0 => continue,
            LpFlags::Unused | LpFlags::Redirect => return None,
            LpFlags::Normal | LpFlags::Dead => {}
        }
        bounds.hold(pointer).then_some(())?;
        taken.take(pointer);
        let tuple = BtreeTuple(IndexTuple::parse(page.item(pointer)?)?);
        if tuple_shape::fault(tree, item, tuple, Some(keys)).is_some() {
            return None;
        }
        if item < first {
            high_key = Some(tuple);
            continue;
        }
        is_distinct &= tuple.lowest_tid() == tuple.highest_tid();
        if let Some(before) = before {
            let by_key = keys.compare(before, tuple, Tie::Keys);
            is_distinct &= by_key == Some(Ordering::Less);
            let by_row = || before.highest_tid() < tuple.lowest_tid();
            let rises = match by_key {
                Some(Ordering::Less) | None => true,
                Some(Ordering::Equal) => by_row(),
                Some(Ordering::Greater) => false,
            };
            rises.then_some(())?;
        }
        before = Some(tuple);
    }
    let beyond = before.zip(high_key).is_some_and(|(last, high_key)| {
        keys.compare(last, high_key, Tie::HighestFirst) == Some(Ordering::Greater)
    });
    let last = before;
    (taken.is_disjoint() && !beyond).then_some(Right { is_distinct, last })
}
