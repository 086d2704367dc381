//! Types that columns are guessed to be of: how their values lie in a row, and how plausible some bytes are for them.

use std::ops::Range;

use pgclinic_format::datum::{Limits, builtin, to_value};
use pgclinic_format::{Oid, Varlena, varlena};

/// The types that most columns have; `timestamp`, `varchar` and `json` look like others of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    Bool,
    Char,
    Int2,
    Int4,
    Date,
    Float4,
    Int8,
    Timestamptz,
    Float8,
    Uuid,
    Interval,
    Name,
    Text,
    Numeric,
    Jsonb,
    Inet,
    Int4Array,
    TextArray,
    Tsvector,
    Bytea,
}

/// Microseconds since 2000-01-01 of 1995 and of 2040, and the days.
const MOMENTS: Range<i64> = -157_766_400_000_000..1_262_304_000_000_000;
/// Days since 2000-01-01 of 2008 and of 2035: numbers below are more often numbers.
const DAYS: Range<i32> = 2_922..12_784;
/// Bytes of a value that cannot be what it is taken for.
const IMPOSSIBLE: f64 = -8.0;

impl Kind {
    pub(super) const ALL: [Kind; 20] = [
        Kind::Bool,
        Kind::Char,
        Kind::Int2,
        Kind::Int4,
        Kind::Date,
        Kind::Float4,
        Kind::Int8,
        Kind::Timestamptz,
        Kind::Float8,
        Kind::Uuid,
        Kind::Interval,
        Kind::Name,
        Kind::Text,
        Kind::Numeric,
        Kind::Jsonb,
        Kind::Inet,
        Kind::Int4Array,
        Kind::TextArray,
        Kind::Tsvector,
        Kind::Bytea,
    ];

    /// As SQL has it.
    pub(super) fn type_name(self) -> &'static str {
        match self {
            Kind::Bool => "boolean",
            Kind::Char => "\"char\"",
            Kind::Int2 => "smallint",
            Kind::Int4 => "integer",
            Kind::Date => "date",
            Kind::Float4 => "real",
            Kind::Int8 => "bigint",
            Kind::Timestamptz => "timestamp with time zone",
            Kind::Float8 => "double precision",
            Kind::Uuid => "uuid",
            Kind::Interval => "interval",
            Kind::Name => "name",
            Kind::Text => "text",
            Kind::Numeric => "numeric",
            Kind::Jsonb => "jsonb",
            Kind::Inet => "inet",
            Kind::Int4Array => "integer[]",
            Kind::TextArray => "text[]",
            Kind::Tsvector => "tsvector",
            Kind::Bytea => "bytea",
        }
    }

    /// How much commoner a type is than others, before a value is seen.
    pub(super) fn prior(self) -> f64 {
        match self {
            Kind::Text | Kind::Int4 | Kind::Int8 | Kind::Timestamptz => 0.5,
            Kind::Bool | Kind::Numeric | Kind::Jsonb => 0.2,
            Kind::Interval | Kind::Name | Kind::Char | Kind::Float4 => -1.0,
            _ => 0.0,
        }
    }

    /// Length and alignment of a fixed type.
    fn fixed(self) -> Option<(usize, usize)> {
        Some(match self {
            Kind::Bool | Kind::Char => (1, 1),
            Kind::Int2 => (2, 2),
            Kind::Int4 | Kind::Date | Kind::Float4 => (4, 4),
            Kind::Int8 | Kind::Timestamptz | Kind::Float8 => (8, 8),
            Kind::Uuid => (16, 1),
            Kind::Interval => (16, 8),
            Kind::Name => (64, 1),
            _ => return None,
        })
    }

    /// Where a value stands that begins at `at`, or behind its padding, which is zero.
    pub(super) fn place(self, row: &[u8], at: usize) -> Option<Range<usize>> {
        if let Some((len, align)) = self.fixed() {
            let start = padded(row, at, align)?;
            let end = start.checked_add(len)?;
            return (end <= row.len()).then_some(start..end);
        }
        let start = match row.get(at)? {
            0 => padded(row, at, 4)?,
            _ => at,
        };
        let (value, total) = varlena::parse(row.get(start..)?).ok()?;
        // Short ones stand where the last column ended, long ones at a multiple of four, and only these have padding before them.
        let is_long = !matches!(value, Varlena::Short(_) | Varlena::External(_));
        let fits = match is_long {
            true => start.is_multiple_of(4),
            false => start == at,
        };
        fits.then_some(start..start.checked_add(total)?)
    }

    /// How plausible the bytes of a value are, a varlena's header included: more than 0 speaks for the type.
    pub(super) fn plausible(self, bytes: &[u8]) -> f64 {
        match self.fixed() {
            Some(_) => self.fixed_plausible(bytes).unwrap_or(IMPOSSIBLE),
            None => self.varlena_plausible(bytes),
        }
    }

    fn fixed_plausible(self, bytes: &[u8]) -> Option<f64> {
        Some(match self {
            Kind::Bool => [2.0, 2.0, IMPOSSIBLE][usize::from((*bytes.first()?).min(2))],
            Kind::Char => match bytes.first()?.is_ascii_alphanumeric() {
                true => 0.6,
                false => -5.0,
            },
            Kind::Int2 => size_of_number(
                i64::from(i16::from_le_bytes(*bytes.first_chunk()?)),
                [0.8, 0.2, -1.0],
            ),
            Kind::Int4 => size_of_number(
                i64::from(i32::from_le_bytes(*bytes.first_chunk()?)),
                [1.4, 0.5, -1.0],
            ),
            Kind::Date => match DAYS.contains(&i32::from_le_bytes(*bytes.first_chunk()?)) {
                true => 1.8,
                false => -1.5,
            },
            Kind::Float4 => {
                let number = f32::from_le_bytes(*bytes.first_chunk()?);
                size_of_float(f64::from(number), 1.2)
            }
            Kind::Int8 => {
                size_of_number(i64::from_le_bytes(*bytes.first_chunk()?), [2.4, 1.2, -1.0])
            }
            Kind::Timestamptz => {
                let moment = i64::from_le_bytes(*bytes.first_chunk()?);
                match MOMENTS.contains(&moment) && moment.unsigned_abs() > 10_000_000_000_000 {
                    true => 2.8,
                    false => -2.0,
                }
            }
            Kind::Float8 => size_of_float(f64::from_le_bytes(*bytes.first_chunk()?), 2.4),
            Kind::Uuid => match (bytes.get(6)? >> 4, bytes.get(8)? >> 6) {
                (1..=8, 2) => 4.0,
                _ => -0.5,
            },
            Kind::Interval => {
                let micros = i64::from_le_bytes(*bytes.first_chunk()?).unsigned_abs();
                let days = i32::from_le_bytes(*bytes.get(8..)?.first_chunk()?).unsigned_abs();
                let months = i32::from_le_bytes(*bytes.get(12..)?.first_chunk()?).unsigned_abs();
                match micros < 100_000_000_000_000 && days < 100_000 && months < 10_000 {
                    true => 1.5,
                    false => IMPOSSIBLE,
                }
            }
            _ => {
                let end = bytes.iter().position(|byte| *byte == 0)?;
                let (text, rest) = bytes.split_at_checked(end)?;
                let is_name =
                    !text.is_empty() && is_text(text) && rest.iter().all(|byte| *byte == 0);
                if is_name { 6.0 } else { IMPOSSIBLE }
            }
        })
    }

    fn varlena_plausible(self, bytes: &[u8]) -> f64 {
        let payload = match varlena::parse(bytes) {
            // Its value is elsewhere: text more often than anything else.
            Ok((Varlena::External(_), _)) if self == Kind::Text => return 3.2,
            Ok((Varlena::External(_), _)) => return 3.0,
            Ok((value, _)) => value.unpacked(1 << 20),
            Err(_) => None,
        };
        let Some(payload) = payload else {
            return IMPOSSIBLE;
        };
        let length = f64::from(u8::try_from(payload.len().min(20)).unwrap_or(20)) * 0.1;
        match self.oid() {
            None if self == Kind::Bytea => 0.3,
            None if payload.is_empty() => 0.8,
            None if is_text(&payload) => 1.6 + length,
            None => IMPOSSIBLE,
            Some(1700) if !is_numeric(&payload) => IMPOSSIBLE,
            Some(oid) => match decodes(oid, &payload) {
                true => 1.9 + length,
                false => IMPOSSIBLE,
            },
        }
    }

    /// Types that tell of bytes whether they can be a value.
    fn oid(self) -> Option<Oid> {
        Some(match self {
            Kind::Numeric => 1700,
            Kind::Jsonb => 3802,
            Kind::Inet => 869,
            Kind::Int4Array => 1007,
            Kind::TextArray => 1009,
            Kind::Tsvector => 3614,
            _ => return None,
        })
    }
}

fn padded(row: &[u8], at: usize, align: usize) -> Option<usize> {
    let start = at.checked_next_multiple_of(align)?;
    let padding = row.get(at..start)?;
    padding.iter().all(|byte| *byte == 0).then_some(start)
}

/// Below a million, below a billion, above.
fn size_of_number(number: i64, [small, middle, large]: [f64; 3]) -> f64 {
    match number.unsigned_abs() {
        0..1_000_000 => small,
        1_000_000..1_000_000_000 => middle,
        _ => large,
    }
}

fn size_of_float(number: f64, usual: f64) -> f64 {
    let size = number.abs();
    match size {
        _ if number == 0.0 => 0.3,
        _ if (1e-6..1e12).contains(&size) => usual,
        _ => -5.0,
    }
}

fn is_text(bytes: &[u8]) -> bool {
    let is_odd = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    std::str::from_utf8(bytes).is_ok_and(|text| !text.contains(is_odd))
}

/// Digits below 10,000, none of the outer ones zero, as the server writes them. Truth: `make_result` in `numeric.c`.
fn is_numeric(payload: &[u8]) -> bool {
    let (words, rest) = payload.as_chunks::<2>();
    let mut words = words.iter().map(|word| u16::from_le_bytes(*word));
    let Some(head) = words.next().filter(|_| rest.is_empty()) else {
        return false;
    };
    let digits: Vec<u16> = match head & 0xC000 {
        0xC000 => return payload.len() == 2,
        0x8000 => words.collect(),
        _ => words.skip(1).collect(),
    };
    let outer = digits.first().into_iter().chain(digits.last());
    digits.iter().all(|digit| *digit < 10_000) && outer.into_iter().all(|digit| *digit != 0)
}

/// The bytes are a value of this type from end to end.
fn decodes(oid: Oid, payload: &[u8]) -> bool {
    let Some(ty) = builtin(oid).filter(|_| !payload.is_empty()) else {
        return false;
    };
    to_value(&ty, payload, Limits::default()).is_ok()
}
