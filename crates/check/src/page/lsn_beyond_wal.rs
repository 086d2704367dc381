//! A page that claims to have been changed by WAL that was never written.

use pgclinic_cluster::Persistence;
use pgclinic_format::Page;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::{PageCheck, PageClass, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub static LSN_BEYOND_WAL: Rule = Rule::from_page(include_str!("../../rules/lsn-beyond-wal.md"));

/// See [`LSN_BEYOND_WAL`].
pub struct LsnBeyondWal;

impl PageCheck for LsnBeyondWal {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&LSN_BEYOND_WAL] }
    }

    fn wants(&self) -> Wants {
        Wants {
            level: Level::Pages,
            pages: PageClass::Any,
            screened: false,
        }
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let Some(wal_end) = cx.fork.wal_end() else {
            return;
        };
        let lsn = page.pd_lsn();
        if lsn <= wal_end || !is_logged(cx) {
            return;
        }
        let message = format!("LSN {lsn} is beyond the end of the WAL at {wal_end}");
        let draft = Draft::new(&LSN_BEYOND_WAL, message).bytes(0, 8);
        out.add(
            draft
                .fact("lsn", lsn.to_string())
                .fact("wal_end", wal_end.to_string()),
        );
    }
}

/// Pages of unlogged and temporary relations count their changes in other ways. And who builds an
/// index or fills a table anew writes its pages past the buffers, before their WAL: after a crash
/// they are ahead of it, in a file that no committed row of `pg_class` names.
fn is_logged(cx: &PageCx<'_>) -> bool {
    if cx.fork.files.temporary.is_some() {
        return false;
    }
    match cx.fork.relation {
        Some(relation) => {
            relation.persistence == Persistence::Permanent
                && !(relation.being_built && cx.fork.replay_is_due())
        }
        None => !cx.fork.replay_is_due(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork_trial::ForkTrial;
    use pgclinic_format::Lsn;
    use pgclinic_format::build::PageBuilder;
    use pgclinic_format::index_page::AccessMethod;

    #[test]
    fn the_end_of_the_wal_is_the_last_lsn() {
        let page = |lsn| PageBuilder::new(8192, &[]).lsn(Lsn(lsn)).finish(0);
        let said =
            |lsn| ForkTrial::new(AccessMethod::Heap, &[page(lsn)]).messages(&LsnBeyondWal, 0);
        let end = ForkTrial::WAL_END.0;
        assert!(said(0).is_empty());
        assert!(said(end).is_empty());
        assert_eq!(
            said(end + 1),
            ["LSN 1/1 is beyond the end of the WAL at 1/0"]
        );
    }

    #[test]
    fn nothing_is_known_of_a_cluster_that_needs_recovery() {
        let page = PageBuilder::new(8192, &[]).lsn(Lsn(u64::MAX)).finish(0);
        let trial = ForkTrial::new(AccessMethod::Heap, &[page]).without_limits();
        assert!(trial.messages(&LsnBeyondWal, 0).is_empty());
    }
}
