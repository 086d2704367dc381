//! A sequence does not hold exactly one row of the shape that every sequence has.

use std::ops::Range;

use pgclinic_format::sequence::COLUMNS;
use pgclinic_format::{Attribute, Attributes, HeapTuple, LpFlags, Page};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageClass, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub static SEQUENCE_TUPLE: Rule = Rule::from_page(include_str!("../../rules/sequence-tuple.md"));

/// See [`SEQUENCE_TUPLE`].
pub struct SequenceTuple;

impl PageCheck for SequenceTuple {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&SEQUENCE_TUPLE] }
    }

    fn wants(&self) -> Wants {
        Wants {
            pages: PageClass::Sequence,
            screened: false,
            ..Wants::HEAP
        }
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        if let Err(message) = row_of(page) {
            out.add(Draft::new(&SEQUENCE_TUPLE, message));
        }
    }
}

/// The row of a sequence: its first byte on the page, its bytes, and where the three values are.
pub(super) struct SequenceRow<'a> {
    pub(super) start: usize,
    pub(super) bytes: &'a [u8],
    pub(super) values: [Range<usize>; 3],
}

/// The one row, or what is wrong with it.
pub(super) fn row_of(page: Page<'_>) -> Result<SequenceRow<'_>, String> {
    let count = page.line_pointer_count();
    let pointer = page
        .line_pointer(1)
        .filter(|_| count == 1)
        .ok_or_else(|| format!("{count} line pointers instead of 1"))?;
    if pointer.flags() != LpFlags::Normal {
        return Err(format!("line pointer 1 is {}", pointer.flags().name()));
    }
    let len = pointer.lp_len();
    let tuple = page
        .item(pointer)
        .and_then(HeapTuple::parse)
        .ok_or_else(|| format!("no row in the {len} bytes of line pointer 1"))?;
    let values = values_of(tuple)?;
    let (start, bytes) = (usize::from(pointer.lp_off()), tuple.bytes());
    Ok(SequenceRow {
        start,
        bytes,
        values,
    })
}

fn values_of(tuple: HeapTuple<'_>) -> Result<[Range<usize>; 3], String> {
    let (count, hoff) = (tuple.attribute_count(), tuple.t_hoff());
    if !tuple.xmin_is_frozen() {
        return Err(format!("xmin {} is not frozen", tuple.t_xmin()));
    }
    if usize::from(count) != COLUMNS.len() {
        return Err(format!("{count} attributes instead of 3"));
    }
    if usize::from(hoff) != tuple.expected_hoff() {
        return Err(format!("t_hoff {hoff} is not {}", tuple.expected_hoff()));
    }
    let mut walk = Attributes::new(tuple, &COLUMNS);
    let mut value = || match walk.next() {
        Some(Ok(Attribute::Value(range))) => Ok(range),
        Some(Ok(_)) => Err("a value is null".to_owned()),
        _ => Err(format!(
            "three values do not fit in the {} bytes of the row",
            tuple.bytes().len()
        )),
    };
    Ok([value()?, value()?, value()?])
}

#[cfg(test)]
mod tests {
    use pgclinic_format::LinePointer;
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;
    use crate::trial::Trial;

    fn told(page: PageBuilder) -> Vec<String> {
        Trial::sequence().told(&SequenceTuple, &page.finish(0))
    }

    fn page() -> PageBuilder {
        PageBuilder::new(8192, &[0x17, 0x17, 0, 0, 0, 0, 0, 0])
    }

    #[test]
    fn one_frozen_row_of_three_values() {
        let tuple = |count: u16| TupleBuilder::new(count).xids(2, 0);
        let row = tuple(3).data(&[1; 17]).finish();
        assert!(told(page().item(&row)).is_empty());
        let cases = [
            (page(), "0 line pointers instead of 1"),
            (page().item(&row).item(&row), "2 line pointers instead of 1"),
            (
                page().line_pointer(LinePointer::new(8000, LpFlags::Dead, 41)),
                "line pointer 1 is LP_DEAD",
            ),
            (
                page().item(&[0; 9]),
                "no row in the 9 bytes of line pointer 1",
            ),
            (
                page().item(&tuple(3).xids(9, 0).infomask(0x0900).finish()),
                "xmin 9 is not frozen",
            ),
            (page().item(&tuple(2).finish()), "2 attributes instead of 3"),
            (
                page().item(&tuple(3).nulls(&[3]).data(&[1; 17]).finish()),
                "a value is null",
            ),
            (
                page().item(&tuple(3).data(&[1; 16]).finish()),
                "three values do not fit in the 40 bytes of the row",
            ),
        ];
        for (page, expected) in cases {
            assert_eq!(told(page), [format!("sequence-tuple: {expected}")]);
        }
    }
}
