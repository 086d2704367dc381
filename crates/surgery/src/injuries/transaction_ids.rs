//! Injuries of the transactions and multixacts in tuple headers, and of the hint bits about them.

use pgclinic_cluster::XactStatus;
use pgclinic_format::MultiXactId;
use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::heap_tuple::{
    HEAP_HOT_UPDATED, HEAP_MOVED, HEAP_MOVED_OFF, HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID,
    HEAP_XMAX_IS_MULTI, HEAP_XMAX_KEYSHR_LOCK, HEAP_XMAX_LOCK_ONLY, HEAP_XMAX_SHR_LOCK,
    HEAP_XMIN_COMMITTED, HEAP_XMIN_FROZEN, HEAP_XMIN_INVALID,
};
use pgclinic_model::plan::Change;

use super::tuple_header::{FIELD3_AT, INFOMASK_AT, XMAX_AT, XMIN_AT, set_infomask};
use crate::advice;
use crate::followers::{CHAINS, FATES, TUPLE_HEADER, VALUES};
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{HEAP_PAGE, InjuryTarget, Row, choose, rows_of};

/// What `t_infomask` says about `xmax`.
pub(super) const XMAX_BITS: u16 = HEAP_XMAX_INVALID
    | HEAP_XMAX_COMMITTED
    | HEAP_XMAX_IS_MULTI
    | HEAP_XMAX_LOCK_ONLY
    | HEAP_XMAX_SHR_LOCK;

/// Replaces the inserting transaction of a row, about which nothing is known then.
pub(super) fn set_xmin(
    target: &InjuryTarget<'_>,
    row: &Row<'_>,
    xid: u32,
    words: String,
) -> Option<Damage> {
    let mask = row.tuple.t_infomask() & !HEAP_XMIN_FROZEN;
    Damage::edit_row(target, row, words, |tuple| {
        put_u32(tuple, XMIN_AT, xid);
        put_u16(tuple, INFOMASK_AT, mask);
    })
}

/// Replaces `xmax` and what is said about it, in a row that was not updated in place.
fn set_xmax(
    target: &InjuryTarget<'_>,
    seed: u64,
    xmax: u32,
    bits: u16,
    words: String,
) -> Option<Damage> {
    let row = target.row(seed, |row| row.tuple.t_infomask2() & HEAP_HOT_UPDATED == 0)?;
    let mask = row.tuple.t_infomask() & !XMAX_BITS | bits;
    let damage = Damage::edit_row(target, &row, words, |tuple| {
        put_u32(tuple, XMAX_AT, xmax);
        put_u16(tuple, INFOMASK_AT, mask);
    })?;
    Some(damage.may(&[CHAINS]))
}

/// A transaction from before everything in the relation was frozen.
fn xid_before_freeze(target: &InjuryTarget<'_>) -> Option<u32> {
    target.checkpoint()?;
    let frozen = target.relation?.relfrozenxid.0;
    let xid = frozen.saturating_sub(1000).max(3);
    (xid < frozen).then_some(xid)
}

pub(super) const XMIN_IN_THE_FUTURE: Injury = Injury {
    name: "xmin-in-the-future",
    summary: "a row was inserted by a transaction that has not begun",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::TRANSACTION,
    damage: insert_in_the_future,
};

fn insert_in_the_future(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let xid = target.future_xid()?;
    let words = format!("t_xmin set to {xid}, its hint bits cleared");
    let damage = set_xmin(target, &target.any_row(seed)?, xid, words)?;
    Some(damage.must(&["xmin-in-the-future"]).may(&[CHAINS]))
}

pub(super) const XMIN_BEFORE_FREEZE: Injury = Injury {
    name: "xmin-before-freeze",
    summary: "a row that is not frozen was inserted before everything was frozen",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::TRANSACTION,
    damage: insert_before_freeze,
};

fn insert_before_freeze(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let xid = xid_before_freeze(target)?;
    let words = format!("t_xmin set to {xid}, its hint bits cleared");
    let damage = set_xmin(target, &target.any_row(seed)?, xid, words)?;
    Some(damage.must(&["xmin-before-freeze"]).may(&[CHAINS]))
}

pub(super) const XMAX_IN_THE_FUTURE: Injury = Injury {
    name: "xmax-in-the-future",
    summary: "a row was deleted by a transaction that has not begun",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::TRANSACTION,
    damage: delete_in_the_future,
};

fn delete_in_the_future(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let xid = target.future_xid()?;
    let words = format!("t_xmax set to {xid}, its hint bits cleared");
    let damage = set_xmax(target, seed, xid, 0, words)?;
    Some(damage.must(&["xmax-in-the-future"]))
}

pub(super) const XMAX_BEFORE_FREEZE: Injury = Injury {
    name: "xmax-before-freeze",
    summary: "a row was deleted before everything was frozen",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::TRANSACTION,
    damage: delete_before_freeze,
};

fn delete_before_freeze(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let xid = xid_before_freeze(target)?;
    let words = format!("t_xmax set to {xid}, its hint bits cleared");
    let damage = set_xmax(target, seed, xid, 0, words)?;
    Some(damage.must(&["xmax-before-freeze"]))
}

pub(super) const MULTIXACT_IN_THE_FUTURE: Injury = Injury {
    name: "multixact-in-the-future",
    summary: "a row is held by a multixact that has not been made",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::TRANSACTION,
    damage: hold_by_future_multixact,
};

fn hold_by_future_multixact(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let multi = target.checkpoint()?.next_multi.0.checked_add(1000)?;
    let words = format!("t_xmax set to multixact {multi}");
    let damage = set_xmax(target, seed, multi, HEAP_XMAX_IS_MULTI, words)?;
    Some(damage.must(&["multixact-in-the-future"]))
}

pub(super) const MULTIXACT_BEFORE_MINIMUM: Injury = Injury {
    name: "multixact-before-minimum",
    summary: "a row is held by a multixact older than all that are kept",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::TRANSACTION,
    damage: hold_by_old_multixact,
};

fn hold_by_old_multixact(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (minimum, next) = (target.relation?.relminmxid, target.checkpoint()?.next_multi);
    let multi = MultiXactId(minimum.0.wrapping_sub(1000));
    let is_old = multi.precedes(minimum) && multi.precedes(next);
    (multi.0 != 0 && minimum.0 != 0 && is_old).then_some(())?;
    let words = format!("t_xmax set to multixact {multi}");
    let damage = set_xmax(target, seed, multi.0, HEAP_XMAX_IS_MULTI, words)?;
    Some(damage.must(&["multixact-before-minimum"]))
}

pub(super) const MULTIXACT_MARKED_COMMITTED: Injury = Injury {
    name: "multixact-marked-committed",
    summary: "xmax is a multixact and marked as committed, which is one too many",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::TRANSACTION,
    damage: mark_multixact_committed,
};

fn mark_multixact_committed(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (minimum, next) = (target.relation?.relminmxid, target.checkpoint()?.next_multi);
    let multi = MultiXactId(next.0.wrapping_sub(1));
    (minimum.0 != 0 && multi.0 != 0 && !multi.precedes(minimum)).then_some(())?;
    let words = format!("t_xmax set to multixact {multi} and HEAP_XMAX_COMMITTED");
    let bits = HEAP_XMAX_IS_MULTI | HEAP_XMAX_COMMITTED;
    let damage = set_xmax(target, seed, multi.0, bits, words)?;
    Some(damage.must(&["multixact-marked-committed"]))
}

pub(super) const XMAX_COMMITTED_AND_INVALID: Injury = Injury {
    name: "xmax-committed-and-invalid",
    summary: "xmax is marked as committed and as invalid",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: mark_xmax_committed_and_invalid,
};

fn mark_xmax_committed_and_invalid(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.row(seed, |row| !row.tuple.has(HEAP_XMAX_IS_MULTI))?;
    let mask = row.tuple.t_infomask() | HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID;
    let words = "HEAP_XMAX_COMMITTED and HEAP_XMAX_INVALID set";
    let damage = set_infomask(target, &row, mask, words)?;
    let damage = damage.must(&["xmax-committed-and-invalid"]);
    Some(damage.may(&[CHAINS]))
}

pub(super) const XMIN_HINT_COMMITTED: Injury = Injury {
    name: "xmin-hint-committed",
    summary: "a hint bit says that the transaction of a rolled back row committed",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::HINT_BITS,
    damage: hint_that_xmin_committed,
};

fn hint_that_xmin_committed(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let mut aborted = rows_of(target.page()?);
    aborted.retain(|row| {
        !row.tuple.xmin_is_frozen()
            && target.status(row.tuple.t_xmin()) == Some(XactStatus::Aborted)
    });
    let row = choose(&aborted, seed)?;
    let mask = row.tuple.t_infomask() & !HEAP_XMIN_INVALID | HEAP_XMIN_COMMITTED;
    let words = "HEAP_XMIN_COMMITTED set on a row that was rolled back";
    let damage = set_infomask(target, row, mask, words)?;
    Some(damage.must(&["xmin-hint-wrong"]).may(&[CHAINS, VALUES]))
}

pub(super) const XMAX_HINT_INVALID: Injury = Injury {
    name: "xmax-hint-invalid",
    summary: "a hint bit says that a deletion that committed was rolled back",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::HINT_BITS,
    damage: hint_that_xmax_aborted,
};

fn hint_that_xmax_aborted(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.row(seed, |row| is_deleted(target, row))?;
    let mask = row.tuple.t_infomask() & !HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID;
    let words = "HEAP_XMAX_INVALID set on a row that was deleted or updated";
    let damage = set_infomask(target, &row, mask, words)?;
    Some(damage.must(&["xmax-hint-wrong"]))
}

/// A single transaction deleted or updated the row, and committed.
pub(super) fn is_deleted(target: &InjuryTarget<'_>, row: &Row<'_>) -> bool {
    !row.tuple.has(HEAP_XMAX_INVALID)
        && !row.tuple.has(HEAP_XMAX_IS_MULTI)
        && !row.tuple.xmax_is_locked_only()
        && target.status(row.tuple.t_xmax()) == Some(XactStatus::Committed)
}

pub(super) const MULTIXACT_LOCK_ONLY_FLIPPED: Injury = Injury {
    name: "multixact-lock-only-flipped",
    summary: "a shared row says the opposite of what its multixact says",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: flip_lock_only,
};

fn flip_lock_only(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let checkpoint = target.checkpoint()?;
    let row = target.row(seed, |row| {
        let multi = MultiXactId(row.tuple.t_xmax().0);
        row.tuple.has(HEAP_XMAX_IS_MULTI)
            && !row.tuple.has(HEAP_XMAX_INVALID)
            && multi.precedes(checkpoint.next_multi)
            && !multi.precedes(checkpoint.oldest_multi)
            && target.cluster.multixacts.updater(multi).is_some()
    })?;
    // A lock of the upgraded kind is never looked up.
    let mask = row.tuple.t_infomask() ^ HEAP_XMAX_LOCK_ONLY | HEAP_XMAX_KEYSHR_LOCK;
    let words = "HEAP_XMAX_LOCK_ONLY turned round on a row with a multixact";
    let damage = set_infomask(target, &row, mask, words)?;
    Some(damage.must(&["multixact-flags"]).may(&[CHAINS, FATES]))
}

pub(super) const MULTIXACT_UPDATER: Injury = Injury {
    name: "multixact-updater",
    summary: "the member of a multixact that changed a row has not begun yet",
    wants: Wants::once(HEAP_PAGE),
    recovery_advice: advice::TRANSACTION,
    damage: update_by_future_member,
};

fn update_by_future_member(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let xid = target.future_xid()?;
    let multixacts = &target.cluster.multixacts;
    let multi = |row: &Row<'_>| MultiXactId(row.tuple.t_xmax().0);
    let row = target.row(seed, |row| {
        row.tuple.has(HEAP_XMAX_IS_MULTI)
            && !row.tuple.has(HEAP_XMAX_INVALID)
            && !row.tuple.xmax_is_locked_only()
            && multixacts.updater(multi(row)).flatten().is_some()
    })?;
    let number = multi(&row);
    let old = multixacts.updater(number).flatten()?;
    let (path, offset) = multixacts.updater_place(number)?;
    let change = Change::Bytes {
        path,
        offset,
        before: old.0.to_le_bytes().to_vec(),
        after: xid.to_le_bytes().to_vec(),
    };
    let words = format!("member {old} of multixact {number} set to {xid}");
    let damage = Damage::change(change, words).item(row.item);
    let damage = damage.must(&["multixact-updater"]);
    Some(damage.may(&[CHAINS, FATES, &["multixact-member-out-of-range"]]))
}

pub(super) const MOVED_FLAG_SET: Injury = Injury {
    name: "moved-flag-set",
    summary: "a row says that a VACUUM FULL before 9.0 moved it away",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: mark_moved_off,
};

fn mark_moved_off(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    target.checkpoint()?;
    let row = target.row(seed, |row| row.tuple.t_xmin().is_normal())?;
    let mask = row.tuple.t_infomask() & !HEAP_XMIN_FROZEN & !HEAP_MOVED | HEAP_MOVED_OFF;
    let words = "HEAP_MOVED_OFF set, its transaction set to 0, the hints of xmin cleared";
    let damage = Damage::edit_row(target, &row, words, |tuple| {
        put_u32(tuple, FIELD3_AT, 0);
        put_u16(tuple, INFOMASK_AT, mask);
    })?;
    let damage = damage.must(&["moved-by-unknown-vacuum"]);
    Some(damage.may(&[CHAINS, FATES, TUPLE_HEADER]))
}

pub(super) const XMIN_HINT_INVALID: Injury = Injury {
    name: "xmin-hint-invalid",
    summary: "a hint bit says that the transaction of a committed row was rolled back",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::HINT_BITS,
    damage: hint_that_xmin_aborted,
};

fn hint_that_xmin_aborted(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.row(seed, |row| {
        row.tuple.t_infomask() & HEAP_XMIN_FROZEN == HEAP_XMIN_COMMITTED
            && target.status(row.tuple.t_xmin()) == Some(XactStatus::Committed)
    })?;
    let mask = row.tuple.t_infomask() ^ HEAP_XMIN_FROZEN;
    let words = "HEAP_XMIN_COMMITTED replaced by HEAP_XMIN_INVALID";
    let damage = set_infomask(target, &row, mask, words)?;
    Some(damage.must(&["xmin-hint-wrong"]).may(&[CHAINS]))
}
