//! Arrays: element by element, a null above all values; then the count of elements, of dimensions,
//! the dimensions, and the lower bounds.
//!
//! Truth: `array_cmp` in `arrayfuncs.c`, `btoidvectorcmp` in `nbtcompare.c`.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use super::Comparison;
use crate::bytes::u32_at;
use crate::datum::TypeInfo;
use crate::datum::array::Array;
use crate::datum::element::{Placing, Unpacking, read};
use crate::datum::reader::HEADER;

const OID: u32 = 26;

/// What an array is made of.
#[derive(Clone, Debug)]
pub(super) struct Elements {
    pub(super) ty: Arc<TypeInfo>,
    pub(super) comparison: Comparison,
}

impl Elements {
    pub(super) fn compare(
        &self,
        unpacking: &mut Unpacking,
        a: &[u8],
        b: &[u8],
    ) -> Option<Ordering> {
        let (mut a, mut b) = (self.parse(a)?, self.parse(b)?);
        for item in 0..a.items.min(b.items) {
            let order = match (a.is_null(item), b.is_null(item)) {
                (false, false) => self.compare_next(unpacking, &mut a, &mut b)?,
                (is_a_null, is_b_null) => is_a_null.cmp(&is_b_null),
            };
            if order.is_ne() {
                return Some(order);
            }
        }
        Some(compare_shapes(&a, &b))
    }

    fn parse<'v>(&self, value: &'v [u8]) -> Option<Array<'v>> {
        let array = Array::parse(value).ok()?;
        (array.element_oid == self.ty.oid).then_some(array)
    }

    fn compare_next(
        &self,
        unpacking: &mut Unpacking,
        a: &mut Array<'_>,
        b: &mut Array<'_>,
    ) -> Option<Ordering> {
        let (a, b) = (self.next(unpacking, a)?, self.next(unpacking, b)?);
        self.comparison.compare(unpacking, &a, &b)
    }

    fn next<'v>(&self, unpacking: &mut Unpacking, array: &mut Array<'v>) -> Option<Cow<'v, [u8]>> {
        let reader = &mut array.elements;
        read(unpacking, reader, &self.ty, Placing::Aligned, HEADER).ok()
    }
}

fn compare_shapes(a: &Array<'_>, b: &Array<'_>) -> Ordering {
    let lengths = |array: &Array<'_>| array.dimensions.iter().map(|of| of.0).collect::<Vec<_>>();
    let lowers = |array: &Array<'_>| array.dimensions.iter().map(|of| of.1).collect::<Vec<_>>();
    a.items
        .cmp(&b.items)
        .then_with(|| a.dimensions.len().cmp(&b.dimensions.len()))
        .then_with(|| lengths(a).cmp(&lengths(b)))
        .then_with(|| lowers(a).cmp(&lowers(b)))
}

/// The shorter one first, then number by number.
pub(super) fn compare_oid_vectors(a: &[u8], b: &[u8]) -> Option<Ordering> {
    let (a, b) = (oids(a)?, oids(b)?);
    let numbers = |oids: &[[u8; 4]]| oids.iter().map(|raw| u32::from_le_bytes(*raw)).collect();
    Some(a.len().cmp(&b.len()).then_with(|| {
        let (a, b): (Vec<u32>, Vec<u32>) = (numbers(a), numbers(b));
        a.cmp(&b)
    }))
}

/// The elements of an array of one dimension without nulls.
fn oids(value: &[u8]) -> Option<&[[u8; 4]]> {
    let is_vector = u32_at(value, 0)? == 1 && u32_at(value, 4)? == 0 && u32_at(value, 8)? == OID;
    let count = usize::try_from(u32_at(value, 12)?).ok()?;
    let (elements, _) = value.get(20..)?.as_chunks::<4>();
    is_vector.then_some(elements.get(..count)?)
}
