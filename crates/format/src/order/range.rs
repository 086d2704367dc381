//! Ranges and multiranges: an empty range below all others, then the lower bounds, then the upper
//! ones; no bound is beyond every value, and an exclusive bound lies inside an inclusive one.
//!
//! Truth: `range_cmp` in `rangetypes.c`, `multirange_cmp` in `multirangetypes.c`.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use super::Comparison;
use crate::datum::TypeInfo;
use crate::datum::element::{Placing, Unpacking, read};
use crate::datum::reader::{HEADER, Reader};

const EMPTY: u8 = 0x01;
const LOWER_INCLUSIVE: u8 = 0x02;
const UPPER_INCLUSIVE: u8 = 0x04;
const LOWER_INFINITE: u8 = 0x08;
const UPPER_INFINITE: u8 = 0x10;

/// How the bounds of ranges compare.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub(super) subtype: Arc<TypeInfo>,
    pub(super) comparison: Comparison,
}

/// One bound; without a value it is infinite.
struct Bound<'a> {
    value: Option<Cow<'a, [u8]>>,
    is_inclusive: bool,
}

/// Lower and upper bound.
type Pair<'a> = (Bound<'a>, Bound<'a>);

#[derive(Clone, Copy)]
enum Side {
    Lower,
    Upper,
}

impl Bounds {
    pub(super) fn compare_ranges(
        &self,
        unpacking: &mut Unpacking,
        a: &[u8],
        b: &[u8],
    ) -> Option<Ordering> {
        let (a, b) = (self.range(unpacking, a)?, self.range(unpacking, b)?);
        match (a, b) {
            (Some(a), Some(b)) => self.compare_pairs(unpacking, &a, &b),
            (a, b) => Some(a.is_some().cmp(&b.is_some())),
        }
    }

    pub(super) fn contains(
        &self,
        unpacking: &mut Unpacking,
        outer: &[u8],
        inner: &[u8],
    ) -> Option<bool> {
        let Some(inner) = self.range(unpacking, inner)? else {
            return Some(true);
        };
        let Some(outer) = self.range(unpacking, outer)? else {
            return Some(false);
        };
        let lower = self.compare_bounds(unpacking, Side::Lower, &outer.0, &inner.0)?;
        let upper = self.compare_bounds(unpacking, Side::Upper, &outer.1, &inner.1)?;
        Some(lower.is_le() && upper.is_ge())
    }

    /// Range by range; one that has no more of them is the lesser one.
    pub(super) fn compare_multiranges(
        &self,
        unpacking: &mut Unpacking,
        a: &[u8],
        b: &[u8],
    ) -> Option<Ordering> {
        let (mut a, mut b) = (Multirange::parse(a)?, Multirange::parse(b)?);
        let common = a.flags.len().min(b.flags.len());
        for place in 0..common {
            let left = a.pair(self, unpacking, place)?;
            let right = b.pair(self, unpacking, place)?;
            let order = self.compare_pairs(unpacking, &left, &right)?;
            if order.is_ne() {
                return Some(order);
            }
        }
        Some(a.flags.len().cmp(&b.flags.len()))
    }

    /// The bounds of a range; nothing inside when it is empty.
    fn range<'v>(&self, unpacking: &mut Unpacking, value: &'v [u8]) -> Option<Option<Pair<'v>>> {
        let (&flags, bounds) = value.split_last()?;
        let mut reader = Reader::new(bounds);
        reader.u32().ok()?;
        if flags & EMPTY != 0 {
            return Some(None);
        }
        self.pair(unpacking, &mut reader, flags).map(Some)
    }

    fn pair<'v>(
        &self,
        unpacking: &mut Unpacking,
        reader: &mut Reader<'v>,
        flags: u8,
    ) -> Option<Pair<'v>> {
        let mut bound = |infinite, inclusive| {
            let value = match flags & infinite {
                0 => Some(read(unpacking, reader, &self.subtype, Placing::Packed, HEADER).ok()?),
                _ => None,
            };
            Some(Bound {
                value,
                is_inclusive: flags & inclusive != 0,
            })
        };
        let lower = bound(LOWER_INFINITE, LOWER_INCLUSIVE)?;
        Some((lower, bound(UPPER_INFINITE, UPPER_INCLUSIVE)?))
    }

    fn compare_pairs(
        &self,
        unpacking: &mut Unpacking,
        a: &Pair<'_>,
        b: &Pair<'_>,
    ) -> Option<Ordering> {
        let lower = self.compare_bounds(unpacking, Side::Lower, &a.0, &b.0)?;
        if lower.is_ne() {
            return Some(lower);
        }
        self.compare_bounds(unpacking, Side::Upper, &a.1, &b.1)
    }

    fn compare_bounds(
        &self,
        unpacking: &mut Unpacking,
        side: Side,
        a: &Bound<'_>,
        b: &Bound<'_>,
    ) -> Option<Ordering> {
        let outward = |is_a_inside: bool, is_b_inside: bool| match side {
            Side::Lower => is_a_inside.cmp(&is_b_inside),
            Side::Upper => is_b_inside.cmp(&is_a_inside),
        };
        let (Some(a_value), Some(b_value)) = (&a.value, &b.value) else {
            return Some(outward(a.value.is_some(), b.value.is_some()));
        };
        let values = self.comparison.compare(unpacking, a_value, b_value)?;
        Some(values.then_with(|| outward(!a.is_inclusive, !b.is_inclusive)))
    }
}

struct Multirange<'a> {
    flags: &'a [u8],
    bounds: Reader<'a>,
}

impl<'a> Multirange<'a> {
    fn parse(value: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(value);
        reader.u32().ok()?;
        let count = usize::try_from(reader.u32().ok()?).ok()?;
        reader
            .bytes(count.saturating_sub(1).saturating_mul(4))
            .ok()?;
        let flags = reader.bytes(count).ok()?;
        Some(Multirange {
            flags,
            bounds: reader,
        })
    }

    fn pair(&mut self, of: &Bounds, unpacking: &mut Unpacking, place: usize) -> Option<Pair<'a>> {
        let flags = *self.flags.get(place)?;
        self.bounds.align(of.subtype.align, HEADER);
        of.pair(unpacking, &mut self.bounds, flags)
    }
}
