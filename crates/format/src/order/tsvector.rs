//! `tsvector`: the shorter value first, then the one with fewer lexemes, then lexeme by lexeme;
//! positions and weights count downwards.
//!
//! Truth: `silly_cmp_tsvector` in `tsvector_op.c`.

use std::cmp::Ordering;

use crate::datum::reader::Reader;

/// Compares two payloads.
pub(super) fn compare(a: &[u8], b: &[u8]) -> Option<Ordering> {
    let (mut left, mut right) = (Lexemes::parse(a)?, Lexemes::parse(b)?);
    let sizes = a.len().cmp(&b.len()).then(left.count.cmp(&right.count));
    if sizes.is_ne() {
        return Some(sizes);
    }
    for _ in 0..left.count {
        let order = left.next()?.compare(right.next()?)?;
        if order.is_ne() {
            return Some(order);
        }
    }
    Some(Ordering::Equal)
}

struct Lexemes<'a> {
    count: usize,
    words: Reader<'a>,
    text: &'a [u8],
}

struct Lexeme<'a> {
    text: &'a [u8],
    positions: Option<Reader<'a>>,
}

impl<'a> Lexemes<'a> {
    fn parse(value: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(value);
        let count = reader.count("the count of lexemes is negative").ok()?;
        let words = Reader::new(reader.bytes(count.saturating_mul(4)).ok()?);
        Some(Lexemes {
            count,
            words,
            text: reader.rest(),
        })
    }

    fn next(&mut self) -> Option<Lexeme<'a>> {
        let word = self.words.u32().ok()?;
        let length = usize::try_from(word >> 1 & 0x7FF).ok()?;
        let offset = usize::try_from(word >> 12).ok()?;
        let mut reader = Reader::starting(self.text, offset);
        let text = reader.bytes(length).ok()?;
        reader.align(2, 0);
        Some(Lexeme {
            text,
            positions: (word & 1 != 0).then_some(reader),
        })
    }
}

impl Lexeme<'_> {
    fn compare(self, other: Self) -> Option<Ordering> {
        let has_positions = |lexeme: &Self| lexeme.positions.is_some();
        let order = has_positions(&other)
            .cmp(&has_positions(&self))
            .then_with(|| self.text.cmp(other.text));
        match (self.positions, other.positions) {
            (Some(a), Some(b)) if order.is_eq() => compare_positions(a, b),
            _ => Some(order),
        }
    }
}

/// More positions first, then later ones, then heavier ones.
fn compare_positions(mut a: Reader<'_>, mut b: Reader<'_>) -> Option<Ordering> {
    let (a_count, b_count) = (a.u16().ok()?, b.u16().ok()?);
    if a_count != b_count {
        return Some(b_count.cmp(&a_count));
    }
    for _ in 0..a_count {
        let (left, right) = (a.u16().ok()?, b.u16().ok()?);
        let parts = |word: u16| (word & 0x3FFF, word >> 14);
        let order = parts(right).cmp(&parts(left));
        if order.is_ne() {
            return Some(order);
        }
    }
    Some(Ordering::Equal)
}
