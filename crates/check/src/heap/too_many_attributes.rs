//! A tuple stores more attributes than its relation has columns.

use pgclinic_format::Page;
use pgclinic_model::Rule;
use pgclinic_model::plural;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::Findings;
use crate::heap::tuples::{INFOMASK2, StoredTuple, columns_apply, tuples};

/// The rule.
pub static TOO_MANY_ATTRIBUTES: Rule =
    Rule::from_page(include_str!("../../rules/too-many-attributes.md"));

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
                Some(columns) => format!(
                    "{count} attributes in a relation of {columns}",
                    columns = plural(columns, "column")
                ),
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
