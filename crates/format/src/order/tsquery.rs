//! `tsquery`: fewer items first, then the shorter value, then item by item from the root, where
//! most things count downwards; the distance of a phrase counts after both its operands.
//!
//! Truth: `CompareTSQ` in `tsquery_op.c`, `QTNodeCompare` in `tsquery_util.c`.

use std::cmp::Ordering;

use crate::datum::reader::Reader;

const ITEM_BYTES: usize = 12;
const NOT: i8 = 1;
const PHRASE: i8 = 4;

#[derive(Clone, Copy)]
enum Item<'a> {
    Lexeme { checksum: i32, text: &'a [u8] },
    Operator { operator: i8, distance: i16 },
}

/// An operator whose operands are still being compared.
struct Open {
    operands_left: u8,
    distances: Ordering,
}

/// Compares two payloads.
pub(super) fn compare(a: &[u8], b: &[u8]) -> Option<Ordering> {
    let (mut left, mut right) = (Items::parse(a)?, Items::parse(b)?);
    let sizes = left.count.cmp(&right.count).then(a.len().cmp(&b.len()));
    if sizes.is_ne() {
        return Some(sizes);
    }
    let mut open: Vec<Open> = Vec::new();
    for _ in 0..left.count {
        let (a, b) = (left.next()?, right.next()?);
        let order = compare_items(a, b);
        if order.is_ne() {
            return Some(order);
        }
        match (a, b) {
            (
                Item::Operator { operator, distance },
                Item::Operator {
                    distance: other, ..
                },
            ) => {
                let is_phrase = operator == PHRASE;
                open.push(Open {
                    operands_left: if operator == NOT { 1 } else { 2 },
                    distances: if is_phrase {
                        other.cmp(&distance)
                    } else {
                        Ordering::Equal
                    },
                });
            }
            _ => {
                let order = close(&mut open);
                if order.is_ne() {
                    return Some(order);
                }
            }
        }
    }
    Some(Ordering::Equal)
}

/// An operand ended, and with it perhaps operators around it.
fn close(open: &mut Vec<Open>) -> Ordering {
    while let Some(last) = open.last_mut() {
        last.operands_left -= 1;
        if last.operands_left > 0 {
            break;
        }
        let distances = last.distances;
        open.pop();
        if distances.is_ne() {
            return distances;
        }
    }
    Ordering::Equal
}

fn compare_items(a: Item<'_>, b: Item<'_>) -> Ordering {
    match (a, b) {
        // An operator has the higher number.
        (Item::Lexeme { .. }, Item::Operator { .. }) => Ordering::Greater,
        (Item::Operator { .. }, Item::Lexeme { .. }) => Ordering::Less,
        (Item::Operator { operator: a, .. }, Item::Operator { operator: b, .. }) => b.cmp(&a),
        (
            Item::Lexeme { checksum, text },
            Item::Lexeme {
                checksum: other_checksum,
                text: other_text,
            },
        ) => other_checksum
            .cmp(&checksum)
            .then_with(|| text.cmp(other_text)),
    }
}

struct Items<'a> {
    count: usize,
    stored: Reader<'a>,
    lexemes: &'a [u8],
}

impl<'a> Items<'a> {
    fn parse(value: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(value);
        let count = reader.count("the count of query items is negative").ok()?;
        let stored = reader.bytes(count.saturating_mul(ITEM_BYTES)).ok()?;
        Some(Items {
            count,
            stored: Reader::new(stored),
            lexemes: reader.rest(),
        })
    }

    fn next(&mut self) -> Option<Item<'a>> {
        let mut reader = Reader::new(self.stored.bytes(ITEM_BYTES).ok()?);
        let kind = reader.u8().ok()?;
        if kind == 2 {
            let operator = reader.u8().ok()?;
            return Some(Item::Operator {
                operator: operator.cast_signed(),
                distance: reader.i16().ok()?,
            });
        }
        reader.bytes(3).ok()?;
        let checksum = reader.i32().ok()?;
        let word = reader.u32().ok()?;
        let length = usize::try_from(word & 0xFFF).ok()?;
        let offset = usize::try_from(word >> 12).ok()?;
        let text = Reader::starting(self.lexemes, offset).bytes(length).ok()?;
        (kind == 1).then_some(Item::Lexeme { checksum, text })
    }
}
