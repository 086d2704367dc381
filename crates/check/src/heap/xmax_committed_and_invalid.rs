//! The two hints about `xmax` contradict each other.

use pgclinic_format::Page;
use pgclinic_format::heap_tuple::{HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::Findings;
use crate::heap::tuples::{INFOMASK, tuples};

/// The rule.
pub static XMAX_COMMITTED_AND_INVALID: Rule =
    Rule::from_page(include_str!("../../rules/xmax-committed-and-invalid.md"));

/// See [`XMAX_COMMITTED_AND_INVALID`].
pub struct XmaxCommittedAndInvalid;

impl PageCheck for XmaxCommittedAndInvalid {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&XMAX_COMMITTED_AND_INVALID] }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        for stored in tuples(page) {
            if !stored.tuple.has(HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID) {
                continue;
            }
            let xmax = stored.tuple.t_xmax();
            let message = format!("xmax {xmax} is marked both as committed and as invalid");
            let draft = stored.draft(&XMAX_COMMITTED_AND_INVALID, message, INFOMASK);
            out.add(draft.fact("xmax", xmax.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn xmax_has_one_fate() {
        let tuple = |infomask| {
            TupleBuilder::new(1)
                .xids(800, 900)
                .infomask(infomask)
                .finish()
        };
        let page = PageBuilder::new(8192, &[])
            .item(&tuple(0x0500))
            .item(&tuple(0x0B00))
            .item(&tuple(0x0D00))
            .finish(0);
        let expected =
            "3 xmax-committed-and-invalid: xmax 900 is marked both as committed and as invalid"
                .to_owned();
        assert_eq!(
            Trial::table().told(&XmaxCommittedAndInvalid, &page),
            [expected]
        );
    }
}
