//! Rows whose headers contradict themselves, and values behind one whose length is lost.

use std::ops::Range;

use pgclinic_format::attribute::Attribute;
use pgclinic_format::heap_tuple::{HEAP_HASNULL, HEAP_NATTS_MASK};
use pgclinic_format::{Attributes, ColumnLayout, HeapTuple};

/// Offsets of fields in a row's header.
const INFOMASK2_AT: usize = 18;
const INFOMASK_AT: usize = 20;
const HOFF_AT: usize = 22;

/// The header is as a server writes it for this table.
#[inline]
pub(crate) fn is_sound(tuple: HeapTuple<'_>, layouts: &[ColumnLayout]) -> bool {
    usize::from(tuple.t_hoff()) == tuple.expected_hoff()
        && usize::from(tuple.attribute_count()) <= layouts.len()
}

/// The row with its header put right, where one change of it lets all columns end where the row
/// does; and which change.
pub(crate) fn mended(
    tuple: HeapTuple<'_>,
    layouts: &[ColumnLayout],
) -> Option<(Vec<u8>, &'static str)> {
    let columns = u16::try_from(layouts.len())
        .ok()
        .filter(|count| *count <= HEAP_NATTS_MASK)?;
    let mask = tuple.t_infomask();
    let count = tuple.attribute_count();
    let candidates = [
        (count, mask, "t_hoff"),
        (columns, mask, "the number of attributes"),
        (count, mask ^ HEAP_HASNULL, "HEAP_HASNULL"),
        (
            columns,
            mask ^ HEAP_HASNULL,
            "HEAP_HASNULL and the number of attributes",
        ),
    ];
    let possible = candidates
        .into_iter()
        .filter(|(count, ..)| *count <= columns);
    possible.into_iter().find_map(|(count, mask, what)| {
        let bytes = with_header(tuple, count, mask)?;
        let fits = HeapTuple::parse(&bytes).is_some_and(|tuple| ends_with_row(tuple, layouts));
        fits.then_some((bytes, what))
    })
}

fn with_header(tuple: HeapTuple<'_>, count: u16, mask: u16) -> Option<Vec<u8>> {
    let mut bytes = tuple.bytes().to_vec();
    let second = tuple.t_infomask2() & !HEAP_NATTS_MASK | count;
    bytes
        .get_mut(INFOMASK2_AT..INFOMASK2_AT + 2)?
        .copy_from_slice(&second.to_le_bytes());
    bytes
        .get_mut(INFOMASK_AT..INFOMASK_AT + 2)?
        .copy_from_slice(&mask.to_le_bytes());
    let hoff = HeapTuple::parse(&bytes)?.expected_hoff();
    *bytes.get_mut(HOFF_AT)? = u8::try_from(hoff).ok()?;
    Some(bytes)
}

fn ends_with_row(tuple: HeapTuple<'_>, layouts: &[ColumnLayout]) -> bool {
    let mut walk = Attributes::new(tuple, layouts);
    walk.by_ref().all(|attribute| attribute.is_ok()) && walk.end() == tuple.bytes().len()
}

/// Where the columns behind one of unknown length stand: the only way in which they fill the row to
/// its end.
pub(crate) fn behind(
    tuple: HeapTuple<'_>,
    layouts: &[ColumnLayout],
    broken: usize,
    from: usize,
) -> Option<Vec<Attribute>> {
    let rest = layouts.get(broken + 1..).filter(|rest| !rest.is_empty())?;
    let stored = usize::from(tuple.attribute_count()).saturating_sub(broken + 1);
    let rest = rest.get(..stored.min(rest.len()))?;
    let nulls = shifted(tuple, broken + 1);
    let mut ways = (from + 1..=tuple.bytes().len()).filter_map(|at| {
        let mut walk = Attributes::walk(tuple.bytes(), nulls.as_deref(), at, rest);
        let found: Result<Vec<Attribute>, _> = walk.by_ref().collect();
        found.ok().filter(|_| walk.end() == tuple.bytes().len())
    });
    let first = ways.next()?;
    // Ways that differ only in padding before the first value are one.
    let starts = |way: &[Attribute]| -> Vec<Option<Range<usize>>> {
        way.iter()
            .map(|attribute| match attribute {
                Attribute::Value(range) => Some(range.clone()),
                Attribute::Null | Attribute::Missing => None,
            })
            .collect()
    };
    let expected = starts(&first);
    let has_value = expected.iter().any(Option::is_some);
    (has_value && ways.all(|way| starts(&way) == expected)).then_some(first)
}

/// The bitmap of nulls from a column on.
fn shifted(tuple: HeapTuple<'_>, first: usize) -> Option<Vec<u8>> {
    let bitmap = tuple.null_bitmap()?;
    let bit = |index: usize| {
        bitmap
            .get(index / 8)
            .is_some_and(|byte| byte >> (index % 8) & 1 == 1)
    };
    let count = usize::from(tuple.attribute_count()).saturating_sub(first);
    let mut shifted = vec![0u8; count.div_ceil(8)];
    for index in (0..count).filter(|index| bit(first + index)) {
        if let Some(byte) = shifted.get_mut(index / 8) {
            *byte |= 1 << (index % 8);
        }
    }
    Some(shifted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgclinic_format::build::TupleBuilder;

    const INT: ColumnLayout = ColumnLayout {
        attlen: 4,
        attalign: 4,
    };
    const TEXT: ColumnLayout = ColumnLayout {
        attlen: -1,
        attalign: 4,
    };

    fn row() -> Vec<u8> {
        // 7, "ab", "xyz", 9
        let data = [
            &7i32.to_le_bytes()[..],
            &[0x07, b'a', b'b'],
            &[0x09, b'x', b'y', b'z'],
            &[0],
            &9i32.to_le_bytes(),
        ];
        TupleBuilder::new(4).data(&data.concat()).finish()
    }

    #[test]
    fn a_header_that_contradicts_itself_is_put_right_by_one_change() {
        let layouts = [INT, TEXT, TEXT, INT];
        let right = row();
        for (at, byte, what) in [
            (HOFF_AT, 32, "t_hoff"),
            (INFOMASK2_AT, 7, "the number of attributes"),
        ] {
            let mut wrong = right.clone();
            if let Some(slot) = wrong.get_mut(at) {
                *slot = byte;
            }
            let tuple = HeapTuple::parse(&wrong).expect("a header");
            assert_eq!(mended(tuple, &layouts), Some((right.clone(), what)));
        }
    }

    #[test]
    fn columns_behind_a_broken_length_are_found_from_the_end() {
        let layouts = [INT, TEXT, TEXT, INT];
        let mut bytes = row();
        // "ab" claims to be far longer than the row.
        if let Some(slot) = bytes.get_mut(28) {
            *slot = 0xFF;
        }
        let tuple = HeapTuple::parse(&bytes).expect("a header");
        let expected = [Attribute::Value(31..35), Attribute::Value(36..40)];
        assert_eq!(behind(tuple, &layouts, 1, 28), Some(expected.to_vec()));
        assert_eq!(behind(tuple, &layouts, 3, 36), None);
    }
}
