//! How the long values of a column are kept: in the row or outside, packed by which method, and what that saves.
//!
//! Truth: `heap_toast_insert_or_update` in `src/backend/access/heap/heaptoast.c`, `pg_column_compression` in `varlena.c`.

use pgclinic_cluster::{Cluster, quoted};
use pgclinic_format::toast::ToastPointer;
use pgclinic_model::document::Figure;
use pgclinic_model::{FigureKind, Unit};

use super::percent::percent;
use super::{ColumnAt, ColumnMeasure, StoredValue, Sums, bytes, number, of, round_down, share};

/// Measures where and how the TOASTed values of a column are stored.
pub struct ToastMakeUp;

/// What a row may be long before values are packed or moved out: `TOAST_TUPLE_TARGET` of 8 kB pages.
const TARGET: u64 = 2032;
/// Bytes of a chunk beside its data: line pointer, row header, two numbers, varlena header.
const CHUNK_OVERHEAD: u64 = 4 + 24 + 4 + 4 + 4;

const PLAIN: Kept = Kept(0);
const PACKED: [Kept; 2] = [Kept(3), Kept(6)];
const OUTSIDE: Kept = Kept(9);
const OUTSIDE_PACKED: [Kept; 2] = [Kept(12), Kept(15)];
const CHUNKS: u8 = 18;
const LAST_CHUNK_GAP: u8 = 19;
const BARELY_OUTSIDE: u8 = 20;
const SIZES: u8 = 21;

/// Values that are kept one way: three slots, for their number, their bytes as stored, and their bytes unpacked.
#[derive(Clone, Copy)]
struct Kept(u8);

impl Kept {
    fn add(self, sums: &mut Sums, stored: u64, raw: u64, often: u64) {
        sums.add(self.0, often);
        sums.add(self.0 + 1, stored * often);
        sums.add(self.0 + 2, raw * often);
        sums.note_often(SIZES, round_down(raw), often);
    }

    fn values(self, sums: &Sums) -> u64 {
        sums.sum(self.0)
    }

    fn stored(self, sums: &Sums) -> u64 {
        sums.sum(self.0 + 1)
    }

    fn raw(self, sums: &Sums) -> u64 {
        sums.sum(self.0 + 2)
    }

    /// Bytes as stored, of a hundred bytes unpacked.
    fn ratio(self, sums: &Sums) -> Option<Figure> {
        percent(self.stored(sums) as f64, self.raw(sums) as f64)
    }
}

impl ColumnMeasure for ToastMakeUp {
    fn section(&self) -> &'static str {
        "toast"
    }

    fn figures(&self) -> &'static [FigureKind] {
        const {
            &[
                number("plain_values", "in the row as they are"),
                bytes("plain_bytes", "their bytes"),
                number("pglz_values", "in the row, packed by pglz"),
                bytes("pglz_bytes", "their bytes in the row"),
                share("pglz_ratio", "their bytes, of a hundred unpacked"),
                number("lz4_values", "in the row, packed by lz4"),
                bytes("lz4_bytes", "their bytes in the row"),
                share("lz4_ratio", "their bytes, of a hundred unpacked"),
                number("external_values", "moved out as they are"),
                bytes("external_bytes", "their bytes outside"),
                number("external_pglz_values", "moved out, packed by pglz"),
                bytes("external_pglz_bytes", "their bytes outside"),
                share("external_pglz_ratio", "their bytes, of a hundred unpacked"),
                number("external_lz4_values", "moved out, packed by lz4"),
                bytes("external_lz4_bytes", "their bytes outside"),
                share("external_lz4_ratio", "their bytes, of a hundred unpacked"),
                bytes("raw_bytes", "all values unpacked"),
                bytes("stored_bytes", "all values as stored"),
                number("chunks", "rows of the TOAST table that they take"),
                bytes(
                    "chunk_overhead_bytes",
                    "what these rows take beside the values",
                ),
                bytes(
                    "last_chunk_gap_bytes",
                    "by how much last chunks are shorter than a whole one",
                ),
                number(
                    "barely_external_values",
                    "moved out, but shorter than half a page: toast_tuple_target 4080 keeps them in the row",
                ),
                number(
                    "old_method_values",
                    "packed by another method than new ones",
                ),
                of(
                    "recast",
                    Unit::Statement,
                    "packs all of them anew, by the method of today",
                ),
                number("value_bytes", "values by their bytes unpacked"),
            ]
        }
    }

    fn fits(&self, at: &ColumnAt<'_>) -> bool {
        let has_toast = at.fork.relation.is_some_and(|relation| relation.toast != 0);
        has_toast && at.column.layout.attlen == -1 && at.column.storage != b'p'
    }

    fn value(&self, value: StoredValue<'_>, often: u64, at: &ColumnAt<'_>, sums: &mut Sums) {
        match value {
            StoredValue::Fixed(_) => {}
            StoredValue::Plain { raw, stored } => PLAIN.add(sums, stored, raw, often),
            StoredValue::Packed(packed, stored) => {
                if let Some(kept) = PACKED.get(usize::from(packed.method)) {
                    kept.add(sums, stored, u64::from(packed.raw_size), often);
                }
            }
            StoredValue::External(pointer) => external(pointer, often, at, sums),
        }
    }

    fn total(&self, sums: &Sums, at: &ColumnAt<'_>) -> Vec<Option<Figure>> {
        let count = |number: u64| Some(Figure::Count(number));
        let [pglz, lz4] = PACKED;
        let [outside_pglz, outside_lz4] = OUTSIDE_PACKED;
        let all = [PLAIN, pglz, lz4, OUTSIDE, outside_pglz, outside_lz4];
        let whole = |of: fn(Kept, &Sums) -> u64| all.iter().map(|kept| of(*kept, sums)).sum();
        let old = old_values(sums, at);
        let mut figures = vec![count(PLAIN.values(sums)), count(PLAIN.stored(sums))];
        for kept in [pglz, lz4] {
            figures.extend([
                count(kept.values(sums)),
                count(kept.stored(sums)),
                kept.ratio(sums),
            ]);
        }
        figures.extend([count(OUTSIDE.values(sums)), count(OUTSIDE.stored(sums))]);
        for kept in [outside_pglz, outside_lz4] {
            figures.extend([
                count(kept.values(sums)),
                count(kept.stored(sums)),
                kept.ratio(sums),
            ]);
        }
        figures.extend([
            count(whole(Kept::raw)),
            count(whole(Kept::stored)),
            count(sums.sum(CHUNKS)),
            count(sums.sum(CHUNKS) * CHUNK_OVERHEAD),
            count(sums.sum(LAST_CHUNK_GAP)),
            count(sums.sum(BARELY_OUTSIDE)),
            old.map(Figure::Count),
            old.filter(|values| *values > 0)
                .and_then(|_| recast(at))
                .map(Figure::Text),
            sums.spread(SIZES).as_ref().and_then(super::spread),
        ]);
        figures
    }
}

fn external(pointer: ToastPointer, often: u64, at: &ColumnAt<'_>, sums: &mut Sums) {
    let size = u64::from(pointer.va_extsize);
    let raw = u64::from(pointer.va_rawsize).saturating_sub(4);
    let kept = match pointer.is_compressed() {
        true => OUTSIDE_PACKED.get(usize::from(pointer.method)),
        false => Some(&OUTSIDE),
    };
    if let Some(kept) = kept {
        kept.add(sums, size, raw, often);
    }
    let chunk = u64::from(at.fork.build.toast_chunk.max(1));
    let chunks = size.div_ceil(chunk);
    sums.add(CHUNKS, chunks * often);
    sums.add(LAST_CHUNK_GAP, (chunks * chunk - size) * often);
    sums.add(BARELY_OUTSIDE, u64::from(size <= 2 * TARGET) * often);
}

/// Values that are packed by a method which new values are not; nothing where that cannot be told.
fn old_values(sums: &Sums, at: &ColumnAt<'_>) -> Option<u64> {
    let today = todays_method(at)?;
    let others = [0, 1].into_iter().filter(|method| *method != today);
    let kept = others.flat_map(|method| [PACKED.get(method), OUTSIDE_PACKED.get(method)]);
    Some(kept.flatten().map(|kept| kept.values(sums)).sum())
}

/// 0 pglz, 1 lz4: by the column, else by the server's settings.
fn todays_method(at: &ColumnAt<'_>) -> Option<usize> {
    match at.column.compression {
        b'p' => Some(0),
        b'l' => Some(1),
        _ => default_method(at.fork.cluster?),
    }
}

fn default_method(cluster: &Cluster) -> Option<usize> {
    match cluster.setting("default_toast_compression").as_deref() {
        None | Some("pglz") => Some(0),
        Some("lz4") => Some(1),
        Some(_) => None,
    }
}

/// A value that is only copied keeps its bytes: it must be made anew.
fn recast(at: &ColumnAt<'_>) -> Option<String> {
    let table = at.fork.relation?.sql_name();
    let name = quoted(&at.column.name);
    let anew = match at.type_name {
        "text" | "varchar" | "bpchar" => format!("{name} || ''"),
        "bytea" => format!("{name} || ''::bytea"),
        other => format!("{name}::text::{}", quoted(other)),
    };
    let today = match todays_method(at)? {
        0 => "pglz",
        _ => "lz4",
    };
    Some(format!(
        "UPDATE {table} SET {name} = {anew} WHERE pg_column_compression({name}) <> '{today}'"
    ))
}
