//! How the long values of a column are kept: in the row or outside, packed by which method, and
//! what that saves.
//!
//! Truth: `heap_toast_insert_or_update` in `src/backend/access/heap/heaptoast.c`,
//! `pg_column_compression` in `varlena.c`.

use pgclinic_cluster::{Cluster, quoted};
use pgclinic_model::document::Figure;
use pgclinic_model::{FigureKind, Unit};

use super::percent::percent;
use super::sums::Counts;
use super::{
    ColumnAt, ColumnMeasure, StoredValue, Sums, ValueAt, bytes, count, number, of, round_down,
    share,
};

sums! {
    /// Measures where and how the TOASTed values of a column are stored.
    pub struct ToastMakeUp {
        plain: Kept,
        /// By method: pglz, lz4.
        packed: [Kept; 2],
        outside: Kept,
        /// By method: pglz, lz4.
        outside_packed: [Kept; 2],
        chunks: u64,
        last_chunk_gap: u64,
        barely_outside: u64,
        sizes: Counts,
    }
}

/// What a row may be long before values are packed or moved out: `TOAST_TUPLE_TARGET` of 8 kB
/// pages.
const TARGET: u64 = 2032;
/// Bytes of a chunk beside its data: line pointer, row header, two numbers, varlena header.
const CHUNK_OVERHEAD: u64 = 4 + 24 + 4 + 4 + 4;

sums! {
    /// Values that are kept one way.
    #[derive(Copy)]
    struct Kept {
        values: u64,
        /// Their bytes as stored.
        stored: u64,
        /// Their bytes unpacked.
        raw: u64,
    }
}

impl Kept {
    /// Bytes as stored, of a hundred bytes unpacked.
    fn ratio(self) -> Option<Figure> {
        percent(self.stored as f64, self.raw as f64)
    }
}

impl ColumnMeasure for ToastMakeUp {
    const SECTION: &'static str = "toast";
    const FIGURES: &'static [FigureKind] = &[
        number("plain_values", "in the row as they are"),
        bytes("plain_bytes", "their bytes"),
        number("pglz_values", "in the row, compressed by pglz"),
        bytes("pglz_bytes", "their bytes in the row"),
        share("pglz_ratio", "their bytes, of a hundred uncompressed"),
        number("lz4_values", "in the row, compressed by lz4"),
        bytes("lz4_bytes", "their bytes in the row"),
        share("lz4_ratio", "their bytes, of a hundred uncompressed"),
        number("external_values", "moved out as they are"),
        bytes("external_bytes", "their bytes outside"),
        number("external_pglz_values", "moved out, compressed by pglz"),
        bytes("external_pglz_bytes", "their bytes outside"),
        share(
            "external_pglz_ratio",
            "their bytes, of a hundred uncompressed",
        ),
        number("external_lz4_values", "moved out, compressed by lz4"),
        bytes("external_lz4_bytes", "their bytes outside"),
        share(
            "external_lz4_ratio",
            "their bytes, of a hundred uncompressed",
        ),
        bytes("raw_bytes", "all values uncompressed"),
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
            "compressed by another method than new ones",
        ),
        of(
            "recast",
            Unit::Statement,
            "packs all of them again, by the method of today",
        ),
        number("value_bytes", "values by their bytes uncompressed"),
    ];

    fn fits(at: &ColumnAt<'_>) -> bool {
        let has_toast = at.fork.relation.is_some_and(|relation| relation.toast != 0);
        has_toast && at.column.layout.attlen == -1 && at.column.storage != b'p'
    }

    fn add(&mut self, value: &ValueAt<'_>) -> bool {
        let often = value.often;
        let (kept, stored, raw) = match value.value {
            StoredValue::Fixed(_) => return false,
            StoredValue::Plain { raw, stored } => (Some(&mut self.plain), stored, raw),
            StoredValue::Packed(packed, stored) => {
                let kept = self.packed.get_mut(usize::from(packed.method));
                (kept, stored, u64::from(packed.raw_size))
            }
            StoredValue::External(pointer) => {
                let stored = u64::from(pointer.va_extsize);
                let raw = u64::from(pointer.va_rawsize).saturating_sub(4);
                let chunk = u64::from(value.at.fork.build.toast_chunk.max(1));
                let chunks = stored.div_ceil(chunk);
                self.chunks += chunks * often;
                self.last_chunk_gap += (chunks * chunk - stored) * often;
                self.barely_outside += u64::from(stored <= 2 * TARGET) * often;
                let kept = if pointer.is_compressed() {
                    self.outside_packed.get_mut(usize::from(pointer.method))
                } else {
                    Some(&mut self.outside)
                };
                (kept, stored, raw)
            }
        };
        if let Some(kept) = kept {
            kept.values += often;
            kept.stored += stored * often;
            kept.raw += raw * often;
            self.sizes.note_often(round_down(raw), often);
        }
        true
    }

    fn figures(&self, at: &ColumnAt<'_>) -> Vec<Option<Figure>> {
        let ([pglz, lz4], [outside_pglz, outside_lz4]) = (self.packed, self.outside_packed);
        let all = [
            self.plain,
            pglz,
            lz4,
            self.outside,
            outside_pglz,
            outside_lz4,
        ];
        let old = self.old_values(at);
        let as_is = |kept: Kept| [count(kept.values), count(kept.stored)];
        let packed = |kept: Kept| [count(kept.values), count(kept.stored), kept.ratio()];
        let mut figures = as_is(self.plain).to_vec();
        figures.extend([pglz, lz4].into_iter().flat_map(packed));
        figures.extend(as_is(self.outside));
        figures.extend([outside_pglz, outside_lz4].into_iter().flat_map(packed));
        figures.extend([
            count(all.iter().map(|kept| kept.raw).sum()),
            count(all.iter().map(|kept| kept.stored).sum()),
            count(self.chunks),
            count(self.chunks * CHUNK_OVERHEAD),
            count(self.last_chunk_gap),
            count(self.barely_outside),
            old.map(Figure::Count),
            old.filter(|values| *values > 0)
                .and_then(|_| recast(at))
                .map(Figure::Text),
            self.sizes.figure(),
        ]);
        figures
    }
}

impl ToastMakeUp {
    /// Values that are packed by a method which new values are not; nothing where that cannot be
    /// told.
    fn old_values(&self, at: &ColumnAt<'_>) -> Option<u64> {
        let other = 1 - todays_method(at)?;
        let kept = [self.packed.get(other), self.outside_packed.get(other)];
        Some(kept.into_iter().flatten().map(|kept| kept.values).sum())
    }
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
