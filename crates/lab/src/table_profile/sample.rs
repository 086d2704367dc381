//! What is gathered of a column while rows go by.

use std::collections::HashSet;

use pgclinic_format::{Varlena, varlena};

use super::{ColumnShape, Quartiles};
use crate::statistics::quantile::quantile;

/// Values longer than this are judged by their beginning.
const JUDGED_BYTES: usize = 8_192;

/// A column's values so far.
#[derive(Debug, Default)]
pub(super) struct Sample {
    rows: u64,
    nulls: u64,
    bytes: Vec<f64>,
    kept: Kept,
    elsewhere: u64,
    last: Option<Vec<u8>>,
    pairs: u64,
    rising: u64,
}

/// Bytes before and after compression.
#[derive(Debug, Default, Clone, Copy)]
struct Kept {
    raw: f64,
    stored: f64,
}

/// How values of a type are compared by their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// Little-endian whole numbers with a sign.
    Number,
    /// Byte by byte.
    Bytes,
    /// Not at all.
    None,
}

impl Order {
    /// The order of a type.
    pub(super) fn of(type_name: &str) -> Self {
        match type_name {
            "int2" | "int4" | "int8" | "date" | "timestamp" | "timestamptz" | "time" => {
                Order::Number
            }
            "uuid" => Order::Bytes,
            _ => Order::None,
        }
    }

    /// The value's bytes, made comparable from left to right.
    fn key(self, value: &[u8]) -> Option<Vec<u8>> {
        match self {
            Order::None => None,
            Order::Bytes => Some(value.to_vec()),
            Order::Number => {
                let mut key: Vec<u8> = value.iter().rev().copied().collect();
                // The sign comes first and turned round, so that negative numbers are below.
                *key.first_mut()? ^= 0x80;
                Some(key)
            }
        }
    }
}

impl Sample {
    /// A row in which the column is null, or from before it was added.
    pub(super) fn null(&mut self) {
        self.rows += 1;
        self.nulls += 1;
    }

    /// A value of fixed length.
    pub(super) fn fixed(&mut self, value: &[u8], order: Order) {
        self.rows += 1;
        self.size(value.len());
        let Some(key) = order.key(value) else { return };
        if let Some(last) = self.last.replace(key) {
            self.pairs += 1;
            self.rising += u64::from(self.last.as_ref().is_some_and(|now| *now > last));
        }
    }

    /// A value of any length, with its header.
    pub(super) fn long(&mut self, value: &[u8]) {
        self.rows += 1;
        match varlena::parse(value) {
            Ok((Varlena::Short(payload) | Varlena::Plain(payload), _)) => {
                self.size(payload.len());
                self.keep(payload.len(), payload.len() - repeated(payload));
            }
            Ok((Varlena::Compressed(packed), _)) => {
                let raw = usize::try_from(packed.raw_size).unwrap_or_default();
                self.size(raw);
                self.keep(raw, packed.data.len());
            }
            Ok((Varlena::External(pointer), _)) => {
                let raw = usize::try_from(pointer.va_rawsize.saturating_sub(4)).unwrap_or_default();
                let stored = usize::try_from(pointer.va_extsize).unwrap_or_default();
                self.elsewhere += 1;
                self.size(raw);
                self.keep(raw, stored.min(raw));
            }
            Err(_) => self.nulls += 1,
        }
    }

    fn size(&mut self, bytes: usize) {
        self.bytes.push(float(bytes));
    }

    fn keep(&mut self, raw: usize, stored: usize) {
        self.kept.raw += float(raw);
        self.kept.stored += float(stored);
    }

    /// The column's shape.
    pub(super) fn shape(self, name: &str, type_name: &str, is_long: bool) -> ColumnShape {
        let share = |part: f64, all: f64| if all > 0.0 { part / all } else { 0.0 };
        let at = |share: f64| whole(quantile(&self.bytes, share).unwrap_or_default());
        let bytes: Quartiles = [0.0, 0.25, 0.5, 0.75, 1.0].map(at);
        ColumnShape {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            is_long,
            nulls: short(share(count(self.nulls), count(self.rows))),
            bytes,
            kept: if self.kept.raw > 0.0 {
                short(share(self.kept.stored, self.kept.raw))
            } else {
                1.0
            },
            elsewhere: short(share(count(self.elsewhere), count(self.rows))),
            rises: (self.pairs > 0).then(|| short(share(count(self.rising), count(self.pairs)))),
        }
    }
}

/// Bytes of a value that repeat what came before in it: four at least, as pglz and LZ4 would find
/// them.
fn repeated(value: &[u8]) -> usize {
    let judged = value.get(..JUDGED_BYTES).unwrap_or(value);
    let mut seen: HashSet<&[u8]> = HashSet::new();
    let (mut at, mut repeated) = (0_usize, 0_usize);
    while let Some(four) = judged.get(at..at + 4) {
        if seen.insert(four) {
            at += 1;
        } else {
            // A match costs two or three bytes; a longer one is nearly free.
            repeated += 4;
            at += 4;
        }
    }
    // Short matches are not worth their two bytes.
    let saved = repeated.saturating_sub(repeated / 8);
    if judged.len() < value.len() {
        return whole_size(float(saved) / float(judged.len()) * float(value.len()))
            .min(value.len());
    }
    saved
}

/// Four decimals: more are not known, and fewer come back from JSON as they went in.
fn short(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

fn float(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

fn count(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

fn whole(number: f64) -> u64 {
    pgclinic_model::whole(number.round())
}

fn whole_size(number: f64) -> usize {
    usize::try_from(whole(number)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_repeat_and_noise_does_not() {
        assert!(repeated(&[b' '; 1_000]) > 800);
        let mut random = fastrand::Rng::with_seed(1);
        let noise: Vec<u8> = (0..4_096).map(|_| random.u8(..)).collect();
        assert!(repeated(&noise) < 40, "{}", repeated(&noise));
    }

    #[test]
    fn neighbours_are_compared_as_their_type_orders_them() {
        let mut rising = Sample::default();
        for number in [-3_i32, -1, 0, 7, 300] {
            rising.fixed(&number.to_le_bytes(), Order::Number);
        }
        let shape = rising.shape("id", "int4", false);
        assert_eq!(shape.rises, Some(1.0));
        assert_eq!(shape.bytes, [4; 5]);
        let mut falling = Sample::default();
        falling.fixed(&5_i64.to_le_bytes(), Order::Number);
        falling.fixed(&(-5_i64).to_le_bytes(), Order::Number);
        assert_eq!(falling.shape("id", "int8", false).rises, Some(0.0));
    }
}
