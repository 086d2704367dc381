//! A tuple stores more attributes than its relation has columns.

use pgclinic_format::Page;
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::Findings;
use crate::tuples::{INFOMASK2, StoredTuple, columns_apply, tuples};

/// The rule.
pub static TOO_MANY_ATTRIBUTES: Rule = Rule {
    name: "too-many-attributes",
    severity: Severity::Damage,
    summary: "a row stores more attributes than its table has columns",
    explain: "\
The header of each row says how many attributes it stores. It may be fewer than the table has columns \
(those added later are filled in from the catalog), never more, dropped columns counted. This row says \
more. Rows of a transaction that rolled back are left out, as they may have been written under a column \
that never came to be.

The server reads only the columns it knows and ignores the number, so there is no message of its own. But \
where the row has nulls the number also decides how long the bitmap is and where the values begin, and \
`amcheck` says `number of attributes … exceeds maximum expected for table`.

Two bytes of the header were overwritten, or this page belongs to another table with more columns. If the \
bitmap is right otherwise, the values can be read.

Copy the cluster first. Take the page from a backup or a standby whose copy is sound; if the whole page \
is foreign, look for its twin in other relations.",
};

/// `MaxHeapAttributeNumber`: columns of the widest table.
const COLUMNS_MAX: usize = 1600;

/// See [`TOO_MANY_ATTRIBUTES`].
pub struct TooManyAttributes;

impl PageCheck for TooManyAttributes {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&TOO_MANY_ATTRIBUTES] }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let columns = cx.fork.columns.map(<[_]>::len);
        let most = columns.unwrap_or(COLUMNS_MAX);
        for stored in tuples(page) {
            let count = usize::from(stored.tuple.attribute_count());
            if count <= most || !is_impossible(stored, count, cx) {
                continue;
            }
            let message = match columns {
                Some(columns) => format!("{count} attributes in a relation of {columns} columns"),
                None => format!("{count} attributes, and no table has more than {COLUMNS_MAX}"),
            };
            let draft = stored.draft(&TOO_MANY_ATTRIBUTES, message, INFOMASK2);
            out.add(draft.fact("attributes", count));
        }
    }
}

fn is_impossible(stored: StoredTuple<'_>, count: usize, cx: &PageCx<'_>) -> bool {
    count > COLUMNS_MAX || columns_apply(stored.tuple, cx.fork)
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};
    use pgclinic_format::heap_tuple::HEAP_XMIN_INVALID;

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn fewer_are_legal_and_more_are_not() {
        let aborted = TupleBuilder::new(3).infomask(HEAP_XMIN_INVALID);
        let page = PageBuilder::new(8192, &[])
            .item(&TupleBuilder::new(1).finish())
            .item(&TupleBuilder::new(2).finish())
            .item(&TupleBuilder::new(3).finish())
            .item(&aborted.finish())
            .item(&TupleBuilder::new(2047).finish())
            .finish(0);
        let told = Trial::with_columns(&[(4, 4), (4, 4)]).told(&TooManyAttributes, &page);
        let expected = [
            "3 too-many-attributes: 3 attributes in a relation of 2 columns",
            "5 too-many-attributes: 2047 attributes in a relation of 2 columns",
        ];
        assert_eq!(told, expected);
        let expected =
            "5 too-many-attributes: 2047 attributes, and no table has more than 1600".to_owned();
        assert_eq!(Trial::table().told(&TooManyAttributes, &page), [expected]);
    }
}
