//! Injuries of values in rows: their bytes, their digits and characters, the lengths in front of
//! them (`src/include/varatt.h`).

use std::ops::Range;

use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::heap_tuple::{HEAP_XMAX_INVALID, HEAP_XMIN_COMMITTED};
use pgclinic_format::types::Oid;
use pgclinic_format::{Varlena, varlena};

use crate::advice;
use crate::byte_edits::put_u8;
use crate::followers::VALUES;
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{HEAP_PAGE, InjuryTarget, Row, Value, is_compressed};

const NUMERIC: Oid = 1700;
const TEXT: Oid = 25;
/// `PG_UTF8`.
const UTF8: i32 = 6;

/// Changes every byte of a range in a row.
fn change_bytes(
    target: &InjuryTarget<'_>,
    seed: u64,
    row: &Row<'_>,
    range: Range<usize>,
    words: String,
) -> Option<Damage> {
    let mut random = fastrand::Rng::with_seed(seed);
    Damage::edit_row(target, row, words, |tuple| {
        let bytes = tuple.get_mut(range).into_iter().flatten();
        bytes.for_each(|byte| *byte ^= random.u8(1..));
    })
}

/// The row committed and nobody deleted it, by its hint bits: somebody will read its values.
fn is_hinted_live(row: &Row<'_>) -> bool {
    row.tuple.has(HEAP_XMIN_COMMITTED) && row.tuple.has(HEAP_XMAX_INVALID)
}

pub(super) const VALUE_BYTES: Injury = Injury {
    name: "value-bytes",
    summary: "random bytes in a value of fixed length",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::VALUE,
    damage: change_fixed_value,
};

fn change_fixed_value(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, value) = target.value(seed, |_, value| value.column.attlen > 0)?;
    let words = format!("bytes changed of column {}", value.attribute);
    let damage = change_bytes(target, seed, &row, value.range, words)?;
    let damage = damage.may(&[VALUES]);
    Some(damage.blind("any bytes of that length are a value"))
}

pub(super) const TEXT_BYTES: Injury = Injury {
    name: "text-bytes",
    summary: "random bytes in a value of variable length",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::VALUE,
    damage: change_payload,
};

fn change_payload(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, value) = target.value(seed, |row, value| payload(row, value).is_some())?;
    let words = format!("payload changed of column {}", value.attribute);
    let damage = change_bytes(target, seed, &row, payload(&row, &value)?, words)?;
    let damage = damage.may(&[VALUES]);
    Some(damage.blind("any bytes may be payload; whether they decode is a question for the type"))
}

/// The payload of a value that stands in the row as it is.
fn payload(row: &Row<'_>, value: &Value) -> Option<Range<usize>> {
    let bytes = row.tuple.bytes().get(value.range.clone())?;
    (value.column.attlen == -1).then_some(())?;
    let header = match varlena::parse(bytes).ok()?.0 {
        Varlena::Short(payload) if payload.len() >= 4 => 1,
        Varlena::Plain(payload) if payload.len() >= 4 => 4,
        _ => return None,
    };
    Some(value.range.start + header..value.range.end)
}

pub(super) const NUMERIC_DIGIT: Injury = Injury {
    name: "numeric-digit",
    summary: "a digit of a numeric is none",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::VALUE,
    damage: replace_last_digit,
};

fn replace_last_digit(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, value) = target.value(seed, |row, value| {
        target.type_oid(value.attribute) == Some(NUMERIC)
            && is_hinted_live(row)
            && has_digits(row, value)
    })?;
    let words = format!("the last digit set to 0x7FFF in column {}", value.attribute);
    let last = value.range.end.checked_sub(2)?;
    let damage = Damage::edit_row(target, &row, words, |tuple| put_u16(tuple, last, 0x7FFF))?;
    Some(damage.must(&["value-does-not-decode"]))
}

/// In the short form, a header of two bytes and at least one digit.
fn has_digits(row: &Row<'_>, value: &Value) -> bool {
    let bytes = row.tuple.bytes().get(value.range.clone());
    let parsed = bytes.and_then(|bytes| varlena::parse(bytes).ok());
    match parsed {
        Some((Varlena::Short(payload) | Varlena::Plain(payload), _)) => {
            payload.len() >= 4 && payload.get(1).is_some_and(|byte| byte & 0xC0 == 0x80)
        }
        _ => false,
    }
}

pub(super) const TEXT_OF_ANOTHER_ENCODING: Injury = Injury {
    name: "text-of-another-encoding",
    summary: "a character of text is none in the encoding of the database",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::VALUE,
    damage: break_character,
};

fn break_character(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let database = target.catalog?.database;
    let encoding = target.cluster.databases.get(&database)?.encoding;
    (encoding == Some(UTF8)).then_some(())?;
    let (row, value) = target.value(seed, |row, value| {
        let header = row.tuple.bytes().get(value.range.start);
        target.type_oid(value.attribute) == Some(TEXT)
            && is_hinted_live(row)
            && value.range.len() > 1
            && header.is_some_and(|byte| byte & 1 == 1 && *byte > 3)
    })?;
    let words = format!("a byte 0xFF in the text of column {}", value.attribute);
    let last = value.range.end.checked_sub(1)?;
    let damage = Damage::edit_row(target, &row, words, |tuple| put_u8(tuple, last, 0xFF))?;
    Some(damage.must(&["text-not-in-encoding"]))
}

pub(super) const VARLENA_LENGTH_HUGE: Injury = Injury {
    name: "varlena-length-huge",
    summary: "a value claims to be a gigabyte long",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: claim_gigabyte,
};

fn claim_gigabyte(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    replace_header(target, seed, 0xFFFF_FFFC, "1073741823 bytes")
}

/// Puts a header of four bytes in front of a value.
fn replace_header(
    target: &InjuryTarget<'_>,
    seed: u64,
    header: u32,
    claim: &str,
) -> Option<Damage> {
    let (row, value) = target.value(seed, |row, value| {
        value.column.attlen == -1 && value.range.start + 4 <= row.tuple.bytes().len()
    })?;
    let column = value.attribute;
    let words = format!("header replaced by one that claims {claim}, of column {column}");
    let damage = Damage::edit_row(target, &row, words, |tuple| {
        put_u32(tuple, value.range.start, header)
    })?;
    Some(damage.must(&["varlena-length"]))
}

pub(super) const VARLENA_LENGTH_BEYOND: Injury = Injury {
    name: "varlena-length-beyond",
    summary: "a short value claims more bytes than the row has left",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: claim_more_than_row,
};

fn claim_more_than_row(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, value) = target.value(seed, |row, value| {
        value.column.attlen == -1 && row.tuple.bytes().len() - value.range.start < 127
    })?;
    let column = value.attribute;
    let words = format!("header replaced by one that claims 127 bytes, of column {column}");
    let damage = Damage::edit_row(target, &row, words, |tuple| {
        put_u8(tuple, value.range.start, 0xFF)
    })?;
    Some(damage.must(&["varlena-length"]))
}

pub(super) const VARLENA_LENGTH_TINY: Injury = Injury {
    name: "varlena-length-tiny",
    summary: "a value claims fewer bytes than its own header has",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: claim_one_byte,
};

fn claim_one_byte(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    replace_header(target, seed, 1 << 2, "1 byte")
}

pub(super) const COMPRESSED_SIZE: Injury = Injury {
    name: "compressed-size",
    summary: "a value compressed in its row claims an impossible size",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: claim_impossible_raw_size,
};

fn claim_impossible_raw_size(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, value) = target.value(seed, is_compressed)?;
    let words = format!("raw size set to ffffffff of column {}", value.attribute);
    let damage = Damage::edit_row(target, &row, words, |tuple| {
        put_u32(tuple, value.range.start + 4, u32::MAX)
    })?;
    Some(damage.must(&["compressed-value"]))
}
