//! A multixact carries the hint of a single transaction.

use pgclinic_format::Page;
use pgclinic_format::heap_tuple::{HEAP_XMAX_COMMITTED, HEAP_XMAX_IS_MULTI};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::Findings;
use crate::heap::tuples::{INFOMASK, tuples};

/// The rule.
pub static MULTIXACT_MARKED_COMMITTED: Rule =
    Rule::from_page(include_str!("../../rules/multixact-marked-committed.md"));

/// See [`MULTIXACT_MARKED_COMMITTED`].
pub struct MultixactMarkedCommitted;

impl PageCheck for MultixactMarkedCommitted {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&MULTIXACT_MARKED_COMMITTED] }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        for stored in tuples(page) {
            if !stored.tuple.has(HEAP_XMAX_IS_MULTI | HEAP_XMAX_COMMITTED) {
                continue;
            }
            let xmax = stored.tuple.t_xmax();
            let message = format!("multixact {xmax} in xmax is marked as committed");
            let draft = stored.draft(&MULTIXACT_MARKED_COMMITTED, message, INFOMASK);
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
    fn a_group_does_not_commit() {
        let tuple = |infomask| {
            TupleBuilder::new(1)
                .xids(800, 7)
                .infomask(infomask)
                .finish()
        };
        let page = PageBuilder::new(8192, &[])
            .item(&tuple(0x1100))
            .item(&tuple(0x0500))
            .item(&tuple(0x1500))
            .finish(0);
        let expected =
            "3 multixact-marked-committed: multixact 7 in xmax is marked as committed".to_owned();
        assert_eq!(
            Trial::table().told(&MultixactMarkedCommitted, &page),
            [expected]
        );
    }
}
