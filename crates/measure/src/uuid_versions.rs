//! Which versions the UUIDs of a column are, and the times that some of them give away.
//!
//! Truth: RFC 9562; `uuid_extract_timestamp` in `src/backend/utils/adt/uuid.c`.

use pgclinic_model::document::Figure;
use pgclinic_model::{FigureKind, Unit};

use super::sums::{Counts, Highest, Lowest};
use super::{ColumnAt, ColumnMeasure, StoredValue, Sums, ValueAt, count, number, of};

sums! {
    /// Measures the versions and times of the UUIDs of a column.
    pub struct UuidVersions {
        /// By version, 1 to 8; of none at 0.
        versions: [u64; 9],
        first: Lowest,
        last: Highest,
        days: Counts,
    }
}

/// `uuid` in `pg_type`.
const UUID: u32 = 2950;
/// Milliseconds from 1582-10-15, the first day of the Gregorian calendar, to 1970.
const GREGORIAN_MS: u64 = 12_219_292_800_000;
const DAY_MS: u64 = 86_400_000;

impl ColumnMeasure for UuidVersions {
    const SECTION: &'static str = "uuid";
    const FIGURES: &'static [FigureKind] = &[
        number("v1", "of version 1: time and node"),
        number("v3", "of version 3: hash of a name"),
        number("v4", "of version 4: random, scattered over an index"),
        number("v5", "of version 5: hash of a name"),
        number("v6", "of version 6: time and node, in order of time"),
        number("v7", "of version 7: in order of time"),
        number("other", "of another version, or of none"),
        of(
            "first_time",
            Unit::Time,
            "the earliest time that a value of version 1, 6 or 7 gives away",
        ),
        of("last_time", Unit::Time, "the latest"),
        of("days", Unit::Day, "values by the day that they give away"),
    ];

    fn fits(at: &ColumnAt<'_>) -> bool {
        at.column.type_oid == UUID
    }

    fn add(&mut self, value: &ValueAt<'_>) -> bool {
        let StoredValue::Fixed(bytes) = value.value else {
            return false;
        };
        let Ok(uuid) = <[u8; 16]>::try_from(bytes) else {
            return false;
        };
        let uuid = Uuid(uuid);
        if let Some(count) = self.versions.get_mut(uuid.version()) {
            *count += value.often;
        }
        if let Some(time) = uuid.time_ms() {
            self.first.note(time);
            self.last.note(time);
            self.days.note_often(time / DAY_MS, value.often);
        }
        true
    }

    fn figures(&self, _: &ColumnAt<'_>) -> Vec<Option<Figure>> {
        let [none, v1, v2, v3, v4, v5, v6, v7, v8] = self.versions;
        vec![
            count(v1),
            count(v3),
            count(v4),
            count(v5),
            count(v6),
            count(v7),
            count(none + v2 + v8),
            self.first.0.map(Figure::Count),
            self.last.figure(),
            self.days.figure(),
        ]
    }
}

/// The bytes in the order in which they are printed.
struct Uuid([u8; 16]);

impl Uuid {
    /// 1 to 8; 0 for what is not of the usual variant.
    fn version(&self) -> usize {
        let [.., high, _, variant, _, _, _, _, _, _, _] = self.0;
        let version = high >> 4;
        match (variant >> 6, version) {
            (0b10, 1..=8) => version.into(),
            _ => 0,
        }
    }

    /// Milliseconds since 1970, of the versions that hold a time.
    fn time_ms(&self) -> Option<u64> {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        let whole = u64::from_be_bytes;
        let ticks = match self.version() {
            1 => whole([g & 0x0F, h, e, f, a, b, c, d]),
            // 48 bits, then the 12 behind the version.
            6 => whole([a, b, c, d, e, f, 0, 0]) >> 4 | whole([0, 0, 0, 0, 0, 0, g & 0x0F, h]),
            7 => return Some(whole([0, 0, a, b, c, d, e, f])),
            _ => return None,
        };
        (ticks / 10_000).checked_sub(GREGORIAN_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uuid(text: &str) -> Uuid {
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        Uuid(
            u128::from_str_radix(&digits, 16)
                .expect("digits")
                .to_be_bytes(),
        )
    }

    #[test]
    fn the_examples_of_the_standard_give_their_time_away() {
        // RFC 9562, appendix A: all three are of 2022-02-22 19:22:22 UTC.
        for text in [
            "C232AB00-9414-11EC-B3C8-9F6BDECED846",
            "1EC9414C-232A-6B00-B3C8-9F6BDECED846",
            "017F22E2-79B0-7CC3-98C4-DC0C0C07398F",
        ] {
            assert_eq!(uuid(text).time_ms(), Some(1_645_557_742_000), "{text}");
        }
        assert_eq!(uuid("919108f7-52d1-4320-9bac-f847db4148a8").version(), 4);
        assert_eq!(uuid("919108f7-52d1-4320-9bac-f847db4148a8").time_ms(), None);
        assert_eq!(uuid("00000000-0000-0000-0000-000000000000").version(), 0);
    }
}
