//! Text search queries: a count, items of 12 bytes in prefix order (an operator, its right
//! operand, its left one), then the lexemes.
//!
//! ```text
//! lexeme    type 1, weight u8, is prefix u8, 1 free, checksum i32, length 12 bits, offset 20
//! operator  type 2, operator i8, distance i16, left u32, 4 free
//! ```
//!
//! Truth: `ts_type.h`, `tsquery.c`.

use super::printer::Printer;
use super::reader::Reader;
use super::tsvector::print_quoted;
use super::undecodable::Undecodable;

const ITEM_BYTES: usize = 12;

#[derive(Clone, Copy)]
pub(super) enum Item<'a> {
    Lexeme {
        text: &'a [u8],
        weight: u8,
        is_prefix: bool,
    },
    Not,
    Binary {
        operator: Operator,
        right: usize,
        left: usize,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    And,
    Or,
    Phrase(i16),
}

impl Operator {
    /// How tightly it binds; a lexeme's `!` binds at 4.
    fn priority(self) -> i8 {
        match self {
            Operator::Or => 1,
            Operator::And => 2,
            Operator::Phrase(_) => 3,
        }
    }
}

const NOT_PRIORITY: i8 = 4;

/// What is still to be printed.
enum Step {
    Item {
        at: usize,
        outer: i8,
        is_right_of_phrase: bool,
    },
    Text(&'static str),
    Operator(Operator),
}

pub(super) fn print(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let items = parse(value)?;
    if items.is_empty() {
        return Ok(());
    }
    let mut steps = vec![Step::Item {
        at: 0,
        outer: -1,
        is_right_of_phrase: false,
    }];
    while let Some(step) = steps.pop() {
        match step {
            Step::Text(text) => printer.text(text)?,
            Step::Operator(Operator::And) => printer.text(" & ")?,
            Step::Operator(Operator::Or) => printer.text(" | ")?,
            Step::Operator(Operator::Phrase(1)) => printer.text(" <-> ")?,
            Step::Operator(Operator::Phrase(distance)) => {
                printer.put(format_args!(" <{distance}> "))?
            }
            Step::Item {
                at,
                outer,
                is_right_of_phrase,
            } => {
                let item = items
                    .get(at)
                    .ok_or(Undecodable::damaged("a query operator has no operand", 4))?;
                print_item(printer, &mut steps, item, at, outer, is_right_of_phrase)?;
            }
        }
    }
    Ok(())
}

fn print_item(
    printer: &mut Printer,
    steps: &mut Vec<Step>,
    item: &Item<'_>,
    at: usize,
    outer: i8,
    is_right_of_phrase: bool,
) -> Result<(), Undecodable> {
    match *item {
        Item::Lexeme {
            text,
            weight,
            is_prefix,
        } => {
            print_quoted(printer, text)?;
            print_weights(printer, weight, is_prefix)
        }
        Item::Not => {
            steps.push(Step::Item {
                at: at + 1,
                outer: NOT_PRIORITY,
                is_right_of_phrase: false,
            });
            printer.byte(b'!')
        }
        Item::Binary {
            operator,
            right,
            left,
        } => {
            let is_phrase = matches!(operator, Operator::Phrase(_));
            let outer_binds = operator.priority() < outer || is_phrase && is_right_of_phrase;
            let outer = operator.priority();
            if outer_binds {
                printer.text("( ")?;
                steps.push(Step::Text(" )"));
            }
            steps.push(Step::Item {
                at: right,
                outer,
                is_right_of_phrase: is_phrase,
            });
            steps.push(Step::Operator(operator));
            steps.push(Step::Item {
                at: left,
                outer,
                is_right_of_phrase: false,
            });
            Ok(())
        }
    }
}

fn print_weights(printer: &mut Printer, weight: u8, is_prefix: bool) -> Result<(), Undecodable> {
    if weight == 0 && !is_prefix {
        return Ok(());
    }
    printer.text(if is_prefix { ":*" } else { ":" })?;
    for (bit, letter) in [(8, b'A'), (4, b'B'), (2, b'C'), (1, b'D')] {
        if weight & bit != 0 {
            printer.byte(letter)?;
        }
    }
    Ok(())
}

/// All items, each binary operator with the places of its operands.
pub(super) fn parse(value: &[u8]) -> Result<Vec<Item<'_>>, Undecodable> {
    let mut reader = Reader::new(value);
    let count = reader.count("the count of query items is negative")?;
    let stored = reader.bytes(count.saturating_mul(ITEM_BYTES))?;
    let lexemes = reader.rest();
    let mut items = Vec::with_capacity(count);
    for bytes in stored.chunks_exact(ITEM_BYTES) {
        items.push(parse_item(bytes, lexemes)?);
    }
    place_operands(&mut items)?;
    Ok(items)
}

fn parse_item<'a>(bytes: &[u8], lexemes: &'a [u8]) -> Result<Item<'a>, Undecodable> {
    let mut reader = Reader::new(bytes);
    let kind = reader.u8()?;
    if kind == 1 {
        let (weight, is_prefix) = (reader.u8()?, reader.u8()? != 0);
        reader.bytes(5)?;
        let word = reader.u32()?;
        let length = usize::try_from(word & 0xFFF).unwrap_or(usize::MAX);
        let offset = usize::try_from(word >> 12).unwrap_or(usize::MAX);
        let text = Reader::starting(lexemes, offset).bytes(length)?;
        return Ok(Item::Lexeme {
            text,
            weight,
            is_prefix,
        });
    }
    let (operator, distance) = (reader.u8()?, reader.i16()?);
    let operator = match (kind, operator) {
        (2, 1) => return Ok(Item::Not),
        (2, 2) => Operator::And,
        (2, 3) => Operator::Or,
        (2, 4) => Operator::Phrase(distance),
        _ => return Err(Undecodable::damaged("a query item is of unknown type", 0)),
    };
    Ok(Item::Binary {
        operator,
        right: 0,
        left: 0,
    })
}

/// From the last item back, where each operand's subtree ends is known when it is needed.
fn place_operands(items: &mut [Item<'_>]) -> Result<(), Undecodable> {
    let none = Undecodable::damaged("a query operator has no operand", 4);
    let mut ends = vec![0; items.len()];
    for at in (0..items.len()).rev() {
        let end_of = |place: usize| ends.get(place).copied().ok_or(none);
        let end = match items.get_mut(at) {
            Some(Item::Binary { right, left, .. }) => {
                *right = at + 1;
                *left = end_of(at + 1)?;
                end_of(*left)?
            }
            Some(Item::Not) => end_of(at + 1)?,
            _ => at + 1,
        };
        if let Some(slot) = ends.get_mut(at) {
            *slot = end;
        }
    }
    match ends.first() {
        Some(&end) if end != items.len() => {
            Err(Undecodable::damaged("a query has items after its end", 4))
        }
        _ => Ok(()),
    }
}
