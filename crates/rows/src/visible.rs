//! Which row versions a new transaction would see, exactly as the server decides it.
//!
//! Truth: `HeapTupleSatisfiesMVCC` in `src/backend/access/heap/heapam_visibility.c`, for a server on which nothing runs:
//! a transaction that is not known as committed never will be. Beside a server at work the status files are those of the end of
//! the WAL that was followed: what committed later does not count, whatever hint bits say of it since.

use pgclinic_cluster::{Cluster, LogReader, MultiXacts, XactStatus};
use pgclinic_format::heap_tuple::{
    HEAP_HOT_UPDATED, HEAP_MOVED_IN, HEAP_MOVED_OFF, HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID,
    HEAP_XMAX_IS_MULTI, HEAP_XMIN_COMMITTED, HEAP_XMIN_INVALID,
};
use pgclinic_format::types::Tid;
use pgclinic_format::{HeapTuple, MultiXactId, Xid};

/// What became of a row version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every new transaction sees it.
    Live,
    /// A committed transaction deleted or replaced it.
    Deleted,
    /// The transaction that wrote it did not commit.
    Aborted,
    /// The status of the transaction that wrote it is lost; nothing says that it was deleted.
    PerhapsLive,
    /// The status of the transaction that deleted it is lost. Nothing replaced it, so it may still count.
    PerhapsDeleted,
    /// The status of the transaction that replaced it is lost; the newer version is to be preferred.
    PerhapsReplaced,
    /// Found by its structure on a page that no longer names it.
    Carved,
}

impl Verdict {
    /// For the account and for `--rows all`.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Live => "live",
            Verdict::Deleted => "deleted",
            Verdict::Aborted => "aborted",
            Verdict::PerhapsLive => "perhaps-live",
            Verdict::PerhapsDeleted => "perhaps-deleted",
            Verdict::PerhapsReplaced => "perhaps-replaced",
            Verdict::Carved => "carved",
        }
    }

    /// It belongs to what the table holds, as far as can be known.
    pub fn counts(self) -> bool {
        match self {
            Verdict::Live | Verdict::PerhapsLive | Verdict::PerhapsDeleted | Verdict::Carved => {
                true
            }
            Verdict::Deleted | Verdict::Aborted | Verdict::PerhapsReplaced => false,
        }
    }
}

/// What hint bits are worth beside the status files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hints {
    /// The server goes by them.
    Count,
    /// They may be of a later moment than the status files.
    MayBeLater,
}

/// Decides for one thread.
pub struct Judge<'a> {
    log: LogReader<'a>,
    multixacts: &'a MultiXacts,
    hints: Hints,
}

impl<'a> Judge<'a> {
    /// By the status files of a cluster.
    pub fn new(cluster: &'a Cluster) -> Self {
        Judge {
            log: cluster.transactions.reader(),
            multixacts: &cluster.multixacts,
            hints: match cluster.is_running() && cluster.replayed_to().is_some() {
                true => Hints::MayBeLater,
                false => Hints::Count,
            },
        }
    }

    /// On a page that says so all rows are seen without a look at their transactions, as the server does; where that may have been
    /// written later, each row tells.
    pub(crate) fn trusts_all_visible(&self) -> bool {
        self.hints == Hints::Count
    }

    /// The verdict on one version.
    #[inline]
    pub fn verdict(&self, tuple: HeapTuple<'_>, place: Tid) -> Verdict {
        let inserted = match self.inserted(tuple) {
            Some(false) => return Verdict::Aborted,
            inserted => inserted,
        };
        match (inserted, self.deleted(tuple)) {
            (_, Some(true)) => Verdict::Deleted,
            (Some(_), Some(false)) => Verdict::Live,
            (None, Some(false)) => Verdict::PerhapsLive,
            (_, None) if was_replaced(tuple, place) => Verdict::PerhapsReplaced,
            (_, None) => Verdict::PerhapsDeleted,
        }
    }

    /// Where hint bits and the status files say different things of a row; the server goes by the hint bits.
    #[inline]
    pub fn contradiction(&self, tuple: HeapTuple<'_>) -> Option<&'static str> {
        if tuple.has(HEAP_XMIN_COMMITTED) && !tuple.xmin_is_frozen() {
            if self.denies(tuple.t_xmin()) {
                return Some(
                    "its hint bits say that xmin committed, and pg_xact says that it did not",
                );
            }
        } else if tuple.has(HEAP_XMIN_INVALID)
            && !tuple.xmin_is_frozen()
            && tuple.t_xmin().is_normal()
            && self.committed(tuple.t_xmin()) == Some(true)
        {
            return Some(
                "its hint bits say that xmin was rolled back, and pg_xact says that it committed",
            );
        }
        if tuple.t_xmax() == Xid::INVALID {
            return None;
        }
        if tuple.has(HEAP_XMAX_IS_MULTI) {
            let both = tuple.has(HEAP_XMAX_COMMITTED);
            return both
                .then_some("xmax is a multixact and marked as committed, which no server writes");
        }
        if tuple.xmax_is_locked_only() {
            return None;
        }
        if tuple.has(HEAP_XMAX_COMMITTED) && self.denies(tuple.t_xmax()) {
            return Some("its hint bits say that xmax committed, and pg_xact says that it did not");
        }
        if tuple.has(HEAP_XMAX_INVALID) && self.committed(tuple.t_xmax()) == Some(true) {
            return Some(
                "its hint bits say that xmax counts for nothing, and pg_xact says that it committed",
            );
        }
        None
    }

    /// The status files say that the transaction did not commit, though a hint says that it did.
    fn denies(&self, xid: Xid) -> bool {
        match self.hints {
            Hints::Count => self.committed(xid) == Some(false),
            Hints::MayBeLater => self.log.status(xid) == Some(XactStatus::Aborted),
        }
    }

    /// A hint says that the transaction committed: whether it had.
    fn had_committed(&self, xid: Xid) -> bool {
        match self.hints {
            Hints::Count => !self.log.is_future(xid),
            Hints::MayBeLater => {
                let status = self.log.status(xid);
                status.is_none_or(|status| {
                    matches!(status, XactStatus::Committed | XactStatus::Aborted)
                })
            }
        }
    }

    fn inserted(&self, tuple: HeapTuple<'_>) -> Option<bool> {
        if tuple.xmin_is_frozen() {
            return Some(true);
        }
        if tuple.has(HEAP_XMIN_COMMITTED) {
            return Some(self.had_committed(tuple.t_xmin()));
        }
        if tuple.has(HEAP_XMIN_INVALID) {
            return Some(false);
        }
        if tuple.has(HEAP_MOVED_OFF) {
            return self.committed(Xid(tuple.t_field3())).map(|moved| !moved);
        }
        if tuple.has(HEAP_MOVED_IN) {
            return self.committed(Xid(tuple.t_field3()));
        }
        self.committed(tuple.t_xmin())
    }

    fn deleted(&self, tuple: HeapTuple<'_>) -> Option<bool> {
        if tuple.has(HEAP_XMAX_INVALID) || tuple.xmax_is_locked_only() {
            return Some(false);
        }
        if tuple.has(HEAP_XMAX_IS_MULTI) {
            let multi = MultiXactId(tuple.t_xmax().0);
            if self.hints == Hints::MayBeLater && self.multixacts.is_future(multi) {
                return Some(false);
            }
            return match self.multixacts.updater(multi)? {
                Some(xid) => self.committed(xid),
                None => Some(false),
            };
        }
        if tuple.has(HEAP_XMAX_COMMITTED) {
            return Some(self.had_committed(tuple.t_xmax()));
        }
        self.committed(tuple.t_xmax())
    }

    fn committed(&self, xid: Xid) -> Option<bool> {
        self.log
            .status(xid)
            .map(|status| status == XactStatus::Committed)
    }
}

/// The row says where its newer version is; one that was only deleted points to itself.
fn was_replaced(tuple: HeapTuple<'_>, place: Tid) -> bool {
    tuple.t_infomask2() & HEAP_HOT_UPDATED != 0 || tuple.t_ctid() != place
}
