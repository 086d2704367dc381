//! Rows whose flags and length are not those that their own values ask for.

use pgclinic_format::heap_tuple::{HEAP_HASNULL, HEAP_HASVARWIDTH};
use pgclinic_format::{Attribute, ColumnLayout, HeapTuple, Page};
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::Findings;
use crate::heap::tuples::{INFOMASK, StoredTuple, columns_apply, tuples};

/// The rule.
pub static BYTES_AFTER_LAST_VALUE: Rule =
    Rule::from_page(include_str!("../../rules/bytes-after-last-value.md"));

/// The rule.
pub static VARWIDTH_FLAG_WRONG: Rule =
    Rule::from_page(include_str!("../../rules/varwidth-flag-wrong.md"));

/// The rule.
pub static NULL_FLAG_WITHOUT_NULL: Rule =
    Rule::from_page(include_str!("../../rules/null-flag-without-null.md"));

/// See [`BYTES_AFTER_LAST_VALUE`], [`VARWIDTH_FLAG_WRONG`] and [`NULL_FLAG_WITHOUT_NULL`].
pub struct RowShape;

impl PageCheck for RowShape {
    fn rules(&self) -> &'static [&'static Rule] {
        const {
            &[
                &BYTES_AFTER_LAST_VALUE,
                &VARWIDTH_FLAG_WRONG,
                &NULL_FLAG_WITHOUT_NULL,
            ]
        }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let columns = cx.fork.columns.unwrap_or_default();
        for stored in tuples(page) {
            let Some(shape) = Shape::of(stored, columns, cx) else {
                continue;
            };
            if !shape.is_that_of(stored.tuple) && columns_apply(stored.tuple, cx.fork) {
                tell(stored, shape, out);
            }
        }
    }
}

/// What the values of a row ask for.
#[derive(Clone, Copy)]
struct Shape {
    end: usize,
    has_null: bool,
    has_variable_width: bool,
}

impl Shape {
    /// Nothing where the walk over the row finds a fault, which has a rule of its own.
    fn of(stored: StoredTuple<'_>, columns: &[ColumnLayout], cx: &PageCx<'_>) -> Option<Self> {
        let mut shape = Shape {
            end: usize::from(stored.tuple.t_hoff()),
            has_null: false,
            has_variable_width: false,
        };
        for (attribute, column) in stored.attributes(cx)?.zip(columns) {
            match attribute.ok()? {
                Attribute::Null => shape.has_null = true,
                Attribute::Missing => break,
                Attribute::Value(range) => {
                    shape.end = range.end;
                    shape.has_variable_width |= column.attlen < 0;
                }
            }
        }
        Some(shape)
    }

    fn is_that_of(self, tuple: HeapTuple<'_>) -> bool {
        self.end == tuple.bytes().len()
            && self.has_variable_width == tuple.has(HEAP_HASVARWIDTH)
            && (self.has_null || !tuple.has(HEAP_HASNULL))
    }
}

fn tell(stored: StoredTuple<'_>, shape: Shape, out: &mut Findings) {
    let (tuple, len) = (stored.tuple, stored.tuple.bytes().len());
    if shape.end < len {
        let message = format!("values end at {}, and the tuple has {len} bytes", shape.end);
        let draft = stored.draft(&BYTES_AFTER_LAST_VALUE, message, shape.end..len);
        out.add(draft.fact("excess_bytes", len - shape.end));
    }
    if shape.has_variable_width != tuple.has(HEAP_HASVARWIDTH) {
        let (message, severity) = if shape.has_variable_width {
            (
                "HEAP_HASVARWIDTH is not set, and a value is of variable width",
                Severity::Damage,
            )
        } else {
            (
                "HEAP_HASVARWIDTH is set, and no value is of variable width",
                Severity::Warning,
            )
        };
        let draft = stored.draft(&VARWIDTH_FLAG_WRONG, message.into(), INFOMASK);
        out.add(draft.severity(severity));
    }
    if tuple.has(HEAP_HASNULL) && !shape.has_null {
        let message = "HEAP_HASNULL is set, and no value is null".into();
        out.add(stored.draft(&NULL_FLAG_WITHOUT_NULL, message, INFOMASK));
    }
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn flags_and_length_are_those_of_the_values() {
        let row = |infomask: u16, data: &[u8]| {
            let tuple = TupleBuilder::new(2).xids(800, 0).data(data);
            tuple.infomask(0x0900 | infomask).finish()
        };
        let nulls = |bitmap, infomask: u16, data: &[u8]| {
            let tuple = TupleBuilder::new(2)
                .xids(800, 0)
                .infomask(0x0900 | infomask);
            tuple.nulls(&[bitmap]).data(data).finish()
        };
        let page = PageBuilder::new(8192, &[])
            .item(&row(2, &[1, 0, 0, 0, 7, b'a', b'b']))
            .item(&row(0, &[1, 0, 0, 0, 7, b'a', b'b']))
            .item(&row(2, &[1, 0, 0, 0, 7, b'a', b'b', 0]))
            .item(&nulls(1, 0, &[1, 0, 0, 0]))
            .item(&nulls(1, 2, &[1, 0, 0, 0]))
            .item(&nulls(3, 2, &[1, 0, 0, 0, 3]))
            .finish(0);
        let expected = [
            "2 varwidth-flag-wrong: HEAP_HASVARWIDTH is not set, and a value is of variable width",
            "3 bytes-after-last-value: values end at 31, and the tuple has 32 bytes",
            "5 varwidth-flag-wrong: HEAP_HASVARWIDTH is set, and no value is of variable width",
            "6 null-flag-without-null: HEAP_HASNULL is set, and no value is null",
        ];
        let trial = Trial::with_columns(&[(4, 4), (-1, 4)]);
        assert_eq!(trial.told(&RowShape, &page), expected);
    }
}
