//! Types that columns are guessed to be of: how their values lie in a row, and how plausible some
//! bytes are for them.

use std::ops::Range;
use std::sync::Arc;

use pgclinic_format::datum::{Limits, Prober, TypeInfo, TypeKind, builtin, builtin_oids};
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{Oid, Varlena, varlena};

use crate::schema::given::type_of_extension;

/// What a column may be; `timestamp`, `varchar`, `json` and other types that look like one of these
/// count as it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum GuessedType {
    Bool,
    Char,
    Int2,
    Int4,
    Date,
    Float4,
    Int8,
    Timestamptz,
    Float8,
    Time,
    Timetz,
    Uuid,
    Interval,
    Macaddr,
    Macaddr8,
    Point,
    Box,
    Lseg,
    /// Circles too: three numbers each.
    Line,
    Tid,
    Name,
    Text,
    Bytea,
    /// Bytes that begin at a multiple of eight: composite values, and arrays of them.
    Record,
    /// A type that tells of bytes whether they can be a value; its place in [`Kinds`].
    Tested(u8),
}

/// Kinds that are no [`GuessedType::Tested`].
const PLAIN: [GuessedType; 24] = [
    GuessedType::Bool,
    GuessedType::Char,
    GuessedType::Int2,
    GuessedType::Int4,
    GuessedType::Date,
    GuessedType::Float4,
    GuessedType::Int8,
    GuessedType::Timestamptz,
    GuessedType::Float8,
    GuessedType::Time,
    GuessedType::Timetz,
    GuessedType::Uuid,
    GuessedType::Interval,
    GuessedType::Macaddr,
    GuessedType::Macaddr8,
    GuessedType::Point,
    GuessedType::Box,
    GuessedType::Lseg,
    GuessedType::Line,
    GuessedType::Tid,
    GuessedType::Name,
    GuessedType::Text,
    GuessedType::Bytea,
    GuessedType::Record,
];

/// Microseconds since 2000-01-01 of 1995 and of 2040, and the days.
const MOMENTS: Range<i64> = -157_766_400_000_000..1_262_304_000_000_000;
/// Days since 2000-01-01 of 2008 and of 2035: numbers below are more often numbers.
const DAYS: Range<i32> = 2_922..12_784;
/// Bytes of a value that cannot be what it is taken for.
pub(super) const IMPOSSIBLE: f64 = -8.0;
const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// No time zone is further from UTC, in seconds.
const ZONE_MAX: u32 = 16 * 3600;

const NUMERIC: Oid = 1700;
const INET: Oid = 869;
const PATH: Oid = 602;
const CIDR: Oid = 650;
const BIT_VARYING: Oid = 1562;
const PG_SNAPSHOT: Oid = 5038;

/// Types beside ranges and arrays that a value tells of, and how much of a type they are before a
/// value is seen.
const TOLD: [(Oid, f64); 11] = [
    (NUMERIC, 0.2),
    (3802, 0.2),
    (INET, 0.0),
    (CIDR, 0.0),
    (3614, 0.0),
    (3615, 0.0),
    (BIT_VARYING, 0.0),
    (4072, 0.0),
    (602, 0.0),
    (604, 0.0),
    (PG_SNAPSHOT, -1.0),
];
const EXTENSIONS: [&str; 3] = ["hstore", "ltree", "cube"];

/// A type that tells of bytes whether they can be a value.
struct TypeTester {
    ty: Arc<TypeInfo>,
    type_name: String,
    prior: f64,
    /// Where its values name their own type or that of their elements, and by which number.
    mark: Option<(usize, Oid)>,
}

/// All kinds, with what is needed to hold values to them.
pub(super) struct Kinds {
    testers: Vec<TypeTester>,
    all: Vec<GuessedType>,
    prober: Prober,
}

impl Kinds {
    pub(super) fn new() -> Self {
        let own = TOLD.iter().filter_map(|(oid, prior)| {
            let ty = builtin(*oid)?;
            Some(TypeTester {
                type_name: sql_name(&ty.name),
                ty: Arc::new(ty),
                prior: *prior,
                mark: None,
            })
        });
        let extensions = EXTENSIONS.iter().map(|name| TypeTester {
            ty: type_of_extension(name),
            type_name: (*name).to_owned(),
            prior: -0.5,
            mark: None,
        });
        let marked = builtin_oids().into_iter().filter_map(marked);
        let testers: Vec<TypeTester> = own.chain(extensions).chain(marked).collect();
        let numbers = (0..testers.len()).filter_map(|at| u8::try_from(at).ok());
        Kinds {
            all: PLAIN
                .into_iter()
                .chain(numbers.map(GuessedType::Tested))
                .collect(),
            testers,
            prober: Prober::new(Limits::default()),
        }
    }

    pub(super) fn all(&self) -> &[GuessedType] {
        &self.all
    }

    fn tester(&self, kind: GuessedType) -> Option<&TypeTester> {
        match kind {
            GuessedType::Tested(at) => self.testers.get(usize::from(at)),
            _ => None,
        }
    }

    /// As SQL has it.
    pub(super) fn type_name(&self, kind: GuessedType) -> String {
        match self.tester(kind) {
            Some(tester) => tester.type_name.clone(),
            None => kind.type_name().to_owned(),
        }
    }

    /// How much commoner a type is than others, before a value is seen.
    pub(super) fn prior(&self, kind: GuessedType) -> f64 {
        self.tester(kind)
            .map_or_else(|| kind.prior(), |tester| tester.prior)
    }

    /// Where a value stands that begins at `at`, or behind its padding, which is zero.
    pub(super) fn place(&self, kind: GuessedType, row: &[u8], at: usize) -> Option<Range<usize>> {
        if let Some((len, align)) = kind.fixed() {
            let start = padded(row, at, align)?;
            let end = start.checked_add(len)?;
            return (end <= row.len()).then_some(start..end);
        }
        let align = match kind {
            GuessedType::Record => 8,
            _ => self
                .tester(kind)
                .map_or(4, |tester| usize::from(tester.ty.align)),
        };
        let start = match row.get(at)? {
            0 => padded(row, at, align)?,
            _ => at,
        };
        let (value, total) = varlena::parse(row.get(start..)?).ok()?;
        // Short ones stand where the last column ended, long ones at a multiple of four or eight,
        // and only these have padding before them.
        let is_long = !matches!(value, Varlena::Short(_) | Varlena::External(_));
        let fits = if is_long {
            start.is_multiple_of(align)
        } else {
            start == at
        };
        fits.then_some(start..start.checked_add(total)?)
    }

    /// How plausible the bytes of a value are, a varlena's header included: more than 0 speaks for
    /// the type.
    pub(super) fn plausible(&mut self, kind: GuessedType, bytes: &[u8]) -> f64 {
        match kind.fixed() {
            Some(_) => kind.fixed_plausible(bytes).unwrap_or(IMPOSSIBLE),
            None => self.varlena_plausible(kind, bytes),
        }
    }

    fn varlena_plausible(&mut self, kind: GuessedType, bytes: &[u8]) -> f64 {
        let payload = match varlena::parse(bytes) {
            // Its value is elsewhere: text more often than anything else.
            Ok((Varlena::External(_), _)) if kind == GuessedType::Text => return 3.2,
            Ok((Varlena::External(_), _)) => return 3.0,
            Ok((value, _)) => value.unpacked(1 << 20),
            Err(_) => None,
        };
        let Some(payload) = payload else {
            return IMPOSSIBLE;
        };
        let length = f64::from(u8::try_from(payload.len().min(20)).unwrap_or(20)) * 0.1;
        match kind {
            GuessedType::Bytea => 0.3,
            GuessedType::Record => record_plausible(&payload),
            GuessedType::Text if payload.is_empty() => 0.8,
            GuessedType::Text if is_text(&payload) => 1.6 + length,
            GuessedType::Tested(at) => match self.is_value(at, &payload) {
                Some(bonus) => 1.9 + length + bonus,
                None => IMPOSSIBLE,
            },
            _ => IMPOSSIBLE,
        }
    }

    /// The bytes are a value of this type from end to end; what speaks for it beside that.
    fn is_value(&mut self, at: u8, payload: &[u8]) -> Option<f64> {
        let tester = self.testers.get(usize::from(at))?;
        if payload.is_empty() {
            return None;
        }
        let bonus = match tester.mark {
            Some((place, number)) => {
                let word = payload.get(place..)?.first_chunk()?;
                (u32::from_le_bytes(*word) == number).then_some(0.6)?
            }
            None => match tester.ty.oid {
                NUMERIC => is_numeric(payload).then_some(0.0)?,
                PATH => is_path(payload).then_some(0.5)?,
                CIDR => network_bonus(payload),
                BIT_VARYING => is_bits(payload).then_some(0.3)?,
                PG_SNAPSHOT => is_snapshot(payload).then_some(0.3)?,
                _ if EXTENSIONS.contains(&tester.ty.name.as_str()) => {
                    of_extension(&tester.ty.name, payload)?
                }
                _ => 0.0,
            },
        };
        self.prober
            .print(&tester.ty, payload)
            .is_ok()
            .then_some(bonus)
    }
}

impl GuessedType {
    fn type_name(self) -> &'static str {
        match self {
            GuessedType::Bool => "boolean",
            GuessedType::Char => "\"char\"",
            GuessedType::Int2 => "smallint",
            GuessedType::Int4 => "integer",
            GuessedType::Date => "date",
            GuessedType::Float4 => "real",
            GuessedType::Int8 => "bigint",
            GuessedType::Timestamptz => "timestamp with time zone",
            GuessedType::Float8 => "double precision",
            GuessedType::Time => "time",
            GuessedType::Timetz => "time with time zone",
            GuessedType::Uuid => "uuid",
            GuessedType::Interval => "interval",
            GuessedType::Macaddr => "macaddr",
            GuessedType::Macaddr8 => "macaddr8",
            GuessedType::Point => "point",
            GuessedType::Box => "box",
            GuessedType::Lseg => "lseg",
            GuessedType::Line => "line",
            GuessedType::Tid => "tid",
            GuessedType::Record => "record",
            GuessedType::Name => "name",
            GuessedType::Text => "text",
            GuessedType::Bytea | GuessedType::Tested(_) => "bytea",
        }
    }

    fn prior(self) -> f64 {
        match self {
            GuessedType::Text
            | GuessedType::Int4
            | GuessedType::Int8
            | GuessedType::Timestamptz => 0.5,
            GuessedType::Bool => 0.2,
            GuessedType::Macaddr8
            | GuessedType::Lseg
            | GuessedType::Line
            | GuessedType::Tid
            | GuessedType::Record => -0.5,
            GuessedType::Interval | GuessedType::Name | GuessedType::Char | GuessedType::Float4 => {
                -1.0
            }
            _ => 0.0,
        }
    }

    /// Length and alignment of a fixed type.
    fn fixed(self) -> Option<(usize, usize)> {
        Some(match self {
            GuessedType::Bool | GuessedType::Char => (1, 1),
            GuessedType::Int2 => (2, 2),
            GuessedType::Int4 | GuessedType::Date | GuessedType::Float4 => (4, 4),
            GuessedType::Int8
            | GuessedType::Timestamptz
            | GuessedType::Float8
            | GuessedType::Time => (8, 8),
            GuessedType::Timetz => (12, 8),
            GuessedType::Uuid => (16, 1),
            GuessedType::Interval | GuessedType::Point => (16, 8),
            GuessedType::Macaddr => (6, 4),
            GuessedType::Macaddr8 => (8, 4),
            GuessedType::Box | GuessedType::Lseg => (32, 8),
            GuessedType::Line => (24, 8),
            GuessedType::Tid => (6, 2),
            GuessedType::Name => (64, 1),
            GuessedType::Text
            | GuessedType::Bytea
            | GuessedType::Record
            | GuessedType::Tested(_) => return None,
        })
    }

    #[expect(clippy::indexing_slicing, reason = "at most two, of three")]
    fn fixed_plausible(self, bytes: &[u8]) -> Option<f64> {
        Some(match self {
            GuessedType::Bool => [2.0, 2.0, IMPOSSIBLE][usize::from((*bytes.first()?).min(2))],
            GuessedType::Char => {
                if bytes.first()?.is_ascii_alphanumeric() {
                    0.6
                } else {
                    -5.0
                }
            }
            GuessedType::Int2 => size_of_number(
                i64::from(i16::from_le_bytes(*bytes.first_chunk()?)),
                [0.8, 0.2, -1.0],
            ),
            GuessedType::Int4 => size_of_number(
                i64::from(i32::from_le_bytes(*bytes.first_chunk()?)),
                [1.4, 0.5, -1.0],
            ),
            GuessedType::Date => {
                if DAYS.contains(&i32::from_le_bytes(*bytes.first_chunk()?)) {
                    1.8
                } else {
                    -1.5
                }
            }
            GuessedType::Float4 => {
                let number = f32::from_le_bytes(*bytes.first_chunk()?);
                size_of_float(f64::from(number), 1.2)
            }
            GuessedType::Int8 => size_of_number(word(bytes)?, [2.4, 1.2, -1.0]),
            GuessedType::Timestamptz => {
                let moment = word(bytes)?;
                if MOMENTS.contains(&moment) && moment.unsigned_abs() > 10_000_000_000_000 {
                    2.8
                } else {
                    -2.0
                }
            }
            GuessedType::Float8 => size_of_float(float(bytes, 0)?, 2.4),
            GuessedType::Time => time_of_day(word(bytes)?),
            GuessedType::Timetz => {
                let zone = i32::from_le_bytes(*bytes.get(8..)?.first_chunk()?);
                let is_zone = zone.unsigned_abs() < ZONE_MAX && zone % 60 == 0;
                if (0..=DAY).contains(&word(bytes)?) && is_zone {
                    3.4
                } else {
                    IMPOSSIBLE
                }
            }
            GuessedType::Uuid => match (bytes.get(6)? >> 4, bytes.get(8)? >> 6) {
                (1..=8, 2) => 4.0,
                _ => -0.5,
            },
            GuessedType::Interval => {
                let micros = word(bytes)?.unsigned_abs();
                let days = i32::from_le_bytes(*bytes.get(8..)?.first_chunk()?).unsigned_abs();
                let months = i32::from_le_bytes(*bytes.get(12..)?.first_chunk()?).unsigned_abs();
                if micros < 100_000_000_000_000 && days < 100_000 && months < 10_000 {
                    1.5
                } else {
                    IMPOSSIBLE
                }
            }
            GuessedType::Macaddr => address(bytes, 1.8),
            GuessedType::Macaddr8 => match bytes.get(3..5)? {
                // So are addresses of six bytes made ones of eight.
                [0xFF, 0xFE] => 3.4,
                _ => address(bytes, 0.4),
            },
            GuessedType::Point | GuessedType::Box | GuessedType::Lseg | GuessedType::Line => {
                shape(self, bytes)?
            }
            GuessedType::Tid => {
                let block = u32::from(u16::from_le_bytes(*bytes.first_chunk()?)) << 16
                    | u32::from(u16::from_le_bytes(*bytes.get(2..)?.first_chunk()?));
                let item = u16::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
                if block < 1 << 24 && (1..300).contains(&item) {
                    1.5
                } else {
                    -5.0
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
}

/// A range, a multirange or an array: their values name a type.
fn marked(oid: Oid) -> Option<TypeTester> {
    let ty = builtin(oid)?;
    let (type_name, mark) = match &ty.kind {
        // The elements' type stands behind the number of dimensions and the place of the data.
        TypeKind::Array(element) => (format!("{}[]", sql_name(&element.name)), (8, element.oid)),
        TypeKind::Range(_) | TypeKind::Multirange(_) => (ty.name.clone(), (0, oid)),
        _ => return None,
    };
    Some(TypeTester {
        type_name,
        prior: 0.0,
        mark: Some(mark),
        ty: Arc::new(ty),
    })
}

/// As people write it.
fn sql_name(name: &str) -> String {
    let name = match name {
        "bool" => "boolean",
        "char" => "\"char\"",
        "int2" => "smallint",
        "int4" => "integer",
        "int8" => "bigint",
        "float4" => "real",
        "float8" => "double precision",
        "varbit" => "bit varying",
        "timestamptz" => "timestamp with time zone",
        "timetz" => "time with time zone",
        other => other,
    };
    name.to_owned()
}

fn padded(row: &[u8], at: usize, align: usize) -> Option<usize> {
    let start = at.checked_next_multiple_of(align)?;
    let padding = row.get(at..start)?;
    padding.iter().all(|byte| *byte == 0).then_some(start)
}

fn word(bytes: &[u8]) -> Option<i64> {
    Some(i64::from_le_bytes(*bytes.first_chunk()?))
}

fn float(bytes: &[u8], number: usize) -> Option<f64> {
    let bytes = bytes.get(number * 8..)?.first_chunk()?;
    Some(f64::from_le_bytes(*bytes))
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

/// Microseconds of a day, of which people have whole seconds.
fn time_of_day(micros: i64) -> f64 {
    match micros {
        0 => 0.3,
        1..=DAY if micros % SECOND == 0 => 2.6,
        1..=DAY => -1.2,
        _ => -7.0,
    }
}

/// The address of one network card, not of a group of them, with few zeros.
fn address(bytes: &[u8], usual: f64) -> f64 {
    let filled = bytes.iter().filter(|byte| **byte != 0).count();
    let is_single = bytes.first().is_some_and(|byte| byte & 1 == 0);
    if is_single && filled >= 4 {
        usual
    } else {
        -5.0
    }
}

/// A composite value, or an array of them: as many columns as it says, or elements of a type that
/// people made. Truth: `HeapTupleHeader` in `htup_details.h`, `ArrayType` in `array.h`.
///
/// ```text
/// composite  typmod i32: -1   type u32   itself u48   columns u16   flags u16   offset of values u8
/// array      dimensions i32: 1 to 6   offset of values i32   type of elements u32
/// ```
fn record_plausible(payload: &[u8]) -> f64 {
    let word = |at: usize| {
        let word = payload.get(at..).and_then(|rest| rest.first_chunk());
        word.map_or(0, |word| u32::from_le_bytes(*word))
    };
    let half = |at: usize| {
        let half = payload.get(at..).and_then(|rest| rest.first_chunk());
        half.map_or(0, |half| u16::from_le_bytes(*half))
    };
    let values_at = payload.get(18).map_or(0, |offset| usize::from(*offset));
    // Without the length in front of it.
    let is_composite = word(0) == u32::MAX
        && (1..=1600).contains(&(half(14) & 0x07FF))
        && values_at >= 23
        && values_at.is_multiple_of(8)
        && values_at <= payload.len() + 4;
    let is_array = (1..=6).contains(&word(0)) && word(8) >= FIRST_NORMAL_OID;
    if is_composite || is_array {
        2.0
    } else {
        IMPOSSIBLE
    }
}

/// Points, boxes and what else is made of them.
fn shape(kind: GuessedType, bytes: &[u8]) -> Option<f64> {
    let count = bytes.len() / 8;
    let mut sum = 0.0;
    for number in 0..count {
        sum += match size_of_float(float(bytes, number)?, 1.3) {
            bad if bad < 0.0 => return Some(IMPOSSIBLE),
            fine => fine,
        };
    }
    Some(match kind {
        // The upper right corner stands first.
        GuessedType::Box => {
            let is_upper =
                float(bytes, 0)? >= float(bytes, 2)? && float(bytes, 1)? >= float(bytes, 3)?;
            if is_upper { sum + 0.6 } else { IMPOSSIBLE }
        }
        // Of what is made of numbers points are the commonest.
        GuessedType::Point => sum + 0.6,
        _ => sum,
    })
}

fn is_text(bytes: &[u8]) -> bool {
    let is_odd = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    std::str::from_utf8(bytes).is_ok_and(|text| !text.contains(is_odd))
}

/// Digits below 10,000, none of the outer ones zero, as the server writes them. Truth:
/// `make_result` in `numeric.c`.
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

/// A network rather than an address: fewer bits than the address has, and none set behind them.
/// Truth: `network.c`.
///
/// ```text
/// family u8: 2 or 3   bits u8   address: 4 or 16 bytes
/// ```
fn network_bonus(payload: &[u8]) -> f64 {
    let [_, bits, address @ ..] = payload else {
        return 0.0;
    };
    let (whole, part) = (usize::from(bits / 8), bits % 8);
    let is_free = |(at, byte): (usize, &u8)| match at.cmp(&whole) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Equal => byte << part == 0,
        std::cmp::Ordering::Greater => *byte == 0,
    };
    if whole < address.len() && address.iter().enumerate().all(is_free) {
        0.3
    } else {
        // `cidr` does not take it.
        IMPOSSIBLE
    }
}

/// As many points as are counted, behind a truth value and four bytes of padding. Truth: `PATH` in
/// `geo_decls.h`.
fn is_path(payload: &[u8]) -> bool {
    const POINT_BYTES: usize = 16;
    let Some((head, points)) = payload.split_first_chunk::<12>() else {
        return false;
    };
    let [count, closed, padding] = [0, 4, 8].map(|at| {
        let word = head.get(at..).and_then(|rest| rest.first_chunk());
        word.map_or(u32::MAX, |word| u32::from_le_bytes(*word))
    });
    let is_counted = usize::try_from(count) == Ok(points.len() / POINT_BYTES);
    closed <= 1 && padding == 0 && is_counted && points.len().is_multiple_of(POINT_BYTES)
}

/// As many bytes as the bits need, and none set behind them. Truth: `varbit.c`.
fn is_bits(payload: &[u8]) -> bool {
    let Some((count, bytes)) = payload.split_first_chunk() else {
        return false;
    };
    let count = u32::from_le_bytes(*count);
    let is_free = |last: &u8| count.is_multiple_of(8) || last << (count % 8) == 0;
    usize::try_from(count.div_ceil(8)) == Ok(bytes.len()) && bytes.last().is_none_or(is_free)
}

/// Transactions in order between the first and the next one. Truth: `parse_snapshot` in
/// `xid8funcs.c`.
fn is_snapshot(payload: &[u8]) -> bool {
    let Some((_, words)) = payload.split_first_chunk::<4>() else {
        return false;
    };
    let (words, rest) = words.as_chunks::<8>();
    let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
    let (Some(xmin), Some(xmax)) = (words.next(), words.next()) else {
        return false;
    };
    let inside: Vec<u64> = words.collect();
    let is_inside = |xid: &u64| (xmin..xmax).contains(xid);
    rest.is_empty()
        && xmin > 0
        && xmin <= xmax
        && inside.iter().all(is_inside)
        && inside.is_sorted()
}

/// What speaks for a type of an extension, where its bytes can be one.
fn of_extension(name: &str, payload: &[u8]) -> Option<f64> {
    let head = u32::from_le_bytes(*payload.first_chunk()?);
    match name {
        // The bit of its version, and not the corners of a point in no dimension.
        "hstore" => {
            (head & 0xF000_0000 == 0x8000_0000 && is_text_of_hstore(head, payload)).then_some(0.5)
        }
        "ltree" => is_ltree(payload).then_some(0.3),
        "cube" => (1..=100).contains(&(head & 0x7FFF_FFFF)).then_some(0.3),
        _ => None,
    }
}

/// Labels of text, none of them empty, each filled up to a multiple of eight bytes, and nothing
/// behind them. Truth: `ltree.h`.
///
/// ```text
/// labels u16   nothing u16   each label: length u16   text   zeros
/// ```
fn is_ltree(payload: &[u8]) -> bool {
    let Some(([low, high, 0, 0], mut rest)) = payload.split_first_chunk() else {
        return false;
    };
    let labels = u16::from_le_bytes([*low, *high]);
    for _ in 0..labels {
        let Some((length, _)) = rest.split_first_chunk() else {
            return false;
        };
        let end = 2 + usize::from(u16::from_le_bytes(*length));
        let label = rest.get(2..end).unwrap_or_default();
        let Some(next) = rest.get(end.next_multiple_of(8)..) else {
            return false;
        };
        if label.is_empty() || !is_text(label) {
            return false;
        }
        rest = next;
    }
    labels > 0 && rest.is_empty()
}

/// Keys and values of an hstore are text, and the last one ends where all of it does.
fn is_text_of_hstore(head: u32, payload: &[u8]) -> bool {
    let pairs = usize::try_from(head & 0x0FFF_FFFF).unwrap_or(usize::MAX);
    let texts_at = pairs.checked_mul(8).map(|ends| 4 + ends);
    let Some((ends, texts)) = texts_at.and_then(|at| payload.split_at_checked(at)) else {
        return false;
    };
    let last = ends.last_chunk().map_or(0, |end| u32::from_le_bytes(*end));
    let is_at_end = usize::try_from(last & 0x3FFF_FFFF) == Ok(texts.len());
    (pairs == 0 || is_at_end) && is_text(texts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::given::columns_in;

    /// A guess is given back as it was printed: every name of a type is read as the type that was
    /// meant.
    #[test]
    fn every_type_is_read_back() {
        let kinds = Kinds::new();
        for kind in kinds.all() {
            let name = kinds.type_name(*kind);
            let table = columns_in(&format!("c {name}")).unwrap_or_else(|why| panic!("{why}"));
            let given = &table.columns[0].ty;
            match (kinds.tester(*kind), kind.fixed()) {
                (Some(tester), _) => assert_eq!(*given, tester.ty, "{name}"),
                (None, Some((len, align))) => {
                    let found = (usize::try_from(given.len), usize::from(given.align));
                    assert_eq!(found, (Ok(len), align), "{name}");
                }
                (None, None) => {
                    let align = if *kind == GuessedType::Record { 8 } else { 4 };
                    assert_eq!((given.len, given.align), (-1, align), "{name}");
                }
            }
        }
    }
}
