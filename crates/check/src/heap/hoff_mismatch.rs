//! `t_hoff` is not where the values of the row begin.

use pgclinic_format::heap_tuple::HEAP_HASNULL;
use pgclinic_format::{HeapTuple, Page};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::Findings;
use crate::heap::tuples::{HOFF, tuples};

/// The rule.
pub static HOFF_MISMATCH: Rule = Rule::from_page(include_str!("../../rules/hoff-mismatch.md"));

/// See [`HOFF_MISMATCH`].
pub struct HoffMismatch;

impl PageCheck for HoffMismatch {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&HOFF_MISMATCH] }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        for stored in tuples(page) {
            let (hoff, expected) = (stored.tuple.t_hoff(), stored.tuple.expected_hoff());
            if usize::from(hoff) == expected {
                continue;
            }
            let message = format!(
                "t_hoff {hoff} is not {expected}, as {}",
                reason(stored.tuple)
            );
            let draft = stored.draft(&HOFF_MISMATCH, message, HOFF);
            out.add(
                draft
                    .fact("hoff_bytes", hoff)
                    .fact("expected_bytes", expected),
            );
        }
    }
}

fn reason(tuple: HeapTuple<'_>) -> String {
    if tuple.has(HEAP_HASNULL) {
        let count = tuple.attribute_count();
        format!("a bitmap of nulls for {count} attributes asks for")
    } else {
        "a row without a bitmap of nulls has it".into()
    }
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn the_bitmap_decides_where_values_begin() {
        let mut plain = TupleBuilder::new(3).data(&[1; 34]).finish();
        plain[22] = 27;
        let mut nulls = TupleBuilder::new(9).nulls(&[0xFF, 0]).finish();
        nulls[22] = 24;
        let page = PageBuilder::new(8192, &[])
            .item(&TupleBuilder::new(9).nulls(&[0xFF, 0]).finish())
            .item(&plain)
            .item(&nulls)
            .finish(0);
        let expected = [
            "2 hoff-mismatch: t_hoff 27 is not 24, as a row without a bitmap of nulls has it",
            "3 hoff-mismatch: t_hoff 24 is not 32, as a bitmap of nulls for 9 attributes asks for",
        ];
        assert_eq!(Trial::table().told(&HoffMismatch, &page), expected);
    }
}
