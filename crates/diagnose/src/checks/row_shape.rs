//! Rows whose flags and length are not those that their own values ask for.

use pgclinic_format::heap_tuple::{HEAP_HASNULL, HEAP_HASVARWIDTH};
use pgclinic_format::{Attribute, ColumnLayout, HeapTuple, Page};
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::Findings;
use crate::tuples::{INFOMASK, StoredTuple, columns_apply, tuples};

/// The rule.
pub static BYTES_BEHIND_LAST_VALUE: Rule = Rule {
    name: "bytes-behind-last-value",
    severity: Severity::Damage,
    summary: "a row is longer than its values",
    explain: "\
A row ends where its last value ends; the server computes the length to the byte before it writes. This row \
has bytes left over, so it was written with more or longer values than its header and its lengths say now.

The server says nothing and reads what the header says: columns at the end of the row come out as null or \
as their default, or a value is cut short, or everything behind a wrong length is something else. What is \
missing still stands in the bytes.

The number of attributes in `t_infomask2`, a bit in the bitmap of nulls, the length in front of a value, or \
the length in the line pointer was overwritten. If every row of the page has it, the page belongs to \
another table, or to this table before a change that wrote it anew.

Copy the cluster first: an UPDATE of the row makes the loss final. `inspect` shows the bytes. Take the page \
from a backup or a standby whose copy is sound.",
};

/// The rule.
pub static VARWIDTH_FLAG_WRONG: Rule = Rule {
    name: "varwidth-flag-wrong",
    severity: Severity::Damage,
    summary: "the flag for values of variable width does not fit the values of the row",
    explain: "\
`HEAP_HASVARWIDTH` says that the row holds at least one value of variable width. The server sets it exactly \
when there is one. Here it is missing although there is one, or it is set although there is none.

Missing, it does harm: to get at one column the server takes the place from a table of fixed offsets, which \
is right only without such values. It reads the column from the wrong place, shows nonsense or crashes; \
reading all columns of the row is not disturbed. Set without need it costs a little time and nothing else, \
and is only a warning.

A bit of `t_infomask` flipped, or something else changed what the row seems to hold: the bitmap of nulls, \
the number of attributes.

Copy the cluster first, then take the page from a backup or a standby whose copy is sound. An UPDATE of the \
row from a query that reads all its columns writes the flag anew.",
};

/// The rule.
pub static NULL_FLAG_WITHOUT_NULL: Rule = Rule {
    name: "null-flag-without-null",
    severity: Severity::Warning,
    summary: "a row has a bitmap of nulls and no null",
    explain: "\
`HEAP_HASNULL` says that a bitmap of nulls stands in front of the values. The server writes the bitmap only \
when there is a null. Here all its bits say that the value is there.

The row reads as it should; by itself this hurts nobody. But no server writes it: a null of this row may \
have been turned into a value by a changed bit, and then that value, and those behind it, are nonsense.

The bitmap was overwritten, or the row was written by a tool that is not PostgreSQL.

Look at the row's values. If they make sense, an UPDATE of the row writes it anew; if not, copy the cluster \
and take the page from a backup or a standby.",
};

/// See [`BYTES_BEHIND_LAST_VALUE`], [`VARWIDTH_FLAG_WRONG`] and [`NULL_FLAG_WITHOUT_NULL`].
pub struct RowShape;

impl PageCheck for RowShape {
    fn rules(&self) -> &'static [&'static Rule] {
        const {
            &[
                &BYTES_BEHIND_LAST_VALUE,
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
        let draft = stored.draft(&BYTES_BEHIND_LAST_VALUE, message, shape.end..len);
        out.add(draft.fact("excess_bytes", len - shape.end));
    }
    if shape.has_variable_width != tuple.has(HEAP_HASVARWIDTH) {
        let (message, severity) = match shape.has_variable_width {
            true => (
                "HEAP_HASVARWIDTH is not set, and a value is of variable width",
                Severity::Damage,
            ),
            false => (
                "HEAP_HASVARWIDTH is set, and no value is of variable width",
                Severity::Warning,
            ),
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
            "3 bytes-behind-last-value: values end at 31, and the tuple has 32 bytes",
            "5 varwidth-flag-wrong: HEAP_HASVARWIDTH is set, and no value is of variable width",
            "6 null-flag-without-null: HEAP_HASNULL is set, and no value is null",
        ];
        let trial = Trial::with_columns(&[(4, 4), (-1, 4)]);
        assert_eq!(trial.told(&RowShape, &page), expected);
    }
}
