//! A trial on real values: what pglz and lz4 make of them, at what cost, and how many of them would
//! stay in their rows.
//!
//! Values are picked by a number that follows from their row's place, the same in every run. Truth
//! of what stays in a row: `heap_toast_insert_or_update` in `src/backend/access/heap/heaptoast.c`.

use std::collections::BTreeMap;
use std::time::Duration;

use pgclinic_format::packing::Packer;
use pgclinic_format::{Varlena, varlena};
use pgclinic_model::document::{Figure, Sections};
use pgclinic_model::{FigureKind, Unit};

use super::toasted::Toasted;
use super::{bytes, number, of, share};

/// The section of these figures.
pub(super) const SECTION: &str = "trial";

/// Values of a column that are tried.
const VALUES: usize = 200;
/// Shorter values are of no interest to TOAST.
const RAW_MIN: u64 = 1000;
/// Bytes of a packed value before its data: header, size and method.
const PACKED_HEADER: usize = 8;
/// Each value is packed and unpacked so often, and the quickest counts.
const TIMES: usize = 3;
/// `toast_tuple_target` as it is, for two rows a page, and for one.
const TARGETS: [usize; 3] = [2032, 4080, 8160];

/// What is said of a column's trial.
pub(super) const FIGURES: &[FigureKind] = &[
    number(
        "tried_values",
        "values of 1,000 bytes and more that were tried",
    ),
    bytes("tried_bytes", "their bytes uncompressed"),
    bytes(
        "pglz_bytes",
        "their bytes compressed by pglz as the server packs",
    ),
    share("pglz_ratio", "of a hundred uncompressed"),
    of("pglz_pack_ns", Unit::Number, "nanoseconds to pack 1 KiB"),
    of(
        "pglz_unpack_ns",
        Unit::Number,
        "nanoseconds to unpack 1 KiB",
    ),
    bytes("lz4_bytes", "their bytes compressed by lz4, about"),
    share("lz4_ratio", "of a hundred uncompressed"),
    of("lz4_pack_ns", Unit::Number, "nanoseconds to pack 1 KiB"),
    of("lz4_unpack_ns", Unit::Number, "nanoseconds to unpack 1 KiB"),
    bytes(
        "zstd_bytes",
        "their bytes compressed by zstd, an outlook: no server does",
    ),
    share("zstd_ratio", "of a hundred uncompressed"),
    of("zstd_pack_ns", Unit::Number, "nanoseconds to pack 1 KiB"),
    of(
        "zstd_unpack_ns",
        Unit::Number,
        "nanoseconds to unpack 1 KiB",
    ),
    share(
        "plain_in_row_2032",
        "values that stay in their row as they are",
    ),
    share("plain_in_row_4080", "with toast_tuple_target 4080"),
    share("plain_in_row_8160", "with toast_tuple_target 8160"),
    share(
        "pglz_in_row_2032",
        "values that stay in their row, compressed by pglz where they must",
    ),
    share("pglz_in_row_4080", "with toast_tuple_target 4080"),
    share("pglz_in_row_8160", "with toast_tuple_target 8160"),
    share(
        "lz4_in_row_2032",
        "values that stay in their row, compressed by lz4 where they must",
    ),
    share("lz4_in_row_4080", "with toast_tuple_target 4080"),
    share("lz4_in_row_8160", "with toast_tuple_target 8160"),
];

/// Values that were picked, by the number that picked them.
#[derive(Clone, Default)]
pub(super) struct Picked(BTreeMap<u64, Candidate>);

#[derive(Clone)]
struct Candidate {
    /// The value as it stands in its row.
    stored: Vec<u8>,
    /// Bytes of the row without it.
    rest: usize,
}

impl Picked {
    /// Takes the value if its number is among the lowest. `row` is the length of its row.
    pub(super) fn offer(&mut self, place: u64, stored: &[u8], row: usize) {
        let raw = match varlena::parse(stored) {
            Ok((Varlena::Short(payload) | Varlena::Plain(payload), _)) => payload.len() as u64,
            Ok((Varlena::Compressed(packed), _)) => u64::from(packed.raw_size),
            Ok((Varlena::External(pointer), _)) => u64::from(pointer.va_rawsize),
            Err(_) => 0,
        };
        let number = super::sample::mixed(place);
        let is_full = self.0.len() >= VALUES;
        let beats = self
            .0
            .last_key_value()
            .is_none_or(|(highest, _)| number < *highest);
        if raw < RAW_MIN || (is_full && !beats) {
            return;
        }
        let candidate = Candidate {
            stored: stored.to_vec(),
            rest: row.saturating_sub(stored.len()),
        };
        self.0.insert(number, candidate);
        self.trim();
    }

    pub(super) fn absorb(&mut self, other: Picked) {
        self.0.extend(other.0);
        self.trim();
    }

    fn trim(&mut self) {
        while self.0.len() > VALUES {
            self.0.pop_last();
        }
    }

    /// Tries what was picked. `now` is a clock.
    pub(super) fn try_all(
        self,
        mut toasted: Option<Toasted<'_>>,
        now: fn() -> Duration,
    ) -> Option<Sections> {
        let mut trial = Trial::default();
        for candidate in self.0.into_values() {
            if let Some(raw) = candidate.raw(&mut toasted) {
                trial.add(&raw, candidate.rest, now);
            }
        }
        (trial.values > 0).then(|| {
            let named = FIGURES.iter().zip(trial.figures());
            let named = named.map(|(kind, figure)| (kind.name.to_owned(), figure));
            Sections::from([(SECTION.to_owned(), named.collect())])
        })
    }
}

impl Candidate {
    fn raw(&self, toasted: &mut Option<Toasted<'_>>) -> Option<Vec<u8>> {
        match varlena::parse(&self.stored).ok()?.0 {
            Varlena::Short(payload) | Varlena::Plain(payload) => Some(payload.to_vec()),
            Varlena::Compressed(packed) => packed.unpack().ok(),
            Varlena::External(pointer) => toasted.as_mut()?.value(pointer),
        }
    }
}

/// What one way to pack has come to.
#[derive(Default)]
struct Way {
    bytes: u64,
    pack: Duration,
    unpack: Duration,
    in_row: [u64; TARGETS.len()],
}

impl Way {
    fn count(&mut self, size: usize, rest: usize) {
        self.bytes += size as u64;
        for (in_row, target) in self.in_row.iter_mut().zip(TARGETS) {
            *in_row += u64::from(size + rest <= target);
        }
    }
}

#[derive(Default)]
struct Trial {
    values: u64,
    raw: u64,
    plain: Way,
    pglz: Way,
    lz4: Way,
    zstd: Way,
}

impl Trial {
    fn add(&mut self, raw: &[u8], rest: usize, now: fn() -> Duration) {
        self.values += 1;
        self.raw += raw.len() as u64;
        self.plain.count(raw.len() + 4, rest);
        let ways = [
            (Packer::Pglz, &mut self.pglz),
            (Packer::Lz4, &mut self.lz4),
            (Packer::Zstd, &mut self.zstd),
        ];
        for (packer, way) in ways {
            let (packed, pack) = quickest(now, || packer.pack(raw));
            way.pack += pack;
            let Some(packed) = packed else {
                way.count(raw.len() + 4, rest);
                continue;
            };
            way.count(packed.len() + PACKED_HEADER, rest);
            let (_, unpack) = quickest(now, || packer.unpack(&packed, raw.len()));
            way.unpack += unpack;
        }
    }

    fn figures(&self) -> Vec<Option<Figure>> {
        let count = |number: u64| Some(Figure::Count(number));
        let mut figures = vec![count(self.values), count(self.raw)];
        for way in [&self.pglz, &self.lz4, &self.zstd] {
            let per_kib = |time: Duration| {
                let nanos = time.as_nanos() as f64 * 1024.0 / self.raw as f64;
                Some(Figure::Real(nanos.round()))
            };
            figures.extend([
                count(way.bytes),
                super::percent::percent(way.bytes as f64, self.raw as f64),
                per_kib(way.pack),
                per_kib(way.unpack),
            ]);
        }
        for way in [&self.plain, &self.pglz, &self.lz4] {
            let share = |in_row: u64| super::percent::percent(in_row as f64, self.values as f64);
            figures.extend(way.in_row.map(share));
        }
        figures
    }
}

fn quickest<T>(now: fn() -> Duration, mut work: impl FnMut() -> T) -> (T, Duration) {
    let mut timed = || {
        let start = now();
        let made = work();
        (made, now().saturating_sub(start))
    };
    let (mut made, mut best) = timed();
    for _ in 1..TIMES {
        let (again, time) = timed();
        (made, best) = (again, best.min(time));
    }
    (made, best)
}
