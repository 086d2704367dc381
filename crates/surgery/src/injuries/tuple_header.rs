//! Injuries of the tuple header, all of it or fields beside its transactions, `HeapTupleHeaderData`
//! in `src/include/access/htup_details.h`.
//!
//! ```text
//!  0 xmin          4 xmax         8 t_cid or t_xvac   12 ctid: block, then offset at 16
//! 18 t_infomask2  20 t_infomask  22 t_hoff            23 bitmap of nulls
//! ```

use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::heap_tuple::{
    HEADER_BYTES, HEAP_HASNULL, HEAP_HASOID_OLD, HEAP_HASVARWIDTH, HEAP_MOVED, HEAP_NATTS_MASK,
    HEAP_XMIN_COMMITTED, HEAP_XMIN_FROZEN,
};
use pgclinic_format::page::PD_ALL_VISIBLE;

use crate::advice;
use crate::byte_edits::{put_bytes, put_u8};
use crate::followers::{ATTRIBUTES, SHAPE, TUPLE_HEADER};
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{HEAP_PAGE, InjuryTarget, Row};

pub(super) const XMIN_AT: usize = 0;
pub(super) const XMAX_AT: usize = 4;
pub(super) const FIELD3_AT: usize = 8;
pub(super) const CTID_BLOCK_LOW_AT: usize = 14;
pub(super) const CTID_OFFSET_AT: usize = 16;
const INFOMASK2_AT: usize = 18;
pub(super) const INFOMASK_AT: usize = 20;
const HOFF_AT: usize = 22;
/// Transactions in a file of `pg_xact`: 32 pages of 8192 bytes, four in each byte.
const XIDS_OF_FILE: u32 = 32 * 8192 * 4;

/// Replaces `t_infomask` of a row.
pub(super) fn set_infomask(
    target: &InjuryTarget<'_>,
    row: &Row<'_>,
    mask: u16,
    words: impl Into<String>,
) -> Option<Damage> {
    Damage::edit_row(target, row, words, |tuple| {
        put_u16(tuple, INFOMASK_AT, mask)
    })
}

/// Replaces `t_infomask2` of a row.
pub(super) fn set_infomask2(
    target: &InjuryTarget<'_>,
    row: &Row<'_>,
    mask: u16,
    words: impl Into<String>,
) -> Option<Damage> {
    Damage::edit_row(target, row, words, |tuple| {
        put_u16(tuple, INFOMASK2_AT, mask)
    })
}

pub(super) const SYSTEM_COLUMNS_RANDOM: Injury = Injury {
    name: "system-columns-random",
    summary: "every system column of a row is random, where a scan asks pg_xact about the row",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::TRANSACTION,
    damage: |target, seed| randomize_system_columns(target, seed, Scan::Asks),
};

pub(super) const SYSTEM_COLUMNS_RANDOM_ALL_VISIBLE: Injury = Injury {
    name: "system-columns-random-all-visible",
    summary: "every system column of a row is random, on an all-visible page, where no scan asks",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::TRANSACTION,
    damage: |target, seed| randomize_system_columns(target, seed, Scan::TrustsPage),
};

/// What a scan does with the row versions of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scan {
    /// It asks for each whether it is visible.
    Asks,
    /// `PD_ALL_VISIBLE` answers for all of them.
    TrustsPage,
}

fn randomize_system_columns(target: &InjuryTarget<'_>, seed: u64, scan: Scan) -> Option<Damage> {
    let trusts = target.page()?.pd_flags() & PD_ALL_VISIBLE != 0;
    (trusts == (scan == Scan::TrustsPage)).then_some(())?;
    let row = target.any_row(seed)?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut header = [0; HEADER_BYTES];
    random.fill(&mut header);
    let xmin = xid_without_status(target, &mut random)?;
    put_u32(&mut header, XMIN_AT, xmin);
    // With a hint bit, or the transaction of an old VACUUM FULL, xmin is not looked up.
    let mask = random.u16(..) & !HEAP_XMIN_FROZEN & !HEAP_MOVED;
    put_u16(&mut header, INFOMASK_AT, mask);
    let words = format!("the 23 bytes of the tuple header set to random ones, t_xmin to {xmin}");
    let damage = Damage::edit_row(target, &row, words, |tuple| put_bytes(tuple, 0, &header))?;
    let damage = damage.must(&["xmin-before-freeze"]);
    Some(damage.may(&[TUPLE_HEADER, ATTRIBUTES]))
}

/// A transaction that counts as finished long ago, and whose file of `pg_xact` is not there.
fn xid_without_status(target: &InjuryTarget<'_>, random: &mut fastrand::Rng) -> Option<u32> {
    let checkpoint = target.checkpoint()?;
    let next = checkpoint.next_xid().0;
    let kept = next.wrapping_sub(checkpoint.oldest_xid.0);
    // What is half of all numbers away counts as the future.
    let ages = kept.max(1 << 28).checked_add(XIDS_OF_FILE)?..(1 << 31) - XIDS_OF_FILE;
    (!ages.is_empty()).then_some(())?;
    let xid = next.wrapping_sub(random.u32(ages));
    (xid > 2).then_some(xid)
}

pub(super) const VARWIDTH_FLAG_CLEARED: Injury = Injury {
    name: "varwidth-flag-cleared",
    summary: "a row with text says that all its values have a fixed width",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: clear_varwidth_flag,
};

fn clear_varwidth_flag(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.row(seed, |row| {
        row.tuple.has(HEAP_HASVARWIDTH) && row.tuple.has(HEAP_XMIN_COMMITTED)
    })?;
    let mask = row.tuple.t_infomask() & !HEAP_HASVARWIDTH;
    let damage = set_infomask(target, &row, mask, "HEAP_HASVARWIDTH cleared")?;
    Some(damage.must(&["varwidth-flag-wrong"]))
}

pub(super) const ATTRIBUTE_COUNT_SMALLER: Injury = Injury {
    name: "attribute-count-smaller",
    summary: "a row claims one attribute less than it holds",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: lower_attribute_count,
};

fn lower_attribute_count(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.row(seed, |row| {
        row.tuple.attribute_count() > 1
            && !row.tuple.has(HEAP_HASNULL)
            && row.tuple.has(HEAP_XMIN_COMMITTED)
    })?;
    let mask = row.tuple.t_infomask2() - 1;
    let damage = set_infomask2(target, &row, mask, "attribute count lowered by one")?;
    Some(damage.must(&["bytes-after-last-value"]).may(&[SHAPE]))
}

pub(super) const NULL_FLAG_WITHOUT_NULL: Injury = Injury {
    name: "null-flag-without-null",
    summary: "a row has a bitmap of nulls that names none",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::NOTHING,
    damage: give_bitmap_of_ones,
};

fn give_bitmap_of_ones(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.row(seed, |row| {
        fits_bitmap_into_padding(row) && row.tuple.has(HEAP_XMIN_COMMITTED)
    })?;
    let mask = row.tuple.t_infomask() | HEAP_HASNULL;
    let words = "HEAP_HASNULL set, with a bitmap of ones";
    let damage = Damage::edit_row(target, &row, words, |tuple| {
        put_u16(tuple, INFOMASK_AT, mask);
        put_u8(tuple, HEADER_BYTES, 0xFF);
    })?;
    Some(damage.must(&["null-flag-without-null"]))
}

/// It has no bitmap of nulls, and one for its columns would take the one byte of padding.
fn fits_bitmap_into_padding(row: &Row<'_>) -> bool {
    !row.tuple.has(HEAP_HASNULL) && (1..=8).contains(&row.tuple.attribute_count())
}

pub(super) const ATTRIBUTE_COUNT: Injury = Injury {
    name: "attribute-count",
    summary: "a row claims 2047 attributes",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: raise_attribute_count,
};

fn raise_attribute_count(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.any_row(seed)?;
    let mask = row.tuple.t_infomask2() | HEAP_NATTS_MASK;
    let damage = set_infomask2(target, &row, mask, "attribute count set to 2047")?;
    let damage = damage.must(&["too-many-attributes"]);
    Some(damage.may(&[ATTRIBUTES, &["hoff-mismatch"]]))
}

pub(super) const INFOMASK2_UNUSED_BITS: Injury = Injury {
    name: "infomask2-unused-bits",
    summary: "t_infomask2 has bits that do not exist",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: set_unused_bit,
};

fn set_unused_bit(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.any_row(seed)?;
    let mask = row.tuple.t_infomask2() | 0x0800 << (seed % 2);
    let words = format!("t_infomask2 set to {mask:#06x}");
    let damage = set_infomask2(target, &row, mask, words)?;
    Some(damage.must(&["unused-infomask-bits"]))
}

pub(super) const INFOMASK_OLD_OID: Injury = Injury {
    name: "infomask-old-oid",
    summary: "a row claims an OID column, which no version since 12 writes",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: claim_oid_column,
};

fn claim_oid_column(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.any_row(seed)?;
    let mask = row.tuple.t_infomask() | HEAP_HASOID_OLD;
    let damage = set_infomask(target, &row, mask, "HEAP_HASOID_OLD set")?;
    Some(damage.must(&["unused-infomask-bits"]))
}

pub(super) const NULL_FLAG_SET: Injury = Injury {
    name: "null-flag-set",
    summary: "a row of many columns claims a bitmap of nulls that it does not have",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: claim_nulls_of_wide_row,
};

fn claim_nulls_of_wide_row(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.row(seed, |row| {
        !row.tuple.has(HEAP_HASNULL) && row.tuple.attribute_count() > 8
    })?;
    Some(set_null_flag(target, &row)?.must(&["hoff-mismatch"]))
}

fn set_null_flag(target: &InjuryTarget<'_>, row: &Row<'_>) -> Option<Damage> {
    let mask = row.tuple.t_infomask() | HEAP_HASNULL;
    set_infomask(target, row, mask, "HEAP_HASNULL set")
}

pub(super) const NULL_FLAG_SET_ON_NARROW_ROW: Injury = Injury {
    name: "null-flag-set-on-narrow-row",
    summary: "a row of few columns claims a bitmap of nulls, and reads as nulls",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: claim_nulls_of_narrow_row,
};

fn claim_nulls_of_narrow_row(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.row(seed, fits_bitmap_into_padding)?;
    let damage = set_null_flag(target, &row)?;
    let damage = damage.must(&["bytes-after-last-value"]);
    Some(damage.may(&[ATTRIBUTES]))
}

pub(super) const NULL_FLAG_CLEARED: Injury = Injury {
    name: "null-flag-cleared",
    summary: "a row with nulls lost the flag of its bitmap",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: clear_null_flag,
};

fn clear_null_flag(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.row(seed, |row| row.tuple.has(HEAP_HASNULL))?;
    let mask = row.tuple.t_infomask() & !HEAP_HASNULL;
    let damage = set_infomask(target, &row, mask, "HEAP_HASNULL cleared")?;
    Some(damage.may(&[ATTRIBUTES]).must_or_blind(
        (row.tuple.t_hoff() != 24).then_some("hoff-mismatch"),
        "the bitmap fits into the padding, and the values that are there may fit other columns",
    ))
}

pub(super) const HOFF_LARGER: Injury = Injury {
    name: "hoff-larger",
    summary: "the first column is said to begin 128 bytes later",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: raise_hoff,
};

fn raise_hoff(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.any_row(seed)?;
    let hoff = row.tuple.t_hoff().checked_add(128)?;
    let is_beyond = usize::from(hoff) > row.tuple.bytes().len();
    let beyond = is_beyond.then_some("hoff-beyond-tuple");
    let damage = set_hoff(target, &row, hoff)?.must(beyond.as_slice());
    Some(damage.may(&[ATTRIBUTES]))
}

fn set_hoff(target: &InjuryTarget<'_>, row: &Row<'_>, hoff: u8) -> Option<Damage> {
    let words = format!("t_hoff set to {hoff}");
    let damage = Damage::edit_row(target, row, words, |tuple| put_u8(tuple, HOFF_AT, hoff))?;
    Some(damage.must(&["hoff-mismatch"]))
}

pub(super) const HOFF_SMALLER: Injury = Injury {
    name: "hoff-smaller",
    summary: "the first column is said to begin 8 bytes earlier",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: lower_hoff,
};

fn lower_hoff(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.any_row(seed)?;
    let damage = set_hoff(target, &row, row.tuple.t_hoff().checked_sub(8)?)?;
    Some(damage.may(&[ATTRIBUTES]))
}

pub(super) const HOFF_MISALIGNED: Injury = Injury {
    name: "hoff-misaligned",
    summary: "the first column is said to begin at an odd offset",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: misalign_hoff,
};

fn misalign_hoff(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.any_row(seed)?;
    let by = if seed.is_multiple_of(2) { 3 } else { -3 };
    let damage = set_hoff(target, &row, row.tuple.t_hoff().checked_add_signed(by)?)?;
    Some(damage.may(&[&["hoff-beyond-tuple"], ATTRIBUTES]))
}

pub(super) const FIELD3: Injury = Injury {
    name: "field3",
    summary: "the command number of a row is another one",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::NOTHING,
    damage: replace_command_number,
};

fn replace_command_number(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let row = target.any_row(seed)?;
    let field3 = row.tuple.t_field3() ^ 0x5A5A_5A5A;
    let words = format!("t_field3 set to {field3}");
    let damage = Damage::edit_row(target, &row, words, |tuple| {
        put_u32(tuple, FIELD3_AT, field3)
    })?;
    Some(damage.blind("nothing reads the command number of a finished transaction"))
}
