//! What rows say by their hint bits of transactions whose status is lost.

use std::collections::BTreeMap;

use pgclinic_format::heap_tuple::{
    HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI, HEAP_XMIN_COMMITTED,
    HEAP_XMIN_INVALID,
};
use pgclinic_format::{HeapTuple, Xid};

use super::asked::Asked;

/// What rows say of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Votes {
    pub(super) committed: u64,
    pub(super) aborted: u64,
    /// Rows that would ask `pg_xact`.
    pub(super) unhinted: u64,
}

/// What the row's hint bits say of its transactions, where the status of those is lost.
pub(super) fn vote(tuple: HeapTuple<'_>, asked: &Asked, votes: &mut BTreeMap<u32, Votes>) {
    let is_asked = |xid: Xid| asked.has(xid);
    let xmin = tuple.t_xmin();
    if is_asked(xmin) && !tuple.xmin_is_frozen() {
        let own = votes.entry(xmin.0).or_default();
        if tuple.has(HEAP_XMIN_COMMITTED) {
            own.committed += 1;
        } else if tuple.has(HEAP_XMIN_INVALID) {
            own.aborted += 1;
        } else {
            own.unhinted += 1;
        }
    }
    let xmax = tuple.t_xmax();
    // An xmax that counts for nothing may be that of a lock: it says nothing of its
    // transaction, and nobody asks.
    let counts = !tuple.has(HEAP_XMAX_IS_MULTI)
        && !tuple.has(HEAP_XMAX_INVALID)
        && !tuple.xmax_is_locked_only();
    if counts && is_asked(xmax) {
        let own = votes.entry(xmax.0).or_default();
        if tuple.has(HEAP_XMAX_COMMITTED) {
            own.committed += 1;
        } else {
            own.unhinted += 1;
        }
    }
}

pub(super) fn add_votes(votes: &mut BTreeMap<u32, Votes>, others: BTreeMap<u32, Votes>) {
    for (xid, other) in others {
        let own = votes.entry(xid).or_default();
        own.committed += other.committed;
        own.aborted += other.aborted;
        own.unhinted += other.unhinted;
    }
}
