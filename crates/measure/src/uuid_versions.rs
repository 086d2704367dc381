//! Which versions the UUIDs of a column are, and the times that some of them give away.
//!
//! Truth: RFC 9562; `uuid_extract_timestamp` in `src/backend/utils/adt/uuid.c`.

use pgclinic_model::document::Figure;
use pgclinic_model::{FigureKind, Unit};

use super::{ColumnAt, ColumnMeasure, StoredValue, Sums, number, of};

/// Measures the versions and times of the UUIDs of a column.
pub struct UuidVersions;

/// `uuid` in `pg_type`.
const UUID: u32 = 2950;
/// Milliseconds from 1582-10-15, the first day of the Gregorian calendar, to 1970.
const GREGORIAN_MS: u64 = 12_219_292_800_000;
const DAY_MS: u64 = 86_400_000;

/// Versions 1 to 8 count in slots 1 to 8.
const NO_VERSION: u8 = 0;
const TIMES: u8 = 9;

impl ColumnMeasure for UuidVersions {
    fn section(&self) -> &'static str {
        "uuid"
    }

    fn figures(&self) -> &'static [FigureKind] {
        const {
            &[
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
            ]
        }
    }

    fn fits(&self, at: &ColumnAt<'_>) -> bool {
        at.column.type_oid == UUID
    }

    fn value(&self, value: StoredValue<'_>, often: u64, _: &ColumnAt<'_>, sums: &mut Sums) {
        let StoredValue::Fixed(bytes) = value else {
            return;
        };
        let Ok(uuid) = <[u8; 16]>::try_from(bytes) else {
            return;
        };
        let uuid = Uuid(uuid);
        sums.add(uuid.version(), often);
        if let Some(time) = uuid.time_ms() {
            sums.lower(TIMES, time);
            sums.raise(TIMES, time);
            sums.note_often(TIMES, time / DAY_MS, often);
        }
    }

    fn total(&self, sums: &Sums, _: &ColumnAt<'_>) -> Vec<Option<Figure>> {
        let count = |version| Some(Figure::Count(sums.sum(version)));
        let others = [NO_VERSION, 2, 8].map(|version| sums.sum(version));
        vec![
            count(1),
            count(3),
            count(4),
            count(5),
            count(6),
            count(7),
            Some(Figure::Count(others.iter().sum())),
            sums.lowest(TIMES).map(Figure::Count),
            sums.highest(TIMES).map(Figure::Count),
            sums.spread(TIMES).as_ref().and_then(super::spread),
        ]
    }
}

/// The bytes in the order in which they are printed.
struct Uuid([u8; 16]);

impl Uuid {
    /// 1 to 8; 0 for what is not of the usual variant.
    fn version(&self) -> u8 {
        let [.., high, _, variant, _, _, _, _, _, _, _] = self.0;
        let version = high >> 4;
        match (variant >> 6, version) {
            (0b10, 1..=8) => version,
            _ => NO_VERSION,
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
