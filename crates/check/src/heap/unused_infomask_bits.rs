//! Flag bits of a tuple that no server sets.

use pgclinic_format::Page;
use pgclinic_format::heap_tuple::{HEAP_HASOID_OLD, INFOMASK2_UNUSED};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::Findings;
use crate::heap::tuples::{INFOMASK, INFOMASK2, tuples};

/// The rule.
pub static UNUSED_INFOMASK_BITS: Rule =
    Rule::from_page(include_str!("../../rules/unused-infomask-bits.md"));

/// See [`UNUSED_INFOMASK_BITS`].
pub struct UnusedInfomaskBits;

impl PageCheck for UnusedInfomaskBits {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&UNUSED_INFOMASK_BITS] }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        for stored in tuples(page) {
            let (mask, mask2) = (stored.tuple.t_infomask(), stored.tuple.t_infomask2());
            let unused = mask2 & INFOMASK2_UNUSED;
            if unused != 0 {
                let message = format!("t_infomask2 {mask2:#06x} has unused bits {unused:#06x} set");
                let draft = stored.draft(&UNUSED_INFOMASK_BITS, message, INFOMASK2);
                out.add(draft.fact("infomask2", mask2));
            }
            if mask & HEAP_HASOID_OLD != 0 {
                let message = format!("t_infomask {mask:#06x} has HEAP_HASOID_OLD set");
                let draft = stored.draft(&UNUSED_INFOMASK_BITS, message, INFOMASK);
                out.add(draft.fact("infomask", mask));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder, put_u16};

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn bits_without_a_meaning_are_told() {
        let mut unused = TupleBuilder::new(3).finish();
        put_u16(&mut unused, 18, 0x6803);
        let page = PageBuilder::new(8192, &[])
            .item(&TupleBuilder::new(3).infomask(0xFFF7).finish())
            .item(&unused)
            .item(&TupleBuilder::new(3).infomask(0x0908).finish())
            .finish(0);
        let expected = [
            "2 unused-infomask-bits: t_infomask2 0x6803 has unused bits 0x0800 set",
            "3 unused-infomask-bits: t_infomask 0x0908 has HEAP_HASOID_OLD set",
        ];
        assert_eq!(Trial::table().told(&UnusedInfomaskBits, &page), expected);
    }
}
