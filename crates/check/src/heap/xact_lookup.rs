//! What became of the transactions that a row names, asked of the commit log within its bounds.

use pgclinic_cluster::status::limits_of_checkpoint;
use pgclinic_cluster::{
    Comparison, LogReader, Member, MemberStatus, MultiXacts, TransactionLog, XactStatus,
};
use pgclinic_format::heap_tuple::{HEAP_MOVED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI};
use pgclinic_format::{HeapTuple, Lsn, MultiXactId, Xid};

use crate::check::{ForkCx, Limits};

/// Commit log and multixacts of a cluster that was shut down in good order. In one that was not,
/// the log on disk lags behind the rows, and they are compared as far as the last checkpoint goes.
pub(crate) struct XactLookup<'a> {
    log: LogReader<'a>,
    transactions: &'a TransactionLog,
    multixacts: &'a MultiXacts,
    limits: Limits,
}

/// Who changed a row, by its `xmax`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Updater {
    /// Nobody: it is empty or only locked the row.
    Nobody,
    /// This transaction, which may have been rolled back.
    Xid(Xid),
    /// A member of a multixact that cannot be read.
    Unknown,
}

impl<'a> XactLookup<'a> {
    /// Nothing where the log is not to be compared with rows.
    pub(crate) fn of(fork: &ForkCx<'a>) -> Option<Self> {
        let (cluster, limits) = (fork.cluster?, fork.limits?);
        Some(XactLookup {
            log: cluster.transactions.reader(),
            transactions: &cluster.transactions,
            multixacts: &cluster.multixacts,
            limits,
        })
    }

    /// In a cluster that crashed: of transactions that had ended when the last checkpoint began,
    /// which wrote what became of them. Multixacts have no bounds there.
    pub(crate) fn of_checkpoint(fork: &ForkCx<'a>) -> Option<Self> {
        let cluster = fork.cluster.filter(|_| fork.limits.is_none())?;
        if !cluster.may_compare(Comparison::ForksThatRecoveryKeeps) {
            return None;
        }
        let limits = limits_of_checkpoint(cluster)?;
        let multi = MultiXactId(limits.multis.next);
        Some(XactLookup {
            log: cluster.transactions.reader(),
            transactions: &cluster.transactions,
            multixacts: &cluster.multixacts,
            limits: Limits {
                next_xid: Xid(limits.xids.next),
                oldest_xid: Xid(limits.xids.first?),
                next_multi: multi,
                oldest_multi: multi,
                wal_end: Lsn(0),
            },
        })
    }

    /// What the log says; nothing beyond its bounds, for reserved numbers, and while a
    /// subtransaction waits for its parent.
    #[inline]
    pub(crate) fn status(&self, xid: Xid) -> Option<XactStatus> {
        let bounded = xid.is_normal()
            && xid.precedes(self.limits.next_xid)
            && !xid.precedes(self.limits.oldest_xid);
        bounded
            .then(|| self.log.status(xid))?
            .filter(|status| *status != XactStatus::SubCommitted)
    }

    /// Still open, and will be after the next start.
    pub(crate) fn is_prepared(&self, xid: Xid) -> bool {
        self.transactions.is_prepared(xid)
    }

    /// What became of the insertion of a row; hint bits do not count, freezing does.
    pub(crate) fn insertion(&self, tuple: HeapTuple<'_>) -> Option<XactStatus> {
        if tuple.xmin_is_frozen() {
            return Some(XactStatus::Committed);
        }
        (tuple.t_infomask() & HEAP_MOVED == 0).then(|| self.status(tuple.t_xmin()))?
    }

    /// The members of a multixact within the bounds of the cluster.
    pub(crate) fn members(&self, multi: MultiXactId) -> Option<Vec<Member>> {
        let bounded =
            multi.precedes(self.limits.next_multi) && !multi.precedes(self.limits.oldest_multi);
        bounded.then(|| self.multixacts.members(multi))?
    }
}

/// Who changed the row; without `fates` a multixact tells nothing.
pub(crate) fn updater(tuple: HeapTuple<'_>, fates: Option<&XactLookup<'_>>) -> Updater {
    let xmax = tuple.t_xmax();
    if tuple.xmax_is_locked_only() || xmax == Xid::INVALID {
        return Updater::Nobody;
    }
    if tuple.t_infomask() & HEAP_XMAX_IS_MULTI == 0 {
        return Updater::Xid(xmax);
    }
    if tuple.has(HEAP_XMAX_INVALID) {
        return Updater::Unknown;
    }
    let members = fates.and_then(|fates| fates.members(MultiXactId(xmax.0)));
    let change = |member: &Member| member.status != MemberStatus::Lock;
    match members {
        Some(members) => members
            .iter()
            .find(|member| change(member))
            .map_or(Updater::Nobody, |member| Updater::Xid(member.xid)),
        None => Updater::Unknown,
    }
}
