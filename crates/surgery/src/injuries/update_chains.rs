//! Injuries of update chains: `t_ctid` leads to the next version of a row, heap-only versions are
//! reached through the one before alone (`src/backend/access/heap/README.HOT`).

use pgclinic_cluster::XactStatus;
use pgclinic_format::Xid;
use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::heap_tuple::{
    HEAP_HOT_UPDATED, HEAP_ONLY_TUPLE, HEAP_UPDATED, HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID,
    HEAP_XMAX_IS_MULTI, HEAP_XMIN_FROZEN, HEAP_XMIN_INVALID,
};

use super::transaction_ids::{XMAX_BITS, set_xmin};
use super::tuple_header::{
    CTID_BLOCK_LOW_AT, CTID_OFFSET_AT, INFOMASK_AT, XMAX_AT, XMIN_AT, set_infomask2,
};
use crate::advice;
use crate::followers::{CHAINS, FATES, TUPLE_HEADER};
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{HEAP_PAGE, InjuryTarget, Row, choose, rows_of};

/// Transactions that are asked about when one that was rolled back is wanted.
const XIDS_TRIED: usize = 100_000;

fn is_updated_in_place(row: &Row<'_>) -> bool {
    row.tuple.t_infomask2() & HEAP_HOT_UPDATED != 0
        && !row.tuple.has(HEAP_XMAX_INVALID)
        && row.tuple.t_infomask() & HEAP_XMIN_FROZEN != HEAP_XMIN_INVALID
}

/// A row that a single transaction updated in place, by the seed.
fn row_updated_in_place<'a>(target: &'a InjuryTarget<'_>, seed: u64) -> Option<Row<'a>> {
    target.row(seed, |row| {
        is_updated_in_place(row)
            && !row.tuple.has(HEAP_XMAX_IS_MULTI)
            && !row.tuple.xmax_is_locked_only()
    })
}

/// Rows of the page that were updated to another row of it, with their next versions.
fn updates<'a>(target: &'a InjuryTarget<'_>) -> Vec<(Row<'a>, Row<'a>)> {
    let rows = target.page().map(rows_of).unwrap_or_default();
    let next = |old: &Row<'a>| {
        let ctid = old.tuple.t_ctid();
        let counts = ctid.block == target.block
            && !old.tuple.has(HEAP_XMAX_IS_MULTI)
            && !old.tuple.xmax_is_locked_only()
            && old.tuple.t_xmax().is_normal();
        let follows = |new: &&Row<'_>| {
            new.item == ctid.offset
                && new.item != old.item
                && new.tuple.t_xmin() == old.tuple.t_xmax()
        };
        counts.then(|| rows.iter().find(follows).copied())?
    };
    rows.iter()
        .filter(|row| target.item.is_none_or(|item| item == row.item))
        .filter_map(|old| Some((*old, next(old)?)))
        .collect()
}

/// A transaction that was rolled back and is young enough for the relation.
fn aborted_xid(target: &InjuryTarget<'_>) -> Option<Xid> {
    let (first, next) = (
        target.relation?.relfrozenxid,
        target.checkpoint()?.next_xid(),
    );
    (first.0.max(3)..next.0)
        .take(XIDS_TRIED)
        .map(Xid)
        .find(|xid| target.status(*xid) == Some(XactStatus::Aborted))
}

/// The next version of a row on the neighbouring block.
fn move_ctid_to_another_block(
    target: &InjuryTarget<'_>,
    row: &Row<'_>,
    words: &str,
) -> Option<Damage> {
    let low = u16::try_from(row.tuple.t_ctid().block & 0xFFFF).ok()? ^ 1;
    Damage::edit_row(target, row, words, |tuple| {
        put_u16(tuple, CTID_BLOCK_LOW_AT, low)
    })
}

fn set_ctid_offset(
    target: &InjuryTarget<'_>,
    row: &Row<'_>,
    offset: u16,
    words: impl Into<String>,
) -> Option<Damage> {
    Damage::edit_row(target, row, words, |tuple| {
        put_u16(tuple, CTID_OFFSET_AT, offset)
    })
}

pub(super) const CTID_OFFSET: Injury = Injury {
    name: "ctid-offset",
    summary: "the next version of a row is at a line pointer that no page has",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: lead_to_impossible_item,
};

fn lead_to_impossible_item(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let offset = if seed.is_multiple_of(2) { 0 } else { 0x7FFF };
    let words = format!("line pointer number of t_ctid set to {offset}");
    let damage = set_ctid_offset(target, &target.any_row(seed)?, offset, words)?;
    Some(damage.must(&["ctid-out-of-range"]).may(&[CHAINS]))
}

pub(super) const CTID_BLOCK: Injury = Injury {
    name: "ctid-block",
    summary: "the next version of a row is said to be on another page",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: lead_to_another_page,
};

fn lead_to_another_page(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.row(seed, |row| row.tuple.t_infomask2() & HEAP_HOT_UPDATED == 0)?;
    let damage = move_ctid_to_another_block(target, &row, "t_ctid set to another block")?;
    Some(damage.blind("a row version may name any other place as its successor"))
}

pub(super) const HOT_UPDATE_LEAVES_PAGE: Injury = Injury {
    name: "hot-update-leaves-page",
    summary: "a heap-only update is said to go on on another page",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: lead_hot_update_to_another_page,
};

fn lead_hot_update_to_another_page(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.row(seed, is_updated_in_place)?;
    let words = "t_ctid of a heap-only update set to another block";
    let damage = move_ctid_to_another_block(target, &row, words)?;
    Some(damage.must(&["hot-update-leaves-page"]).may(&[CHAINS]))
}

pub(super) const HEAP_ONLY_FLAG_CLEARED: Injury = Injury {
    name: "heap-only-flag-cleared",
    summary: "the row that a redirect leads to is no longer heap-only",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: clear_heap_only_flag,
};

fn clear_heap_only_flag(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let redirected = target.redirect_targets();
    let row = target.row(seed, |row| {
        redirected.contains(&row.item) && row.tuple.t_infomask2() & HEAP_ONLY_TUPLE != 0
    })?;
    let mask = row.tuple.t_infomask2() & !HEAP_ONLY_TUPLE;
    let words = "HEAP_ONLY_TUPLE cleared after a redirect";
    let damage = set_infomask2(target, &row, mask, words)?;
    Some(damage.must(&["redirect-to-indexed-row"]).may(&[CHAINS]))
}

pub(super) const HOT_UPDATED_FLAG_CLEARED: Injury = Injury {
    name: "hot-updated-flag-cleared",
    summary: "an update in place says that it was none",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: clear_hot_updated_flag,
};

fn clear_hot_updated_flag(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let mut in_place = updates(target);
    in_place.retain(|(old, _)| old.tuple.t_infomask2() & HEAP_HOT_UPDATED != 0);
    let (row, _) = choose(&in_place, seed)?;
    let mask = row.tuple.t_infomask2() & !HEAP_HOT_UPDATED;
    let damage = set_infomask2(target, row, mask, "HEAP_HOT_UPDATED cleared")?;
    Some(damage.must(&["hot-flags-disagree"]))
}

pub(super) const UPDATE_CHAIN_CIRCLE: Injury = Injury {
    name: "update-chain-circle",
    summary: "the next version of a row leads back to it",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: lead_back,
};

fn lead_back(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let mut plain = updates(target);
    plain.retain(|(old, new)| {
        old.tuple.t_xmin().is_normal()
            && old.tuple.t_infomask2() & HEAP_ONLY_TUPLE == 0
            && new.tuple.t_ctid().offset == new.item
    });
    let (old, new) = choose(&plain, seed)?;
    let mask = new.tuple.t_infomask() & !XMAX_BITS;
    let words = format!("updated, by its own header, to line pointer {}", old.item);
    let damage = Damage::edit_row(target, new, words, |tuple| {
        put_u32(tuple, XMAX_AT, old.tuple.t_xmin().0);
        put_u16(tuple, CTID_OFFSET_AT, old.item);
        put_u16(tuple, INFOMASK_AT, mask);
    })?;
    let damage = damage.must(&["update-chain-cycle"]);
    Some(damage.may(&[CHAINS, FATES, TUPLE_HEADER]))
}

pub(super) const HEAP_ONLY_FLAG_SET: Injury = Injury {
    name: "heap-only-flag-set",
    summary: "a row that was inserted says that no index knows it",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: set_heap_only_flag,
};

fn set_heap_only_flag(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let redirected = target.redirect_targets();
    let row = target.row(seed, |row| {
        let frozen = row.tuple.xmin_is_frozen() && row.tuple.t_xmin().is_normal();
        row.tuple.t_infomask2() & HEAP_ONLY_TUPLE == 0
            && !row.tuple.has(HEAP_UPDATED)
            && !redirected.contains(&row.item)
            && (frozen || target.status(row.tuple.t_xmin()) == Some(XactStatus::Committed))
    })?;
    let mask = row.tuple.t_infomask2() | HEAP_ONLY_TUPLE;
    let words = "HEAP_ONLY_TUPLE set on a row that was inserted";
    let damage = set_infomask2(target, &row, mask, words)?;
    Some(damage.must(&["heap-only-not-updated", "heap-only-without-chain"]))
}

pub(super) const HOT_UPDATE_WITHOUT_XMAX: Injury = Injury {
    name: "hot-update-without-xmax",
    summary: "a row was updated in place by nobody",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: zero_xmax_of_hot_update,
};

fn zero_xmax_of_hot_update(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = row_updated_in_place(target, seed)?;
    let words = "t_xmax of a row that was updated in place set to 0";
    let damage = Damage::edit_row(target, &row, words, |tuple| put_u32(tuple, XMAX_AT, 0))?;
    let damage = damage.must(&["hot-update-leads-nowhere"]);
    Some(damage.may(&[CHAINS]))
}

pub(super) const HOT_UPDATE_TO_ITSELF: Injury = Injury {
    name: "hot-update-to-itself",
    summary: "a row that was updated in place leads to itself",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: lead_hot_update_to_itself,
};

fn lead_hot_update_to_itself(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = row_updated_in_place(target, seed)?;
    let words = "t_ctid of a row that was updated in place set to its own place";
    let damage = set_ctid_offset(target, &row, row.item, words)?;
    let damage = damage.must(&["hot-update-leads-nowhere"]);
    Some(damage.may(&[CHAINS]))
}

pub(super) const UPDATED_ROW_ROLLED_BACK: Injury = Injury {
    name: "updated-row-rolled-back",
    summary: "the first version of an updated row was inserted by a transaction that was rolled back",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::TRANSACTION,
    damage: roll_back_updated_row,
};

fn roll_back_updated_row(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let aborted = aborted_xid(target)?;
    let mut valid = updates(target);
    valid.retain(|(old, new)| {
        old.tuple.t_xmin().is_normal()
            && target.status(new.tuple.t_xmin()) == Some(XactStatus::Committed)
    });
    let (old, _) = choose(&valid, seed)?;
    let words = format!("t_xmin set to {aborted}, which was rolled back, its hints cleared");
    let damage = set_xmin(target, old, aborted.0, words)?;
    Some(damage.must(&["update-outlives-row"]).may(&[CHAINS]))
}

pub(super) const UPDATE_HALF_DONE: Injury = Injury {
    name: "update-half-done",
    summary: "both versions of an updated row are valid",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: take_back_half_of_update,
};

fn take_back_half_of_update(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let oldest = target.checkpoint()?.oldest_xid.0;
    let forgotten = oldest.checked_sub(1).filter(|xid| *xid >= 3)?;
    let updates = updates(target);
    let (old, new) = choose(&updates, seed)?;
    let old_mask = old.tuple.t_infomask() & !HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID;
    let new_mask = new.tuple.t_infomask() | HEAP_XMIN_FROZEN;
    let words = format!(
        "row {} frozen as inserted by {forgotten}, row {} marked as not updated by it",
        new.item, old.item
    );
    let damage = Damage::edit(target, words, |page| {
        put_u32(page, old.at + XMAX_AT, forgotten);
        put_u16(page, old.at + INFOMASK_AT, old_mask);
        put_u32(page, new.at + XMIN_AT, forgotten);
        put_u16(page, new.at + INFOMASK_AT, new_mask);
    })?;
    let damage = damage.item(old.item).must(&["update-half-done"]);
    Some(damage.may(&[CHAINS]))
}
