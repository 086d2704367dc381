//! Row values: field by field, a null above all values; dropped attributes do not count.
//!
//! Truth: `record_cmp` and `record_image_cmp` in `rowtypes.c`.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use super::Comparison;
use crate::datum::TypeInfo;
use crate::datum::element::{Placing, Unpacking, read};
use crate::datum::record::Row;

/// One attribute of a row type.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) ty: Arc<TypeInfo>,
    /// Nothing for a dropped attribute.
    pub(super) comparison: Option<Comparison>,
}

pub(super) fn compare(
    unpacking: &mut Unpacking,
    parts: &[Part],
    a: &[u8],
    b: &[u8],
) -> Option<Ordering> {
    let (mut a, mut b) = (Row::parse(a).ok()?, Row::parse(b).ok()?);
    if a.attributes.max(b.attributes) > parts.len() {
        return None;
    }
    for (attribute, part) in parts.iter().enumerate() {
        let left = next(unpacking, part, &mut a, attribute)?;
        let right = next(unpacking, part, &mut b, attribute)?;
        let Some(comparison) = &part.comparison else {
            continue;
        };
        let order = match (left, right) {
            (Some(left), Some(right)) => comparison.compare(unpacking, &left, &right)?,
            (left, right) => left.is_none().cmp(&right.is_none()),
        };
        if order.is_ne() {
            return Some(order);
        }
    }
    Some(Ordering::Equal)
}

/// The next attribute of a row, nothing inside for a null.
fn next<'v>(
    unpacking: &mut Unpacking,
    part: &Part,
    row: &mut Row<'v>,
    attribute: usize,
) -> Option<Option<Cow<'v, [u8]>>> {
    if row.is_null(attribute) {
        return Some(None);
    }
    let value = read(unpacking, &mut row.data, &part.ty, Placing::Packed, 0);
    value.ok().map(Some)
}
