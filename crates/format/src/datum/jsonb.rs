//! Binary JSON: containers of entries, each a word of type and length (or end offset) whose
//! bytes stand behind all words; numbers and containers begin at a multiple of four there.
//!
//! ```text
//! container  u32: count 28 bits, scalar 0x10000000, object 0x20000000, array 0x40000000
//! entries    u32 each: length or end 28 bits, type 3 bits, 0x80000000 = it is an end
//!            an object has all its keys first, then as many values
//! ```
//!
//! Truth: `jsonb.h`, `jsonb_util.c`, `jsonb.c`.

use super::element;
use super::printer::Printer;
use super::reader::Reader;
use super::undecodable::Undecodable;
use super::{json_escape, numeric};

const COUNT_MASK: u32 = 0x0FFF_FFFF;
const IS_SCALAR: u32 = 0x1000_0000;
const IS_OBJECT: u32 = 0x2000_0000;
const IS_ARRAY: u32 = 0x4000_0000;
const HAS_END: u32 = 0x8000_0000;
/// Deeper than the server's own stack goes; keeps the memory for open containers small.
pub(crate) const DEPTH_MAX: usize = 1 << 16;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    Scalar,
    Array,
    Object,
}

pub(crate) struct Entry<'a> {
    pub(crate) kind: u32,
    pub(crate) bytes: &'a [u8],
}

/// Walks over the entries of a container from some place on.
#[derive(Clone, Copy)]
pub(crate) struct Entries<'a> {
    words: Reader<'a>,
    data: &'a [u8],
    end: usize,
}

impl<'a> Entries<'a> {
    pub(crate) fn next(&mut self) -> Result<Entry<'a>, Undecodable> {
        let word = self.words.u32()?;
        let number = usize::try_from(word & COUNT_MASK).unwrap_or(usize::MAX);
        let start = self.end;
        let end = if word & HAS_END != 0 {
            number
        } else {
            start.saturating_add(number)
        };
        let kind = word >> 28 & 7;
        // Numbers and containers are aligned, and their length holds the padding.
        let is_aligned = matches!(kind, 1 | 5);
        let from = if is_aligned {
            start.next_multiple_of(4)
        } else {
            start
        };
        let bytes = self.data.get(from.min(end)..end).filter(|_| end >= start);
        let bytes = bytes.ok_or_else(|| {
            self.words
                .damaged("a jsonb entry lies outside its container")
        })?;
        self.end = end;
        Ok(Entry { kind, bytes })
    }
}

pub(crate) struct Container<'a> {
    pub(crate) shape: Shape,
    pub(crate) count: u32,
    pub(crate) done: u32,
    pub(crate) keys: Entries<'a>,
    pub(crate) values: Entries<'a>,
}

impl<'a> Container<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, Undecodable> {
        let mut reader = Reader::new(bytes);
        let header = reader.u32()?;
        let count = header & COUNT_MASK;
        let shape = match header & (IS_SCALAR | IS_OBJECT | IS_ARRAY) {
            IS_OBJECT => Shape::Object,
            IS_ARRAY => Shape::Array,
            bits if bits == IS_ARRAY | IS_SCALAR && count == 1 => Shape::Scalar,
            _ => {
                return Err(Undecodable::damaged(
                    "a jsonb container is neither array nor object",
                    0,
                ));
            }
        };
        let entries = count.saturating_mul(if shape == Shape::Object { 2 } else { 1 });
        let length = usize::try_from(entries)
            .unwrap_or(usize::MAX)
            .saturating_mul(4);
        let words = Reader::new(reader.bytes(length)?);
        let keys = Entries {
            words,
            data: reader.rest(),
            end: 0,
        };
        let mut values = keys;
        if shape == Shape::Object {
            for _ in 0..count {
                values.next()?;
            }
        }
        Ok(Container {
            shape,
            count,
            done: 0,
            keys,
            values,
        })
    }

    fn edge(&self, edges: [&'static str; 2]) -> &'static str {
        let [array, object] = edges;
        match self.shape {
            Shape::Scalar => "",
            Shape::Array => array,
            Shape::Object => object,
        }
    }
}

pub(super) fn print(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut open = vec![enter(printer, value)?];
    while let Some(container) = open.last_mut() {
        if container.done == container.count {
            printer.text(container.edge(["]", "}"]))?;
            open.pop();
            continue;
        }
        if container.done > 0 {
            printer.text(", ")?;
        }
        container.done += 1;
        if container.shape == Shape::Object {
            print_key(printer, container)?;
        }
        let entry = container.values.next()?;
        if entry.kind != 5 {
            print_scalar(printer, &entry)?;
        } else if open.len() < DEPTH_MAX {
            open.push(enter(printer, entry.bytes)?);
        } else {
            return Err(Undecodable::limit(
                "the value is nested deeper than the limit",
            ));
        }
    }
    Ok(())
}

fn enter<'a>(printer: &mut Printer, bytes: &'a [u8]) -> Result<Container<'a>, Undecodable> {
    let container = Container::open(bytes)?;
    printer.text(container.edge(["[", "{"]))?;
    Ok(container)
}

fn print_key(printer: &mut Printer, container: &mut Container<'_>) -> Result<(), Undecodable> {
    let key = container.keys.next()?;
    if key.kind != 0 {
        return Err(Undecodable::damaged("a jsonb key is no string", 0));
    }
    json_escape::print(printer, key.bytes)?;
    printer.text(": ")
}

fn print_scalar(printer: &mut Printer, entry: &Entry<'_>) -> Result<(), Undecodable> {
    match entry.kind {
        0 => json_escape::print(printer, entry.bytes),
        1 => {
            let number = element::varlena(printer.unpacking(), &mut Reader::new(entry.bytes))?;
            numeric::print(printer, &number)
        }
        2 => printer.text("false"),
        3 => printer.text("true"),
        4 => printer.text("null"),
        _ => Err(Undecodable::damaged("a jsonb entry has an unknown type", 0)),
    }
}
