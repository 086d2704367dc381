//! Ranges of the built-in discrete and time types, for comparing their bounds.
//!
//! ```text
//! payload: | oid of the range type | lower? | upper? | flags |
//! ```
//!
//! Truth: `range_serialize` and `range_cmp_bounds` in `src/backend/utils/adt/rangetypes.c`.

use std::cmp::Ordering;

/// `RANGE_EMPTY`.
const EMPTY: u8 = 0x01;
const LOWER_INCLUSIVE: u8 = 0x02;
const UPPER_INCLUSIVE: u8 = 0x04;
const LOWER_INFINITE: u8 = 0x08;
const UPPER_INFINITE: u8 = 0x10;
/// `RANGE_CONTAIN_EMPTY`, in inner keys of GiST only.
const CONTAINS_EMPTY: u8 = 0x80;

/// A range whose bounds are whole numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    kind: u32,
    flags: u8,
    lower: Bound,
    upper: Bound,
}

#[derive(Clone, Copy, Debug)]
struct Bound {
    value: i64,
    infinite: bool,
    inclusive: bool,
}

impl Range {
    /// The range in a varlena's payload, if its type is `int4range`, `int8range`, `daterange`,
    /// `tsrange` or `tstzrange` and its length is right.
    pub(crate) fn parse(payload: &[u8]) -> Option<Range> {
        let (kind, rest) = payload.split_first_chunk::<4>()?;
        let (flags, bounds) = rest.split_last()?;
        let kind = u32::from_le_bytes(*kind);
        let width = match kind {
            3904 | 3912 => 4,
            3926 | 3908 | 3910 => 8,
            _ => return None,
        };
        let mut bounds = bounds.chunks_exact(width);
        let mut bound = |infinite: u8, inclusive: u8| {
            let none = *flags & (EMPTY | infinite) != 0;
            Some(Bound {
                value: if none { 0 } else { whole(bounds.next()?)? },
                infinite: *flags & infinite != 0,
                inclusive: *flags & inclusive != 0,
            })
        };
        let lower = bound(LOWER_INFINITE, LOWER_INCLUSIVE)?;
        let upper = bound(UPPER_INFINITE, UPPER_INCLUSIVE)?;
        let complete = bounds.next().is_none() && bounds.remainder().is_empty();
        complete.then_some(Range {
            kind,
            flags: *flags,
            lower,
            upper,
        })
    }

    /// As an inner key it leads to every query that `other` can answer; nothing for ranges of two
    /// types.
    pub(crate) fn covers(&self, other: &Range) -> Option<bool> {
        (self.kind == other.kind).then_some(())?;
        let is = |range: &Range, flag: u8| range.flags & flag != 0;
        if is(other, EMPTY) {
            return Some(is(self, EMPTY | CONTAINS_EMPTY));
        }
        if is(self, EMPTY) || is(other, CONTAINS_EMPTY) && !is(self, CONTAINS_EMPTY) {
            return Some(false);
        }
        Some(
            lower_order(self.lower, other.lower).is_le()
                && upper_order(self.upper, other.upper).is_ge(),
        )
    }
}

fn whole(bytes: &[u8]) -> Option<i64> {
    match bytes.len() {
        4 => Some(i64::from(i32::from_le_bytes(*bytes.first_chunk()?))),
        _ => Some(i64::from_le_bytes(*bytes.first_chunk()?)),
    }
}

fn lower_order(one: Bound, other: Bound) -> Ordering {
    match (one.infinite, other.infinite) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => one
            .value
            .cmp(&other.value)
            .then(other.inclusive.cmp(&one.inclusive)),
    }
}

fn upper_order(one: Bound, other: Bound) -> Ordering {
    match (one.infinite, other.infinite) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => one
            .value
            .cmp(&other.value)
            .then(one.inclusive.cmp(&other.inclusive)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(lower: i32, upper: i32, flags: u8) -> Range {
        let mut payload = 3904_u32.to_le_bytes().to_vec();
        if flags & (EMPTY | LOWER_INFINITE) == 0 {
            payload.extend(lower.to_le_bytes());
        }
        if flags & (EMPTY | UPPER_INFINITE) == 0 {
            payload.extend(upper.to_le_bytes());
        }
        payload.push(flags);
        Range::parse(&payload).expect("an int4range")
    }

    #[test]
    fn bounds_count_with_their_brackets() {
        let covers = |one: Range, other: Range| one.covers(&other).expect("one type");
        assert!(covers(
            range(1, 9, LOWER_INCLUSIVE),
            range(1, 9, LOWER_INCLUSIVE)
        ));
        assert!(!covers(range(1, 9, 0), range(1, 9, LOWER_INCLUSIVE)));
        assert!(!covers(range(1, 9, 0), range(2, 9, UPPER_INCLUSIVE)));
        assert!(covers(range(0, 9, LOWER_INFINITE), range(i32::MIN, 8, 0)));
        assert!(!covers(range(0, 9, 0), range(0, 8, LOWER_INFINITE)));
    }

    #[test]
    fn an_empty_range_lies_under_keys_that_say_so() {
        let empty = range(0, 0, EMPTY);
        assert_eq!(range(1, 9, 0).covers(&empty), Some(false));
        assert_eq!(range(1, 9, CONTAINS_EMPTY).covers(&empty), Some(true));
        assert_eq!(empty.covers(&range(1, 9, 0)), Some(false));
    }

    #[test]
    fn a_range_of_another_length_is_none() {
        assert!(Range::parse(&[64, 15, 0, 0, 1, 0, 0, 0, 0]).is_none());
        assert!(Range::parse(&[64, 15, 0, 0, EMPTY]).is_some());
        assert!(
            Range::parse(&[66, 15, 0, 0, EMPTY]).is_none(),
            "a numrange is another matter"
        );
    }
}
