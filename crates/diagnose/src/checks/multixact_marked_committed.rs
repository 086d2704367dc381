//! A multixact carries the hint of a single transaction.

use pgclinic_format::Page;
use pgclinic_format::heap_tuple::{HEAP_XMAX_COMMITTED, HEAP_XMAX_IS_MULTI};
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::Findings;
use crate::tuples::{INFOMASK, tuples};

/// The rule.
pub static MULTIXACT_MARKED_COMMITTED: Rule = Rule {
    name: "multixact-marked-committed",
    severity: Severity::Damage,
    summary: "xmax is a multixact and marked as committed",
    explain: "\
`HEAP_XMAX_IS_MULTI` says that `xmax` names a group of transactions that share the row; \
`HEAP_XMAX_COMMITTED` says that the one transaction in `xmax` committed its delete or update. A group does \
not commit, so no server sets both.

Which of the two the server believes depends on the code path. A query looks the group up in \
`pg_multixact` and, since the number in `xmax` is most likely no multixact at all, may stop with \
`MultiXactId … has not been created yet -- apparent wraparound`, or take a deleted row for live. VACUUM \
decides in its own way, so answers can change from one day to the next. `amcheck` says `multixact should \
not be marked committed`.

A bit of `t_infomask` flipped, or the header was overwritten.

Copy the cluster first, then take the page from a backup or a standby whose copy is sound. There you also \
see whether the row was deleted.",
};

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
