//! Whether a row version is live, by the commit log and with hint bits where the log is silent.
//!
//! Truth: `src/backend/access/heap/heapam_visibility.c`.

use pgclinic_format::heap_tuple::{
    HEAP_MOVED, HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI, HEAP_XMIN_COMMITTED,
    HEAP_XMIN_INVALID,
};
use pgclinic_format::{HeapTuple, MultiXactId, Xid};

use crate::multixact::MultiXacts;
use crate::transaction_log::{TransactionLog, XactStatus};

/// What became of a row version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowState {
    /// Visible to every new transaction.
    Live,
    /// Deleted or replaced by a committed transaction.
    Deleted,
    /// Its insertion did not commit.
    Aborted,
    /// Nothing tells.
    Unknown,
}

impl RowState {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            RowState::Live => "live",
            RowState::Deleted => "deleted or updated",
            RowState::Aborted => "insertion did not commit",
            RowState::Unknown => "transaction status unknown",
        }
    }
}

/// The state of a row version in a cluster on which no transaction is running.
pub fn row_state(tuple: HeapTuple<'_>, log: &TransactionLog, multixacts: &MultiXacts) -> RowState {
    match insertion(tuple, log) {
        Some(true) => {}
        Some(false) => return RowState::Aborted,
        None => return RowState::Unknown,
    }
    match deletion(tuple, log, multixacts) {
        Some(true) => RowState::Deleted,
        Some(false) => RowState::Live,
        None => RowState::Unknown,
    }
}

fn insertion(tuple: HeapTuple<'_>, log: &TransactionLog) -> Option<bool> {
    if tuple.xmin_is_frozen() || tuple.t_infomask() & HEAP_MOVED != 0 {
        return Some(true);
    }
    if tuple.has(HEAP_XMIN_COMMITTED) {
        return Some(true);
    }
    if tuple.has(HEAP_XMIN_INVALID) {
        return Some(false);
    }
    committed(tuple.t_xmin(), log)
}

fn deletion(tuple: HeapTuple<'_>, log: &TransactionLog, multixacts: &MultiXacts) -> Option<bool> {
    if tuple.has(HEAP_XMAX_INVALID) || tuple.xmax_is_locked_only() || tuple.t_xmax() == Xid::INVALID
    {
        return Some(false);
    }
    if tuple.has(HEAP_XMAX_IS_MULTI) {
        return match multixacts.updater(MultiXactId(tuple.t_xmax().0))? {
            Some(xid) => committed(xid, log),
            None => Some(false),
        };
    }
    if tuple.has(HEAP_XMAX_COMMITTED) {
        return Some(true);
    }
    committed(tuple.t_xmax(), log)
}

fn committed(xid: Xid, log: &TransactionLog) -> Option<bool> {
    log.status(xid)
        .map(|status| status == XactStatus::Committed)
}
