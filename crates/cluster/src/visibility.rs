//! Which row versions count: the one decider, by hint bits, `pg_xact`, `pg_multixact` and the next
//! transaction.
//!
//! Truth: `HeapTupleSatisfiesMVCC` in `src/backend/access/heap/heapam_visibility.c`, for a snapshot
//! taken now on a server on which nothing runs: a transaction that is not known as committed never
//! will be. Subtransactions need no look at `pg_subtrans`: the commit of their parent writes their
//! status too, so that one which is marked as sub-committed has not committed. Beside a running
//! server the status files are those of the end of the WAL that was followed: what committed later
//! does not count, whatever hint bits say of it since. Why each case is decided as it is:
//! `docs/adr/2026-11-23-visibility.md`.

use pgclinic_format::heap_tuple::{
    HEAP_HASEXTERNAL, HEAP_HASNULL, HEAP_HASVARWIDTH, HEAP_MOVED, HEAP_MOVED_IN, HEAP_MOVED_OFF,
    HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI, HEAP_XMIN_COMMITTED,
    HEAP_XMIN_FROZEN, HEAP_XMIN_INVALID,
};
use pgclinic_format::{HeapTuple, MultiXactId, Xid};

use crate::cluster::Cluster;
use crate::multixact::MultiXacts;
use crate::transaction_log::{LogReader, XactStatus, reserved_status};

/// Any of them says what became of the insertion.
const XMIN_HINTS: u16 = HEAP_XMIN_COMMITTED | HEAP_XMIN_INVALID;

/// What a row version is to a transaction that begins now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowState {
    /// Every new transaction sees it.
    Visible,
    /// No new transaction sees it.
    Dead(Death),
    /// The status of a transaction is lost, and with it the answer.
    Undecided(Doubt),
}

/// Why no new transaction sees a row version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Death {
    /// Its insertion was rolled back or withdrawn, or the row was moved away by a VACUUM FULL
    /// before 9.0.
    Aborted,
    /// Its insertion has not ended: it is prepared, it runs, or a crash cut it off.
    InProgress,
    /// It says that its insertion committed, under a number that no transaction has been given.
    Future,
    /// A committed transaction deleted or replaced it.
    Deleted,
}

/// What the status of a transaction that is lost would tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doubt {
    /// Whether the row was inserted; nothing says that it was deleted.
    Insertion,
    /// Whether the row was deleted or replaced.
    Deletion,
}

impl RowState {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            RowState::Visible => "live",
            RowState::Dead(Death::Deleted) => "deleted or updated",
            RowState::Dead(Death::Future) => "inserted by a transaction that has not begun",
            RowState::Dead(Death::Aborted | Death::InProgress) => "insertion did not commit",
            RowState::Undecided(_) => "transaction status unknown",
        }
    }

    /// What the row says of something else, a relation or a chunk of a value, may be true: it is
    /// not known to be void. A number from the future is damage of one header, or of the control
    /// file; it makes no name wrong.
    #[inline]
    pub fn may_count(self) -> bool {
        match self {
            RowState::Visible | RowState::Undecided(_) | RowState::Dead(Death::Future) => true,
            RowState::Dead(Death::Aborted | Death::InProgress | Death::Deleted) => false,
        }
    }
}

/// What a row's header says of its transactions. Rows that one statement wrote say the same, so
/// that most are judged as the row before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    xmin: Xid,
    xmax: Xid,
    flags: u16,
    /// The transaction that moved the row, which counts for moved ones alone.
    moved_by: Option<u32>,
}

impl Stamp {
    /// Of one row version.
    #[inline]
    pub fn of(tuple: HeapTuple<'_>) -> Self {
        const OF_VALUES: u16 = HEAP_HASNULL | HEAP_HASVARWIDTH | HEAP_HASEXTERNAL;
        Stamp {
            xmin: tuple.t_xmin(),
            xmax: tuple.t_xmax(),
            flags: tuple.t_infomask() & !OF_VALUES,
            moved_by: (tuple.t_infomask() & HEAP_MOVED != 0).then(|| tuple.t_field3()),
        }
    }
}

/// What hint bits are worth beside the status files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hints {
    /// The server goes by them.
    Count,
    /// They may be of a later moment than the status files.
    MayBeLater,
}

/// What an insertion came to.
enum Insertion {
    Committed,
    Dead(Death),
    Unknown,
}

/// Decides for one thread.
pub struct Visibility<'a> {
    /// Nothing where only hint bits tell.
    files: Option<(LogReader<'a>, &'a MultiXacts)>,
    hints: Hints,
}

impl<'a> Visibility<'a> {
    /// By the status files of a cluster.
    pub fn new(cluster: &'a Cluster) -> Self {
        Visibility {
            files: Some((cluster.transactions.reader(), &cluster.multixacts)),
            hints: if cluster.is_running() && cluster.replayed_to().is_some() {
                Hints::MayBeLater
            } else {
                Hints::Count
            },
        }
    }

    /// By what stands in the row alone.
    pub fn by_hint_bits() -> Self {
        Visibility {
            files: None,
            hints: Hints::Count,
        }
    }

    /// On a page that says so all rows are seen without a look at their transactions, as the server
    /// does; where that may have been written later, each row tells.
    #[inline]
    pub fn trusts_all_visible(&self) -> bool {
        self.hints == Hints::Count
    }

    /// The answer for one version.
    #[inline]
    pub fn state(&self, tuple: HeapTuple<'_>) -> RowState {
        self.state_of(self.insertion(tuple), tuple)
    }

    /// The same as if no VACUUM FULL had moved the row: what counts where that mark is damage.
    pub fn state_unmoved(&self, tuple: HeapTuple<'_>) -> RowState {
        self.state_of(self.inserted_by(tuple.t_xmin()), tuple)
    }

    #[inline]
    fn state_of(&self, insertion: Insertion, tuple: HeapTuple<'_>) -> RowState {
        let inserted = match insertion {
            Insertion::Dead(why) => return RowState::Dead(why),
            Insertion::Committed => true,
            Insertion::Unknown => false,
        };
        match (inserted, self.deleted(tuple)) {
            // Whatever became of the insertion, nobody sees the row.
            (_, Some(true)) => RowState::Dead(Death::Deleted),
            (true, Some(false)) => RowState::Visible,
            (false, Some(false)) => RowState::Undecided(Doubt::Insertion),
            (_, None) => RowState::Undecided(Doubt::Deletion),
        }
    }

    /// Every new transaction sees it.
    #[inline]
    pub fn is_visible(&self, tuple: HeapTuple<'_>) -> bool {
        self.state(tuple) == RowState::Visible
    }

    /// The transaction that wrote the row committed, whatever became of the row since, so that the
    /// columns of today describe it; nothing where its status is lost.
    pub fn was_inserted(&self, tuple: HeapTuple<'_>) -> Option<bool> {
        match self.insertion(tuple) {
            Insertion::Committed | Insertion::Dead(Death::Future) => Some(true),
            Insertion::Dead(_) => Some(false),
            Insertion::Unknown => None,
        }
    }

    #[inline]
    fn insertion(&self, tuple: HeapTuple<'_>) -> Insertion {
        match tuple.t_infomask() & HEAP_XMIN_FROZEN {
            HEAP_XMIN_FROZEN => Insertion::Committed,
            HEAP_XMIN_COMMITTED if self.had_committed(tuple.t_xmin()) => Insertion::Committed,
            HEAP_XMIN_COMMITTED => Insertion::Dead(match self.hints {
                Hints::Count => Death::Future,
                Hints::MayBeLater => Death::InProgress,
            }),
            HEAP_XMIN_INVALID => Insertion::Dead(Death::Aborted),
            _ => self.insertion_without_hint(tuple),
        }
    }

    fn insertion_without_hint(&self, tuple: HeapTuple<'_>) -> Insertion {
        let moved_by = Xid(tuple.t_field3());
        if tuple.has(HEAP_MOVED_OFF) || tuple.has(HEAP_MOVED_IN) {
            // A move that did not commit leaves the old row, one that did the new row.
            return match self.committed(moved_by) {
                None => Insertion::Unknown,
                Some(moved) if moved != tuple.has(HEAP_MOVED_OFF) => Insertion::Committed,
                Some(_) => Insertion::Dead(Death::Aborted),
            };
        }
        self.inserted_by(tuple.t_xmin())
    }

    fn inserted_by(&self, xmin: Xid) -> Insertion {
        match self.status(xmin) {
            None => Insertion::Unknown,
            Some(XactStatus::Committed) => Insertion::Committed,
            Some(XactStatus::Aborted) => Insertion::Dead(Death::Aborted),
            Some(XactStatus::InProgress | XactStatus::SubCommitted) => {
                Insertion::Dead(Death::InProgress)
            }
        }
    }

    #[inline]
    fn deleted(&self, tuple: HeapTuple<'_>) -> Option<bool> {
        if tuple.has(HEAP_XMAX_INVALID) || tuple.xmax_is_locked_only() {
            return Some(false);
        }
        if tuple.has(HEAP_XMAX_IS_MULTI) {
            return self.deleted_by_member(MultiXactId(tuple.t_xmax().0));
        }
        if tuple.has(HEAP_XMAX_COMMITTED) {
            return Some(self.had_committed(tuple.t_xmax()));
        }
        self.committed(tuple.t_xmax())
    }

    fn deleted_by_member(&self, multi: MultiXactId) -> Option<bool> {
        if multi.0 == 0 {
            return Some(false);
        }
        let (_, multixacts) = self.files.as_ref()?;
        if self.hints == Hints::MayBeLater && multixacts.is_future(multi) {
            return Some(false);
        }
        // A multixact of lockers alone is marked as such in the row: of one without a member that
        // changed the row, the members are lost.
        let updater = multixacts.updater(multi)?;
        updater.and_then(|xid| self.committed(xid))
    }

    /// Where hint bits and the status files say different things of a row; the server goes by the
    /// hint bits.
    #[inline]
    pub fn contradiction(&self, tuple: HeapTuple<'_>) -> Option<&'static str> {
        if self.status_denies_insertion(tuple) {
            return Some("its hint bits say that xmin committed, and pg_xact says that it did not");
        }
        if !tuple.has(HEAP_XMIN_COMMITTED) && !tuple.xmin_is_frozen() {
            if tuple.has(HEAP_XMIN_INVALID)
                && tuple.t_xmin().is_normal()
                && self.committed(tuple.t_xmin()) == Some(true)
            {
                return Some(
                    "its hint bits say that xmin was rolled back, and pg_xact says that it committed",
                );
            }
            if self.is_of_nobody(tuple.t_xmin()) {
                return Some("no transaction has been given the number in xmin yet");
            }
        }
        if tuple.t_xmax() == Xid::INVALID {
            let is_void = tuple.has(HEAP_XMAX_COMMITTED) && !tuple.has(HEAP_XMAX_INVALID);
            return is_void.then_some("it is marked as deleted, and by no transaction: xmax is 0");
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

    /// A hint bit says that the insertion committed, and `pg_xact` that it did not.
    pub fn status_denies_insertion(&self, tuple: HeapTuple<'_>) -> bool {
        tuple.has(HEAP_XMIN_COMMITTED) && !tuple.xmin_is_frozen() && self.denies(tuple.t_xmin())
    }

    /// The row says that a VACUUM FULL of before 9.0 moved it, and no hint makes that void, and no
    /// transaction can have been that VACUUM: none of before `relfrozenxid` left a mark, and one
    /// that never ended has no place in a cluster of today. Why not.
    #[inline]
    pub fn impossible_move(&self, tuple: HeapTuple<'_>, relfrozenxid: Xid) -> Option<&'static str> {
        let mask = tuple.t_infomask();
        let is_asked =
            mask & HEAP_MOVED != 0 && mask & XMIN_HINTS == 0 && tuple.t_xmin().is_normal();
        is_asked.then_some(())?;
        let mover = Xid(tuple.t_field3());
        let is_too_old = relfrozenxid.is_normal() && mover.precedes(relfrozenxid);
        let is_none = !mover.is_normal()
            || is_too_old
            || self.is_of_nobody(mover)
            || self.status(mover) == Some(XactStatus::InProgress);
        is_none.then_some(
            "it is marked as moved by a VACUUM FULL of before 9.0, under a number that no such transaction can have: it was read as if it were not",
        )
    }

    /// The row names a multixact, and the member that changed it is from before `relfrozenxid`: no
    /// such transaction left a mark, so that another one may have changed the row. Why not. Beside
    /// a server the page may be older than the catalog that names the limit.
    #[inline]
    pub fn impossible_updater(
        &self,
        tuple: HeapTuple<'_>,
        relfrozenxid: Xid,
    ) -> Option<&'static str> {
        let is_asked = tuple.has(HEAP_XMAX_IS_MULTI)
            && !tuple.has(HEAP_XMAX_INVALID)
            && !tuple.xmax_is_locked_only()
            && !tuple.xmax_is_from_before_93();
        (is_asked && relfrozenxid.is_normal() && self.hints == Hints::Count).then_some(())?;
        let (_, multixacts) = self.files.as_ref()?;
        let updater = multixacts.updater(MultiXactId(tuple.t_xmax().0))??;
        updater.precedes(relfrozenxid).then_some(
            "its multixact names a transaction from before relfrozenxid as the one that changed it, and none of those left a mark",
        )
    }

    /// No transaction has been given the number, as far as all that was written tells.
    fn is_of_nobody(&self, xid: Xid) -> bool {
        let files = self.files.as_ref();
        self.hints == Hints::Count && files.is_some_and(|(log, _)| log.is_future(xid))
    }

    /// The status files say that the transaction did not commit, though a hint says that it did.
    fn denies(&self, xid: Xid) -> bool {
        match self.hints {
            Hints::Count => self.committed(xid) == Some(false),
            Hints::MayBeLater => self.status(xid) == Some(XactStatus::Aborted),
        }
    }

    /// A hint says that the transaction committed: whether it had. What a snapshot of now does not
    /// hold has not, whatever its row says.
    #[inline]
    fn had_committed(&self, xid: Xid) -> bool {
        match self.hints {
            Hints::Count => !self.is_of_nobody(xid),
            Hints::MayBeLater => {
                let status = self.status(xid);
                status.is_none_or(|status| {
                    matches!(status, XactStatus::Committed | XactStatus::Aborted)
                })
            }
        }
    }

    fn committed(&self, xid: Xid) -> Option<bool> {
        let status = self.status(xid)?;
        Some(status == XactStatus::Committed)
    }

    #[inline]
    fn status(&self, xid: Xid) -> Option<XactStatus> {
        match &self.files {
            Some((log, _)) => log.status(xid),
            None => reserved_status(xid),
        }
    }
}

#[cfg(test)]
mod tests;
