//! What each column of a heap must be able to be read as, worked out once a fork.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pgclinic_cluster::{Catalog, Column, ForkContext};
use pgclinic_format::datum::{Limits, Prober, TypeInfo, TypeKind, Undecodable, UndecodableKind};
use pgclinic_format::{ColumnLayout, HeapTuple, PlainAttributes};

/// The longest text of a value that stands in its row, and the most that it may unpack to.
const VALUE_BYTES_MAX: usize = 64 << 20;
/// `SQL_ASCII`.
const SQL_ASCII: i32 = 0;
/// `UTF8`.
const UTF8: i32 = 6;
/// The first of the encodings of one byte a character, in which no byte but zero is wrong.
const LATIN1: i32 = 8;
/// The last encoding that a database may have.
const LAST_ENCODING: i32 = 34;
/// Microseconds of a day.
const DAY_MICROS: i64 = 86_400_000_000;
/// Days from 2000-01-01 back to 4714-11-24 BC.
const DAY_MIN: i64 = -2_451_545;
/// The moment after the last timestamp, 294276-12-31 23:59:59.999999.
const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;
/// The day after the last date, 5874897-12-31.
const DATE_END: i64 = 2_147_483_494 - 2_451_545;

/// The columns of one heap.
pub(crate) struct StoredValues {
    columns: Vec<StoredColumn>,
    /// Some values have to be printed to be tried.
    prints: bool,
    encoding: Encoding,
    limits: Limits,
}

/// What can be said of text in the database's encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Encoding {
    /// Must be UTF-8.
    Utf8,
    /// Any bytes but zero.
    Anything,
    /// Not known here.
    Unknown,
}

/// One column.
struct StoredColumn {
    judge: ValueTest,
    told: AtomicBool,
}

/// How a value is tried: the cheapest way that finds everything.
#[derive(Clone)]
enum ValueTest {
    /// Every pattern of bits is a value.
    Anything,
    /// Text without a zero byte.
    Text,
    /// Fixed width and a test of the number in it.
    Number(fn(&[u8]) -> bool, Arc<TypeInfo>),
    /// Printed; `true` when what is printed is text of the database.
    Printed(Arc<TypeInfo>, bool),
}

/// What is wrong with a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// No server writes these bytes for this type.
    Undecodable(Undecodable),
    /// Text that is not in the database's encoding, from this byte of its text on.
    Encoding(usize),
    /// Not tried: told once a column.
    NotTried(&'static str),
}

impl StoredValues {
    /// For the fork's relation; nothing is tried where its columns are unknown.
    pub(crate) fn of(fork: &ForkContext<'_>, catalog: Option<&Catalog>) -> Self {
        let columns = fork.relation.and_then(|own| own.columns.as_deref());
        let judge = |column: &Column| StoredColumn {
            judge: catalog
                .filter(|_| !column.dropped)
                .map_or(ValueTest::Anything, |catalog| {
                    ValueTest::of(column, catalog)
                }),
            told: AtomicBool::new(false),
        };
        let columns: Vec<_> = columns.unwrap_or_default().iter().map(judge).collect();
        let is_printed = |column: &StoredColumn| matches!(column.judge, ValueTest::Printed(..));
        StoredValues {
            prints: columns.iter().any(is_printed),
            columns,
            encoding: encoding_of(fork, catalog),
            limits: Limits {
                output_bytes: VALUE_BYTES_MAX,
                unpacked_bytes: VALUE_BYTES_MAX,
                major: fork.major(),
                ..Limits::default()
            },
        }
    }

    /// Every value of every column is right, whatever its bits.
    pub(crate) fn is_idle(&self) -> bool {
        let idle = |column: &StoredColumn| matches!(column.judge, ValueTest::Anything);
        self.columns.iter().all(idle)
    }

    /// Text cannot be judged, and there is some.
    pub(crate) fn leaves_text_out(&self) -> bool {
        let texts = |column: &StoredColumn| {
            matches!(column.judge, ValueTest::Text | ValueTest::Printed(_, true))
        };
        self.encoding == Encoding::Unknown && self.columns.iter().any(texts)
    }

    /// The quick try: every value of the row stands in it as it is, or in TOAST, and is plainly
    /// right. Where this says no somebody has to look at each.
    #[inline]
    pub(crate) fn are_plainly_right(&self, tuple: HeapTuple<'_>, layouts: &[ColumnLayout]) -> bool {
        let hoff = usize::from(tuple.t_hoff());
        let stored = usize::from(tuple.attribute_count());
        if self.prints || hoff != tuple.expected_hoff() || stored > layouts.len() {
            return false;
        }
        let nulls = tuple.null_bitmap();
        let is_null = |index: usize| {
            let byte = nulls.and_then(|nulls| nulls.get(index / 8));
            byte.is_some_and(|byte| byte & (1 << (index % 8)) == 0)
        };
        let mut values = PlainAttributes::new(tuple.bytes(), hoff);
        let columns = layouts.iter().zip(&self.columns).take(stored);
        columns.enumerate().all(|(index, (layout, column))| {
            is_null(index)
                || match values.payload(*layout) {
                    Some(value) => self.is_plainly_right(column, value),
                    None => layout.attlen == -1 && values.skip_external(),
                }
        })
    }

    #[inline]
    fn is_plainly_right(&self, column: &StoredColumn, value: &[u8]) -> bool {
        match &column.judge {
            ValueTest::Anything => true,
            ValueTest::Text => is_ascii_without_zero(value) || self.text_fault(value).is_none(),
            ValueTest::Number(is_right, _) => is_right(value),
            ValueTest::Printed(..) => false,
        }
    }

    /// For one thread.
    pub(crate) fn prober(&self) -> Prober {
        Prober::new(self.limits)
    }

    /// The column at this index needs no look.
    #[inline]
    pub(crate) fn is_anything(&self, index: usize) -> bool {
        self.columns
            .get(index)
            .is_none_or(|column| matches!(column.judge, ValueTest::Anything))
    }

    /// Tries one value, whose varlena header was taken off.
    #[inline]
    pub(crate) fn fault(&self, index: usize, value: &[u8], prober: &mut Prober) -> Option<Fault> {
        let column = self.columns.get(index)?;
        match &column.judge {
            ValueTest::Anything => None,
            ValueTest::Text => self.text_fault(value),
            ValueTest::Number(is_right, _) if is_right(value) => None,
            ValueTest::Number(_, ty) => self.printed_fault(column, ty, false, value, prober),
            ValueTest::Printed(ty, textual) => {
                self.printed_fault(column, ty, *textual, value, prober)
            }
        }
    }

    /// The encoding of the column's values, where they are text and nothing else.
    pub(crate) fn text_encoding(&self, index: usize) -> Option<Encoding> {
        let column = self.columns.get(index)?;
        matches!(column.judge, ValueTest::Text).then_some(self.encoding)
    }

    /// The name of the column's type.
    pub(crate) fn type_name(&self, index: usize) -> &str {
        match self.columns.get(index).map(|column| &column.judge) {
            Some(ValueTest::Number(_, ty) | ValueTest::Printed(ty, _)) => &ty.name,
            _ => "text",
        }
    }

    fn text_fault(&self, value: &[u8]) -> Option<Fault> {
        if let Some(at) = value.iter().position(|byte| *byte == 0) {
            let what = "text holds a zero byte";
            let trouble = UndecodableKind::Damaged;
            return Some(Fault::Undecodable(Undecodable { trouble, what, at }));
        }
        self.encoding_fault(value)
    }

    fn encoding_fault(&self, text: &[u8]) -> Option<Fault> {
        (self.encoding == Encoding::Utf8).then_some(())?;
        let error = std::str::from_utf8(text).err()?;
        Some(Fault::Encoding(error.valid_up_to()))
    }

    fn printed_fault(
        &self,
        column: &StoredColumn,
        ty: &TypeInfo,
        textual: bool,
        value: &[u8],
        prober: &mut Prober,
    ) -> Option<Fault> {
        match prober.print(ty, value) {
            Ok(text) if textual => self.encoding_fault(text),
            Ok(_) => None,
            Err(error) if error.trouble == UndecodableKind::Damaged => {
                Some(Fault::Undecodable(error))
            }
            Err(error) => {
                let first = !column.told.swap(true, Ordering::Relaxed);
                first.then_some(Fault::NotTried(error.what))
            }
        }
    }
}

impl ValueTest {
    fn of(column: &Column, catalog: &Catalog) -> Self {
        let ty = catalog.type_info(column.type_oid);
        if ty.len != column.layout.attlen {
            return ValueTest::Anything;
        }
        ValueTest::of_type(&ty)
    }

    fn of_type(ty: &Arc<TypeInfo>) -> Self {
        match &ty.kind {
            TypeKind::Domain(base) => ValueTest::of_type(base),
            TypeKind::Enum(labels) if labels.is_empty() => ValueTest::Anything,
            TypeKind::Base => ValueTest::of_base(ty),
            _ => ValueTest::Printed(Arc::clone(ty), is_textual(ty)),
        }
    }

    fn of_base(ty: &Arc<TypeInfo>) -> Self {
        let number = |is_right| ValueTest::Number(is_right, Arc::clone(ty));
        match ty.oid {
            // Numbers, points, addresses: what is fixed in width and uses all its bits.
            17
            | 18
            | 20
            | 21
            | 23
            | 24
            | 26..=29
            | 600
            | 601
            | 603
            | 628
            | 700
            | 701
            | 718
            | 774
            | 790
            | 829
            | 1186
            | 2202..=2206
            | 2950
            | 3220
            | 3734
            | 3769
            | 4089
            | 4096
            | 4191
            | 5069 => ValueTest::Anything,
            25 | 114 | 142 | 194 | 705 | 1042 | 1043 | 1790 | 2275 => ValueTest::Text,
            16 => number(is_bool),
            1082 => number(is_date),
            1083 => number(is_time),
            1114 | 1184 => number(is_timestamp),
            1700 => number(is_numeric),
            _ if ty.oid >= 16384 && ty.name == "citext" => ValueTest::Text,
            _ => ValueTest::Printed(Arc::clone(ty), is_textual(ty)),
        }
    }
}

/// What is printed is text of the database, and nothing but that.
fn is_textual(ty: &TypeInfo) -> bool {
    let mut ty = ty;
    // No type holds others to this depth; a longer chain is not called text.
    for _ in 0..64 {
        ty = match &ty.kind {
            TypeKind::Domain(inner) | TypeKind::Array(inner) | TypeKind::Range(inner) => inner,
            TypeKind::Multirange(inner) => inner,
            TypeKind::Base if ty.oid >= 16384 => {
                return matches!(ty.name.as_str(), "citext" | "hstore" | "ltree");
            }
            TypeKind::Base => {
                return matches!(
                    ty.oid,
                    19 | 25 | 114 | 142 | 194 | 1042 | 1043 | 3614 | 3615 | 3802 | 4072
                );
            }
            _ => return false,
        };
    }
    false
}

/// Shared catalogs hold names from databases of all encodings. The catalogs tell, as beside a
/// running server the row of a new database is not in the files yet.
fn encoding_of(fork: &ForkContext<'_>, catalog: Option<&Catalog>) -> Encoding {
    let shared = fork.relation.is_none_or(|relation| relation.shared);
    match catalog.and_then(|catalog| catalog.encoding) {
        _ if shared => Encoding::Anything,
        Some(UTF8) => Encoding::Utf8,
        Some(SQL_ASCII | LATIN1..=LAST_ENCODING) => Encoding::Anything,
        _ => Encoding::Unknown,
    }
}

/// Every byte is 1 to 127, asked eight at a time: taking one from each sets no high bit then.
#[inline]
fn is_ascii_without_zero(text: &[u8]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let odd = |word: u64| word | word.wrapping_sub(ONES);
    let (words, rest) = text.as_chunks::<8>();
    let all = words
        .iter()
        .fold(0, |all, word| all | odd(u64::from_ne_bytes(*word)));
    all & HIGH == 0 && rest.iter().all(|byte| (1..128).contains(byte))
}

fn number<const N: usize>(value: &[u8]) -> Option<[u8; N]> {
    value.try_into().ok()
}

fn is_bool(value: &[u8]) -> bool {
    matches!(value, [0 | 1])
}

fn is_date(value: &[u8]) -> bool {
    let day = number(value).map(|bytes| i64::from(i32::from_le_bytes(bytes)));
    day.is_some_and(|day| (DAY_MIN..DATE_END).contains(&day))
}

fn is_time(value: &[u8]) -> bool {
    let time = number(value).map(i64::from_le_bytes);
    time.is_some_and(|time| (0..=DAY_MICROS).contains(&time))
}

fn is_timestamp(value: &[u8]) -> bool {
    let time = number(value).map(i64::from_le_bytes);
    time.is_some_and(|time| (DAY_MIN * DAY_MICROS..TIMESTAMP_END).contains(&time))
}

/// A header of two bytes or four, then digits below 10000. Special values are left to the printer.
fn is_numeric(value: &[u8]) -> bool {
    let skip = match value.get(1).map(|byte| byte & 0xC0) {
        Some(0x80) => 2,
        Some(0 | 0x40) => 4,
        _ => return false,
    };
    let digits = value.get(skip..).unwrap_or(&[0]);
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty() && pairs.iter().all(|pair| u16::from_le_bytes(*pair) < 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_tried_without_printing() {
        assert!(is_numeric(&[0x00, 0x80]) && is_numeric(&[0x80, 0x80, 0x0F, 0x27]));
        assert!(!is_numeric(&[0x80, 0x80, 0x10, 0x27]) && !is_numeric(&[0x80, 0x80, 1]));
        assert!(!is_numeric(&[0x00, 0xC0]) && !is_numeric(&[1]) && !is_numeric(&[0, 0, 1]));
        assert!(is_date(&0i32.to_le_bytes()) && !is_date(&i32::MAX.to_le_bytes()));
        assert!(is_time(&DAY_MICROS.to_le_bytes()) && !is_time(&(-1i64).to_le_bytes()));
        assert!(is_timestamp(&0i64.to_le_bytes()) && !is_timestamp(&i64::MAX.to_le_bytes()));
        assert!(is_bool(&[1]) && !is_bool(&[2]));
    }

    #[test]
    fn plain_text_is_told_from_zeros_and_high_bytes() {
        assert!(is_ascii_without_zero(b"") && is_ascii_without_zero(b"\x01\x7Fand twenty more"));
        for at in 0..20 {
            for byte in [0, 0x80, 0xFF] {
                let mut text = *b"twenty bytes of text";
                text[at] = byte;
                assert!(!is_ascii_without_zero(&text), "{byte} at {at}");
            }
        }
    }

    #[test]
    fn what_holds_text_is_known_by_what_it_is_made_of() {
        let textual = |oid| is_textual(&pgclinic_format::datum::builtin(oid).expect("a type"));
        assert!(textual(25) && textual(1009) && textual(3802) && textual(3643));
        assert!(!textual(1002) && !textual(17) && !textual(3904) && !textual(1700));
    }
}
