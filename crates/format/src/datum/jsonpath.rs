//! JSON paths: items at multiples of four, each a type, the distance to the next item of its
//! chain (0 ends it) and what it holds; operands are distances too, always forward.
//!
//! Truth: `jsonpath.h` (the item types, in their order), `jsonpath.c`.

use super::printer::Printer;
use super::reader::Reader;
use super::undecodable::Undecodable;
use super::{element, json_escape, numeric};

const VERSION: u32 = 1;
const IS_LAX: u32 = 0x8000_0000;

pub(super) fn print(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let head = reader.u32()?;
    if head & !IS_LAX != VERSION {
        return Err(Undecodable::damaged(
            "the version of a jsonpath is not 1",
            0,
        ));
    }
    if head & IS_LAX == 0 {
        printer.text("strict ")?;
    }
    let root = Node {
        data: reader.rest(),
        at: 0,
    };
    chain(printer, root, Brackets::Around)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Brackets {
    Around,
    Absent,
}

#[derive(Clone, Copy)]
struct Node<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Node<'a> {
    /// Where an operand stands; `None` for 0, which is no operand.
    fn follow(self, distance: i32) -> Result<Option<Node<'a>>, Undecodable> {
        let distance = usize::try_from(distance);
        let distance =
            distance.map_err(|_| Undecodable::damaged("a jsonpath points backward", self.at))?;
        Ok((distance > 0).then(|| Node {
            at: self.at.saturating_add(distance),
            ..self
        }))
    }

    fn operand(self, distance: i32) -> Result<Node<'a>, Undecodable> {
        self.follow(distance)?.ok_or(Undecodable::damaged(
            "a jsonpath operand is missing",
            self.at,
        ))
    }

    fn kind(self) -> Result<u8, Undecodable> {
        Reader::starting(self.data, self.at).u8()
    }
}

/// Prints an item and all that hang on it by their next links.
fn chain(printer: &mut Printer, first: Node<'_>, brackets: Brackets) -> Result<(), Undecodable> {
    printer.descend(|printer| {
        let (mut node, mut brackets, mut dot) = (first, brackets, "");
        loop {
            let mut reader = Reader::starting(node.data, node.at);
            let kind = reader.u8()?;
            reader.align(4, 0);
            let next = node.follow(reader.i32()?)?;
            let item = Item {
                kind,
                node,
                brackets,
                dot,
                has_next: next.is_some(),
            };
            item.print(printer, &mut reader)?;
            match next {
                Some(next) => (node, brackets, dot) = (next, Brackets::Around, "."),
                None => return Ok(()),
            }
        }
    })
}

struct Item<'a> {
    kind: u8,
    node: Node<'a>,
    brackets: Brackets,
    /// What stands before a key that is not first in its chain.
    dot: &'static str,
    has_next: bool,
}

impl Item<'_> {
    fn print(&self, printer: &mut Printer, reader: &mut Reader<'_>) -> Result<(), Undecodable> {
        if let Some(word) = word(self.kind) {
            return printer.text(word);
        }
        match self.kind {
            1 => string(printer, reader),
            2 => self.number(printer, reader),
            3 => printer.text(if reader.u8()? != 0 { "true" } else { "false" }),
            4 | 5 | 8..=18 | 41 => self.binary(printer, reader),
            6 => self.around(printer, reader, "!(", ")"),
            7 => self.around(printer, reader, "(", ") is unknown"),
            19 | 20 => self.sign(printer, reader),
            22 => printer.put(format_args!("{}*", self.dot)),
            23 => self.subscripts(printer, reader),
            24 => self.levels(printer, reader),
            25 => {
                printer.text(self.dot)?;
                string(printer, reader)
            }
            28 => {
                printer.byte(b'$')?;
                string(printer, reader)
            }
            29 => self.around(printer, reader, "?(", ")"),
            30 => self.around(printer, reader, "exists (", ")"),
            37 => self.method(printer, reader, ".datetime("),
            42 => self.like_regex(printer, reader),
            46 => self.decimal(printer, reader),
            50 => self.method(printer, reader, ".time("),
            51 => self.method(printer, reader, ".time_tz("),
            52 => self.method(printer, reader, ".timestamp("),
            53 => self.method(printer, reader, ".timestamp_tz("),
            _ => Err(Undecodable::damaged(
                "a jsonpath item is of unknown type",
                self.node.at,
            )),
        }
    }

    fn number(&self, printer: &mut Printer, reader: &mut Reader<'_>) -> Result<(), Undecodable> {
        let number = element::varlena(printer.unpacking(), reader)?;
        printer.text(if self.has_next { "(" } else { "" })?;
        numeric::print(printer, &number)?;
        printer.text(if self.has_next { ")" } else { "" })
    }

    fn open(&self, printer: &mut Printer) -> Result<(), Undecodable> {
        if self.brackets == Brackets::Around {
            printer.byte(b'(')
        } else {
            Ok(())
        }
    }

    fn close(&self, printer: &mut Printer) -> Result<(), Undecodable> {
        if self.brackets == Brackets::Around {
            printer.byte(b')')
        } else {
            Ok(())
        }
    }

    /// An operand, in brackets if it binds no tighter than this operator.
    fn operand(&self, printer: &mut Printer, distance: i32) -> Result<(), Undecodable> {
        let node = self.node.operand(distance)?;
        let is_loose = priority(node.kind()?) <= priority(self.kind);
        chain(
            printer,
            node,
            if is_loose {
                Brackets::Around
            } else {
                Brackets::Absent
            },
        )
    }

    fn binary(&self, printer: &mut Printer, reader: &mut Reader<'_>) -> Result<(), Undecodable> {
        let (left, right) = (reader.i32()?, reader.i32()?);
        self.open(printer)?;
        self.operand(printer, left)?;
        printer.put(format_args!(" {} ", operator(self.kind)))?;
        self.operand(printer, right)?;
        self.close(printer)
    }

    fn sign(&self, printer: &mut Printer, reader: &mut Reader<'_>) -> Result<(), Undecodable> {
        self.open(printer)?;
        printer.byte(if self.kind == 19 { b'+' } else { b'-' })?;
        self.operand(printer, reader.i32()?)?;
        self.close(printer)
    }

    fn around(
        &self,
        printer: &mut Printer,
        reader: &mut Reader<'_>,
        before: &str,
        after: &str,
    ) -> Result<(), Undecodable> {
        printer.text(before)?;
        chain(printer, self.node.operand(reader.i32()?)?, Brackets::Absent)?;
        printer.text(after)
    }

    /// A method whose argument may be absent.
    fn method(
        &self,
        printer: &mut Printer,
        reader: &mut Reader<'_>,
        before: &str,
    ) -> Result<(), Undecodable> {
        printer.text(before)?;
        if let Some(argument) = self.node.follow(reader.i32()?)? {
            chain(printer, argument, Brackets::Absent)?;
        }
        printer.byte(b')')
    }

    fn decimal(&self, printer: &mut Printer, reader: &mut Reader<'_>) -> Result<(), Undecodable> {
        let (precision, scale) = (reader.i32()?, reader.i32()?);
        printer.text(".decimal(")?;
        if let Some(precision) = self.node.follow(precision)? {
            chain(printer, precision, Brackets::Absent)?;
        }
        if let Some(scale) = self.node.follow(scale)? {
            printer.byte(b',')?;
            chain(printer, scale, Brackets::Absent)?;
        }
        printer.byte(b')')
    }

    fn subscripts(
        &self,
        printer: &mut Printer,
        reader: &mut Reader<'_>,
    ) -> Result<(), Undecodable> {
        printer.byte(b'[')?;
        for place in 0..reader.count("the count of subscripts is negative")? {
            let (from, to) = (reader.i32()?, reader.i32()?);
            printer.text(if place > 0 { "," } else { "" })?;
            chain(printer, self.node.operand(from)?, Brackets::Absent)?;
            if let Some(to) = self.node.follow(to)? {
                printer.text(" to ")?;
                chain(printer, to, Brackets::Absent)?;
            }
        }
        printer.byte(b']')
    }

    /// `.**` with its levels; the largest number is `last`.
    fn levels(&self, printer: &mut Printer, reader: &mut Reader<'_>) -> Result<(), Undecodable> {
        let level = |number: u32| {
            if number == u32::MAX {
                "last".to_owned()
            } else {
                number.to_string()
            }
        };
        let (first, last) = (reader.u32()?, reader.u32()?);
        printer.text(self.dot)?;
        match (first, last) {
            (0, u32::MAX) => printer.text("**"),
            _ if first == last => printer.put(format_args!("**{{{}}}", level(first))),
            _ => printer.put(format_args!("**{{{} to {}}}", level(first), level(last))),
        }
    }

    fn like_regex(
        &self,
        printer: &mut Printer,
        reader: &mut Reader<'_>,
    ) -> Result<(), Undecodable> {
        let (flags, expression) = (reader.u32()?, reader.i32()?);
        self.open(printer)?;
        self.operand(printer, expression)?;
        printer.text(" like_regex ")?;
        string(printer, reader)?;
        if flags != 0 {
            printer.text(" flag \"")?;
            for (bit, letter) in "ismxq".bytes().enumerate() {
                if flags >> bit & 1 != 0 {
                    printer.byte(letter)?;
                }
            }
            printer.byte(b'"')?;
        }
        self.close(printer)
    }
}

/// A length and so many bytes, printed as JSON does.
fn string(printer: &mut Printer, reader: &mut Reader<'_>) -> Result<(), Undecodable> {
    let length = reader.count("the length of a jsonpath string is negative")?;
    json_escape::print(printer, reader.bytes(length)?)
}

/// Items that are one word.
fn word(kind: u8) -> Option<&'static str> {
    Some(match kind {
        0 => "null",
        21 => "[*]",
        26 => "@",
        27 => "$",
        31 => ".type()",
        32 => ".size()",
        33 => ".abs()",
        34 => ".floor()",
        35 => ".ceiling()",
        36 => ".double()",
        38 => ".keyvalue()",
        40 => "last",
        43 => ".bigint()",
        44 => ".boolean()",
        45 => ".date()",
        47 => ".integer()",
        48 => ".number()",
        49 => ".string()",
        _ => return None,
    })
}

fn operator(kind: u8) -> &'static str {
    match kind {
        4 => "&&",
        5 => "||",
        8 => "==",
        9 => "!=",
        10 => "<",
        11 => ">",
        12 => "<=",
        13 => ">=",
        14 => "+",
        15 => "-",
        16 => "*",
        17 => "/",
        18 => "%",
        _ => "starts with",
    }
}

fn priority(kind: u8) -> u8 {
    match kind {
        5 => 0,
        4 => 1,
        8..=13 | 41 => 2,
        14 | 15 => 3,
        16..=18 => 4,
        19 | 20 => 5,
        _ => 6,
    }
}
