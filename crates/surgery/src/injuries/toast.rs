//! Injuries of TOAST: pointers in rows, and the chunks that they lead to
//! (`src/include/access/detoast.h`).
//!
//! ```text
//! 0 0x01  1 tag 18  2 va_rawsize  6 va_extinfo: stored size and method  10 va_valueid  14 va_toastrelid
//! ```

use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::heap_tuple::HEAP_HASEXTERNAL;
use pgclinic_format::toast::ToastPointer;

use super::tuple_header::set_infomask;
use crate::advice;
use crate::byte_edits::{put_bytes, put_u8};
use crate::followers::{ATTRIBUTES, TOAST_CHUNKS, VALUES};
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{
    HEAP_PAGE, InjuryTarget, Row, TOAST_PAGE, Value, is_external, is_plain,
};

const TAG_AT: usize = 1;
const RAW_SIZE_AT: usize = 2;
const STORED_SIZE_AT: usize = 6;
const VALUE_ID_AT: usize = 10;
const RELATION_AT: usize = 14;
/// `va_header` of a chunk, 4 bytes.
const CHUNK_HEADER_BYTES: usize = 4;
/// `chunk_seq`, an `int4`.
const CHUNK_SEQ_BYTES: usize = 4;
/// Bytes of the length of the raw value, with its method, at the beginning of the first chunk.
const SIZE_BYTES: usize = 4;
/// Text read as such a length gives more than this.
const RAW_MAX: u32 = 1 << 24;
/// By so many bytes sizes are made smaller.
const LESS: u32 = 10;

fn pointer(row: &Row<'_>, value: &Value) -> Option<ToastPointer> {
    let at = value.range.start + RAW_SIZE_AT;
    ToastPointer::parse(row.tuple.bytes().get(at..)?)
}

/// Replaces a number of a pointer.
fn set_in_pointer(
    target: &InjuryTarget<'_>,
    row: &Row<'_>,
    value: &Value,
    at: usize,
    name: &str,
    number: u32,
) -> Option<Damage> {
    let words = format!("{name} set to {number} of column {}", value.attribute);
    Damage::edit_row(target, row, words, |tuple| {
        put_u32(tuple, value.range.start + at, number)
    })
}

pub(super) const VARLENA_TAG: Injury = Injury {
    name: "varlena-tag",
    summary: "a pointer to TOAST has a tag that is never stored",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: replace_tag,
};

fn replace_tag(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, value) = target.value(seed, is_external)?;
    let words = format!("tag set to 3 in the pointer of column {}", value.attribute);
    let at = value.range.start + TAG_AT;
    let damage = Damage::edit_row(target, &row, words, |tuple| put_u8(tuple, at, 3))?;
    Some(damage.must(&["varlena-tag"]))
}

pub(super) const TOAST_RELATION: Injury = Injury {
    name: "toast-relation",
    summary: "a pointer to TOAST names another relation",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: name_another_relation,
};

fn name_another_relation(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, value) = target.value(seed, is_external)?;
    let other = target.relation?.toast ^ 0x0010_0000;
    let damage = set_in_pointer(target, &row, &value, RELATION_AT, "TOAST relation", other)?;
    Some(damage.must(&["toast-pointer"]))
}

pub(super) const TOAST_SIZE: Injury = Injury {
    name: "toast-size",
    summary: "a pointer to TOAST claims more stored bytes than the value has",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: claim_more_than_raw_size,
};

fn claim_more_than_raw_size(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, value) = target.value(seed, is_external)?;
    let size = pointer(&row, &value)?.va_rawsize.checked_add(1000)?;
    // The two bits above are the method of compression.
    (size < 1 << 30).then_some(())?;
    let damage = set_in_pointer(target, &row, &value, STORED_SIZE_AT, "stored size", size)?;
    Some(damage.must(&["toast-pointer"]))
}

pub(super) const TOAST_SIZE_SMALLER: Injury = Injury {
    name: "toast-size-smaller",
    summary: "a pointer to TOAST claims fewer bytes than the value has",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: claim_fewer_bytes,
};

fn claim_fewer_bytes(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, value) = target.value(seed, is_external)?;
    let (at, pointer) = (value.range.start, pointer(&row, &value)?);
    // As many chunks as before.
    let chunk = target.cluster.build.toast_chunk;
    (pointer.va_extsize.checked_rem(chunk)? > LESS).then_some(())?;
    let stored = row.tuple.bytes().get(at + STORED_SIZE_AT..)?;
    let size_and_method = u32::from_le_bytes(*stored.first_chunk()?);
    let words = format!("sizes {LESS} bytes smaller of column {}", value.attribute);
    let damage = Damage::edit_row(target, &row, words, |tuple| {
        put_u32(tuple, at + STORED_SIZE_AT, size_and_method - LESS);
        if !pointer.is_compressed() {
            put_u32(tuple, at + RAW_SIZE_AT, pointer.va_rawsize - LESS);
        }
    })?;
    Some(damage.must(&["toast-value-size"]))
}

pub(super) const TOAST_VALUE: Injury = Injury {
    name: "toast-value",
    summary: "a pointer to TOAST names another value",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::TOAST,
    damage: name_another_value,
};

fn name_another_value(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, value) = target.value(seed, is_external)?;
    let other = pointer(&row, &value)?.va_valueid ^ 0x4000_0000;
    let damage = set_in_pointer(target, &row, &value, VALUE_ID_AT, "value id", other)?;
    Some(damage.must(&["toast-value-missing", "toast-value-orphaned"]))
}

pub(super) const EXTERNAL_FLAG: Injury = Injury {
    name: "external-flag",
    summary: "a row with a pointer to TOAST says that it has none",
    wants: Wants::page(HEAP_PAGE),
    recovery_advice: advice::ROW,
    damage: clear_external_flag,
};

fn clear_external_flag(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, value) = target.value(seed, is_external)?;
    let mask = row.tuple.t_infomask() & !HEAP_HASEXTERNAL;
    let column = value.attribute;
    let words = format!("HEAP_HASEXTERNAL cleared, in spite of column {column}");
    let damage = set_infomask(target, &row, mask, words)?;
    Some(damage.must(&["toast-pointer"]))
}

/// `chunk_seq` of a chunk, by the seed.
fn chunk_number<'a>(target: &'a InjuryTarget<'_>, seed: u64) -> Option<(Row<'a>, usize)> {
    let (row, value) = target.value(seed, |_, value| value.attribute == 2)?;
    Some((row, value.range.start))
}

/// Replaces the header of the data of a chunk.
fn set_chunk_header(
    target: &InjuryTarget<'_>,
    row: &Row<'_>,
    value: &Value,
    header: u32,
    words: &str,
) -> Option<Damage> {
    let at = value.range.start;
    Damage::edit_row(target, row, words, |tuple| put_u32(tuple, at, header))
}

pub(super) const CHUNK_NUMBER_NEGATIVE: Injury = Injury {
    name: "chunk-number-negative",
    summary: "a TOAST chunk has a negative number",
    wants: Wants::page(TOAST_PAGE),
    recovery_advice: advice::TOAST,
    damage: negate_chunk_number,
};

fn negate_chunk_number(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, at) = chunk_number(target, seed)?;
    let number = 0x8000_0000 | u32::try_from(seed % 1000).ok()?;
    let words = format!("chunk_seq set to {}", number.cast_signed());
    let damage = Damage::edit_row(target, &row, words, |tuple| put_u32(tuple, at, number))?;
    Some(damage.must(&["chunk-number-out-of-range"]))
}

pub(super) const CHUNK_NUMBER_SHIFTED: Injury = Injury {
    name: "chunk-number-shifted",
    summary: "a TOAST chunk has the number of its neighbour",
    wants: Wants::page(TOAST_PAGE),
    recovery_advice: advice::TOAST,
    damage: shift_chunk_number,
};

fn shift_chunk_number(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, at) = chunk_number(target, seed)?;
    let bytes = row.tuple.bytes().get(at..)?.first_chunk()?;
    let number = u32::from_le_bytes(*bytes).checked_add(1)?;
    let words = format!("chunk_seq set to {number}");
    let damage = Damage::edit_row(target, &row, words, |tuple| put_u32(tuple, at, number))?;
    Some(damage.must(&["toast-value-incomplete"]))
}

pub(super) const CHUNK_EMPTY: Injury = Injury {
    name: "chunk-empty",
    summary: "a TOAST chunk holds nothing",
    wants: Wants::page(TOAST_PAGE),
    recovery_advice: advice::TOAST,
    damage: empty_chunk,
};

fn empty_chunk(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, value) = target.value(seed, is_plain)?;
    let words = "length of chunk_data set to its header alone";
    let damage = set_chunk_header(target, &row, &value, 4 << 2, words)?;
    Some(damage.must(&["chunk-size-out-of-range"]))
}

pub(super) const CHUNK_OVERWRITTEN: Injury = Injury {
    name: "chunk-overwritten",
    summary: "the bytes of a compressed TOASTed value were overwritten in its first chunk",
    wants: Wants::page(TOAST_PAGE),
    recovery_advice: advice::TOAST,
    damage: overwrite_compressed_bytes,
};

fn overwrite_compressed_bytes(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, value) = target.value(seed, is_plain)?;
    let data = value.range.start + CHUNK_HEADER_BYTES..value.range.end;
    let bytes = row.tuple.bytes().get(data.clone())?;
    let size = u32::from_le_bytes(*bytes.first_chunk()?) & 0x3FFF_FFFF;
    let chunk = target.cluster.build.toast_chunk;
    // Zeros behind the length are no compressed text, and text gives no such length.
    (chunk..RAW_MAX).contains(&size).then_some(())?;
    let words = "the compressed bytes set to 0xFF";
    let damage = Damage::edit_row(target, &row, words, |tuple| {
        let behind = tuple.get_mut(data.start + SIZE_BYTES..data.end);
        behind.into_iter().for_each(|bytes| bytes.fill(0xFF));
    })?;
    Some(damage.must(&["toast-value-corrupt"]))
}

pub(super) const CHUNK_SHORTENED: Injury = Injury {
    name: "chunk-shortened",
    summary: "a TOAST chunk lost its last bytes",
    wants: Wants::page(TOAST_PAGE),
    recovery_advice: advice::TOAST,
    damage: shorten_chunk,
};

fn shorten_chunk(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, value) = target.value(seed, is_plain)?;
    let len = u32::try_from(value.range.len()).ok()?.checked_sub(LESS)?;
    (len > 10).then_some(())?;
    let words = "length of chunk_data set to 10 bytes less";
    let damage = set_chunk_header(target, &row, &value, len << 2, words)?;
    Some(damage.must(&["bytes-after-last-value"]))
}

pub(super) const CHUNK_COMPRESSED: Injury = Injury {
    name: "chunk-compressed",
    summary: "a TOAST chunk is said to be compressed itself",
    wants: Wants::page(TOAST_PAGE),
    recovery_advice: advice::TOAST,
    damage: mark_chunk_compressed,
};

fn mark_chunk_compressed(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, value) = target.value(seed, is_plain)?;
    let header = u32::try_from(value.range.len()).ok()? << 2 | 2;
    let words = "header of chunk_data marked as compressed";
    let damage = set_chunk_header(target, &row, &value, header, words)?;
    let damage = damage.must(&["toasted-toast-chunk"]);
    Some(damage.may(&[&["compressed-value"]]))
}

pub(super) const CHUNK_EXTERNAL: Injury = Injury {
    name: "chunk-external",
    summary: "a TOAST chunk is said to be in TOAST itself",
    wants: Wants::page(TOAST_PAGE),
    recovery_advice: advice::TOAST,
    damage: mark_chunk_external,
};

fn mark_chunk_external(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, value) = target.value(seed, is_plain)?;
    let words = "header of chunk_data replaced by that of a pointer to TOAST";
    let damage = Damage::edit_row(target, &row, words, |tuple| {
        put_u16(tuple, value.range.start, 0x1201)
    })?;
    let damage = damage.must(&["toasted-toast-chunk"]);
    Some(damage.may(&[&["toast-pointer"]]))
}

pub(super) const CHUNK_HEADER_RANDOM: Injury = Injury {
    name: "chunk-header-random",
    summary: "number and header of a TOAST chunk are random",
    wants: Wants::page(TOAST_PAGE),
    recovery_advice: advice::TOAST,
    damage: randomize_chunk_header,
};

fn randomize_chunk_header(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, at) = chunk_number(target, seed)?;
    let mut random = fastrand::Rng::with_seed(seed);
    // No chunk has a number below zero.
    let number = random.u32(..) | 1 << 31;
    let header = random.u32(..);
    let words = format!(
        "chunk_seq set to {}, the header of chunk_data to {header:#010x}",
        number.cast_signed()
    );
    let damage = Damage::edit_row(target, &row, words, |tuple| {
        put_u32(tuple, at, number);
        put_u32(tuple, at + CHUNK_SEQ_BYTES, header);
    })?;
    let damage = damage.must(&["chunk-number-out-of-range"]);
    Some(damage.may(&[ATTRIBUTES, TOAST_CHUNKS]))
}

pub(super) const CHUNK_BYTES_RANDOM: Injury = Injury {
    name: "chunk-bytes-random",
    summary: "the bytes of a TOAST chunk are random",
    wants: Wants::page(TOAST_PAGE),
    recovery_advice: advice::TOAST,
    damage: randomize_chunk_bytes,
};

fn randomize_chunk_bytes(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, value) = target.value(seed, is_plain)?;
    let at = value.range.start + CHUNK_HEADER_BYTES;
    let mut bytes = vec![0; value.range.end.checked_sub(at)?];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    let words = format!("{} bytes of chunk_data set to random ones", bytes.len());
    let damage = Damage::edit_row(target, &row, words, |tuple| put_bytes(tuple, at, &bytes))?;
    let damage = damage.may(&[VALUES]);
    Some(damage.blind("any bytes are a value where nothing was compressed"))
}
