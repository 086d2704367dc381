//! `pd_prune_xid` names a transaction that has not begun.

use pgclinic_format::Page;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::{PageCheck, PageClass, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub static PRUNE_XID_IN_THE_FUTURE: Rule =
    Rule::from_page(include_str!("../../rules/prune-xid-in-the-future.md"));

/// See [`PRUNE_XID_IN_THE_FUTURE`].
pub struct PruneXidInTheFuture;

impl PageCheck for PruneXidInTheFuture {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&PRUNE_XID_IN_THE_FUTURE] }
    }

    fn wants(&self) -> Wants {
        Wants {
            level: Level::Structure,
            pages: PageClass::Heap,
            screened: false,
        }
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let Some(limits) = cx.fork.reach() else {
            return;
        };
        let prune = page.pd_prune_xid();
        if page.is_new() || !prune.is_normal() || prune.precedes(limits.next_xid) {
            return;
        }
        let message = format!(
            "pd_prune_xid {prune} is not older than the next transaction {}",
            limits.next_xid
        );
        let draft = Draft::new(&PRUNE_XID_IN_THE_FUTURE, message).bytes(20, 24);
        out.add(
            draft
                .fact("prune_xid", prune.0)
                .fact("next_xid", limits.next_xid.0),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork_trial::ForkTrial;
    use pgclinic_format::build::{PageBuilder, put_u32};
    use pgclinic_format::index_page::AccessMethod;

    #[test]
    fn only_transactions_that_have_begun_leave_something_to_prune() {
        let said = |xid| {
            let mut page = PageBuilder::new(8192, &[]).finish(0);
            put_u32(&mut page, 20, xid);
            ForkTrial::new(AccessMethod::Heap, &[page]).messages(&PruneXidInTheFuture, 0)
        };
        let next = ForkTrial::NEXT_XID.0;
        assert!(said(0).is_empty());
        assert!(said(next - 1).is_empty());
        assert_eq!(
            said(next),
            ["pd_prune_xid 1000 is not older than the next transaction 1000"]
        );
    }
}
