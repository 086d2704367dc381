//! A row and its index entry that hold different keys: both values, and which side a flipped bit is
//! on.
//!
//! Two values that differ in one bit were one value. An entry stands between neighbours that were
//! put in order when the key was right: the side whose value does not fit there is the one that
//! flipped.

use std::cmp::Ordering;

use pgclinic_cluster::{Catalog, Relation};
use pgclinic_format::btree::{BtreePage, BtreeTuple};
use pgclinic_format::datum::{Limits, to_text};
use pgclinic_format::index_tuple::IndexTuple;

use crate::btree::{KeyOrder, Tie};
use crate::entries::columns::KeyDifference;

/// Characters of a value in a message.
const VALUE_MAX: usize = 60;

/// The side of which a bit flipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FlippedSide {
    Row,
    Entry,
}

impl FlippedSide {
    /// The other one, whose value is right.
    pub(crate) fn other(self) -> FlippedSide {
        match self {
            FlippedSide::Row => FlippedSide::Entry,
            FlippedSide::Entry => FlippedSide::Row,
        }
    }

    /// The word in facts.
    pub(crate) fn name(self) -> &'static str {
        match self {
            FlippedSide::Row => "row",
            FlippedSide::Entry => "entry",
        }
    }
}

/// `id is 5 in the entry and 1048581 in the row`.
pub(crate) fn values(
    differences: &[KeyDifference],
    table: &Relation,
    catalog: &Catalog,
) -> Vec<String> {
    let columns = table.columns.as_deref().unwrap_or_default();
    let words = differences.iter().filter_map(|difference| {
        let column = columns.get(difference.in_table)?;
        let ty = catalog.type_info(column.type_oid);
        let text = |value: &Option<Vec<u8>>| match value {
            None => "null".to_owned(),
            Some(bytes) => to_text(&ty, bytes, Limits::default())
                .map_or_else(|_| format!("\\x{}", hex(bytes)), |text| shortened(&text)),
        };
        let (entry, row) = (text(&difference.entry), text(&difference.row));
        Some(format!(
            "{} is {entry} in the entry and {row} in the row",
            column.name
        ))
    });
    words.collect()
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().take(VALUE_MAX / 2);
    digits.map(|byte| format!("{byte:02x}")).collect()
}

/// Bare where nothing in it could be taken for the message around it.
fn shortened(text: &str) -> String {
    let is_bare = |c: char| c.is_alphanumeric() || "+-.:_".contains(c);
    if !text.is_empty() && text.len() <= VALUE_MAX && text.chars().all(is_bare) {
        return text.to_owned();
    }
    match text.char_indices().nth(VALUE_MAX) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
    }
}

/// Which side a bit flipped on, where the values differ in one bit and only one of them fits
/// between the entry's neighbours.
pub(crate) fn flipped_side(
    differences: &[KeyDifference],
    order: &KeyOrder,
    leaf: BtreePage<'_>,
    (item, entry): (u16, BtreeTuple<'_>),
) -> Option<FlippedSide> {
    let [difference] = differences else {
        return None;
    };
    let as_the_row = entry_with_the_bit(difference, entry)?;
    let as_the_row = BtreeTuple(IndexTuple::parse(&as_the_row)?);
    let before = leaf.data().filter(|(other, _)| *other < item).last();
    let after = leaf.data().find(|(other, _)| *other > item);
    let fits = |tuple: BtreeTuple<'_>| {
        let comes = |a, b| {
            order
                .compare(a, b, Tie::Keys)
                .map(|found| found != Ordering::Greater)
        };
        let above = before.map_or(Some(true), |(_, lower)| comes(lower, tuple))?;
        let below = after.map_or(Some(true), |(_, upper)| comes(tuple, upper))?;
        Some(above && below)
    };
    match (fits(entry)?, fits(as_the_row)?) {
        (true, false) => Some(FlippedSide::Row),
        (false, true) => Some(FlippedSide::Entry),
        _ => None,
    }
}

/// The entry as it would be with the row's value; nothing unless they differ in one bit.
fn entry_with_the_bit(difference: &KeyDifference, entry: BtreeTuple<'_>) -> Option<Vec<u8>> {
    let (row, own) = (difference.row.as_ref()?, difference.entry.as_ref()?);
    let range = difference.entry_range.clone()?;
    (row.len() == own.len()).then_some(())?;
    let bits = row.iter().zip(own).map(|(a, b)| (a ^ b).count_ones());
    (bits.sum::<u32>() == 1).then_some(())?;
    let mut bytes = entry.0.bytes().to_vec();
    let stored = bytes.get_mut(range)?;
    // Behind the header of a varlena; a compressed value stands there as something else.
    let header = stored.len().checked_sub(own.len())?;
    let stored = stored.get_mut(header..)?;
    (stored == own.as_slice()).then(|| stored.copy_from_slice(row))?;
    Some(bytes)
}
