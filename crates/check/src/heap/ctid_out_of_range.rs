//! `t_ctid` names a line pointer that no heap page can have.

use pgclinic_format::heap_tuple::{
    HEADER_BYTES as TUPLE_HEADER_BYTES, HEAP_MOVED, MOVED_PARTITIONS_OFFSET, SPEC_TOKEN_OFFSET,
};
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::{LinePointer, Page};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::Findings;
use crate::heap::tuples::{CTID, tuples};

/// The rule.
pub static CTID_OUT_OF_RANGE: Rule =
    Rule::from_page(include_str!("../../rules/ctid-out-of-range.md"));

/// See [`CTID_OUT_OF_RANGE`].
pub struct CtidOutOfRange;

impl PageCheck for CtidOutOfRange {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&CTID_OUT_OF_RANGE] }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        let most = line_pointers_max(page.len());
        for stored in tuples(page) {
            let ctid = stored.tuple.t_ctid();
            let is_plain = (1..=most).contains(&usize::from(ctid.offset));
            let is_special = matches!(ctid.offset, MOVED_PARTITIONS_OFFSET | SPEC_TOKEN_OFFSET);
            if is_plain || is_special || stored.tuple.t_infomask() & HEAP_MOVED != 0 {
                continue;
            }
            let message = format!(
                "t_ctid {ctid} names line pointer {}, and a heap page has 1 to {most}",
                ctid.offset
            );
            let draft = stored.draft(&CTID_OUT_OF_RANGE, message, CTID);
            out.add(draft.fact("ctid_offset", ctid.offset));
        }
    }
}

/// `MaxHeapTuplesPerPage`: a heap page never has more line pointers, used or not.
fn line_pointers_max(page_bytes: usize) -> usize {
    let tuple_bytes = TUPLE_HEADER_BYTES.next_multiple_of(8) + LinePointer::SIZE;
    page_bytes.saturating_sub(HEADER_BYTES) / tuple_bytes
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn special_numbers_and_other_pages_are_legal() {
        let tuple = |offset| TupleBuilder::new(1).ctid(9, offset).finish();
        let page = PageBuilder::new(8192, &[])
            .item(&tuple(291))
            .item(&tuple(0xFFFD))
            .item(&tuple(0xFFFE))
            .item(&tuple(0))
            .item(&tuple(292))
            .finish(0);
        let expected = [
            "4 ctid-out-of-range: t_ctid (9,0) names line pointer 0, and a heap page has 1 to 291",
            "5 ctid-out-of-range: t_ctid (9,292) names line pointer 292, and a heap page has 1 to 291",
        ];
        assert_eq!(Trial::table().told(&CtidOutOfRange, &page), expected);
    }
}
