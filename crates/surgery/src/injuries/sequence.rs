//! Injuries of sequences (`src/backend/commands/sequence.c`): one page with a magic number in its
//! special space and one row.
//!
//! ```text
//! row:  0 last_value  8 log_cnt  16 is_called
//! ```

use pgclinic_format::LinePointer;
use pgclinic_format::build::put_u32;

use crate::advice;
use crate::byte_edits::{put_bytes, put_u8};
use crate::followers::SEQUENCES;
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{InjuryTarget, SEQUENCE_PAGE};

const LOG_COUNT_AT: usize = 8;
const IS_CALLED_AT: usize = 16;

pub(super) const SEQUENCE_MAGIC: Injury = Injury {
    name: "sequence-magic",
    summary: "the page of a sequence lost its magic number",
    wants: Wants::page(SEQUENCE_PAGE),
    recovery_advice: advice::SEQUENCE,
    damage: replace_magic,
};

fn replace_magic(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let at = target.special_at()?;
    let words = "the magic number set to 0x1718";
    let damage = Damage::edit(target, words, |page| put_u32(page, at, 0x1718))?;
    Some(damage.must(&["sequence-magic"]))
}

pub(super) const SEQUENCE_ROW_GONE: Injury = Injury {
    name: "sequence-row-gone",
    summary: "the row of a sequence is gone",
    wants: Wants::page(SEQUENCE_PAGE),
    recovery_advice: advice::SEQUENCE,
    damage: remove_row,
};

fn remove_row(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let at = InjuryTarget::pointer_at(1);
    let words = "line pointer 1 set to LP_UNUSED";
    let damage = Damage::edit(target, words, |page| put_u32(page, at, LinePointer(0).0))?;
    Some(damage.item(1).must(&["sequence-tuple"]))
}

pub(super) const SEQUENCE_VALUE: Injury = Injury {
    name: "sequence-value",
    summary: "a sequence stands at a number outside of its bounds",
    wants: Wants::page(SEQUENCE_PAGE),
    recovery_advice: advice::SEQUENCE,
    damage: move_below_minimum,
};

fn move_below_minimum(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let own = target.catalog?.sequence(target.relation?.oid)?;
    (own.min > i64::MIN).then_some(())?;
    let row = target.any_row(seed)?;
    let at = usize::from(row.tuple.t_hoff());
    let words = "last_value set to -9223372036854775808";
    let damage = Damage::edit_row(target, &row, words, |tuple| {
        put_bytes(tuple, at, &i64::MIN.to_le_bytes())
    })?;
    let damage = damage.must(&["sequence-beyond-bounds"]);
    Some(damage.may(&[SEQUENCES]))
}

pub(super) const SEQUENCE_LOG_COUNT: Injury = Injury {
    name: "sequence-log-count",
    summary: "a sequence has logged a negative number of values ahead",
    wants: Wants::page(SEQUENCE_PAGE),
    recovery_advice: advice::SEQUENCE,
    damage: negate_log_count,
};

fn negate_log_count(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.any_row(seed)?;
    let at = usize::from(row.tuple.t_hoff()) + LOG_COUNT_AT;
    let damage = Damage::edit_row(target, &row, "log_cnt set to -1", |tuple| {
        put_bytes(tuple, at, &(-1_i64).to_le_bytes())
    })?;
    Some(damage.must(&["sequence-value"]))
}

pub(super) const SEQUENCE_IS_CALLED: Injury = Injury {
    name: "sequence-is-called",
    summary: "is_called of a sequence is neither true nor false",
    wants: Wants::page(SEQUENCE_PAGE),
    recovery_advice: advice::SEQUENCE,
    damage: replace_is_called,
};

fn replace_is_called(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.any_row(seed)?;
    let at = usize::from(row.tuple.t_hoff()) + IS_CALLED_AT;
    let words = "is_called set to 7";
    let damage = Damage::edit_row(target, &row, words, |tuple| put_u8(tuple, at, 7))?;
    Some(damage.must(&["sequence-value"]))
}
