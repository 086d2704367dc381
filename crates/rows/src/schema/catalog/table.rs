//! One catalog in memory: rows of raw attributes in one piece, found by OID or by a key column.

use std::collections::HashMap;

use pgclinic_cluster::Words;
use pgclinic_format::Oid;

use super::super::refusal::{Refusal, Written};
use super::array;

/// Where an attribute stands in the table's bytes.
#[derive(Clone, Copy)]
enum Cell {
    Null,
    /// It is there, but cannot be read.
    Lost,
    At(u32, u32),
}

/// A value that goes into a table.
pub(super) enum Taken {
    Null,
    Lost,
    /// Without a header.
    Payload(Vec<u8>),
}

/// A catalog.
#[derive(Default)]
pub(crate) struct Table {
    columns: HashMap<String, usize>,
    width: usize,
    words: Words,
    bytes: Vec<u8>,
    cells: Vec<Cell>,
    keys: HashMap<&'static str, HashMap<Oid, Vec<usize>>>,
}

impl Table {
    /// An empty table with these columns, whose words are read so.
    pub(super) fn new(columns: impl Iterator<Item = String>, words: Words) -> Self {
        let columns: HashMap<String, usize> = columns.zip(0..).collect();
        Table {
            width: columns.len(),
            columns,
            words,
            ..Table::default()
        }
    }

    /// Adds a row. A table that outgrows 4 GiB loses the values of its last rows.
    pub(super) fn push(&mut self, values: &[Taken]) {
        for index in 0..self.width {
            let cell = match values.get(index) {
                None | Some(Taken::Null) => Cell::Null,
                Some(Taken::Lost) => Cell::Lost,
                Some(Taken::Payload(value)) => self.keep(value).unwrap_or(Cell::Lost),
            };
            self.cells.push(cell);
        }
    }

    fn keep(&mut self, value: &[u8]) -> Option<Cell> {
        let end = self.bytes.len().checked_add(value.len())?;
        u32::try_from(end).ok()?;
        let start = u32::try_from(self.bytes.len()).ok()?;
        self.bytes.extend_from_slice(value);
        Some(Cell::At(start, u32::try_from(value.len()).ok()?))
    }

    /// Makes rows findable by a column of type `oid`.
    pub(super) fn key(&mut self, column: &'static str) {
        let mut found: HashMap<Oid, Vec<usize>> = HashMap::new();
        for index in 0..self.len() {
            if let Some(row) = self.at(index) {
                found.entry(row.oid(column)).or_default().push(index);
            }
        }
        self.keys.insert(column, found);
    }

    /// How many rows it has.
    pub(crate) fn len(&self) -> usize {
        self.cells.len().checked_div(self.width).unwrap_or(0)
    }

    fn at(&self, index: usize) -> Option<Row<'_>> {
        let start = index.checked_mul(self.width)?;
        let cells = self.cells.get(start..start.checked_add(self.width)?)?;
        Some(Row { table: self, cells })
    }

    /// The row with this OID.
    pub(crate) fn row(&self, oid: Oid) -> Option<Row<'_>> {
        let index = self.keys.get("oid")?.get(&oid)?.first()?;
        self.at(*index)
    }

    /// The rows with this value in a key column, as they stand on disk.
    pub(crate) fn rows_where(&self, key: &str, value: Oid) -> Vec<Row<'_>> {
        let found = self.keys.get(key).and_then(|rows| rows.get(&value));
        let indexes = found.map(Vec::as_slice).unwrap_or_default();
        indexes.iter().filter_map(|index| self.at(*index)).collect()
    }

    /// All rows, as they stand on disk.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.len()).filter_map(|index| self.at(index))
    }
}

/// A row.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    table: &'a Table,
    cells: &'a [Cell],
}

impl<'a> Row<'a> {
    /// The payload of a column; nothing for null and for columns that this major does not have.
    pub(crate) fn bytes(&self, column: &str) -> Option<&'a [u8]> {
        let Cell::At(start, len) = *self.cells.get(*self.table.columns.get(column)?)? else {
            return None;
        };
        let start = usize::try_from(start).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        self.table.bytes.get(start..end)
    }

    /// The column is there, but cannot be read: it is not null.
    pub(crate) fn is_lost(&self, column: &str) -> bool {
        let at = self.table.columns.get(column);
        at.is_some_and(|at| matches!(self.cells.get(*at), Some(Cell::Lost)))
    }

    /// An error if some column of the row is there, but cannot be read.
    pub(crate) fn whole(&self) -> Written {
        let mut columns = self.table.columns.iter();
        let lost = |at: usize| matches!(self.cells.get(at), Some(Cell::Lost));
        match columns.find(|(_, at)| lost(**at)) {
            Some((name, _)) => Err(Refusal(format!("its {name} cannot be read"))),
            None => Ok(()),
        }
    }

    /// An OID; 0 for null.
    pub(crate) fn oid(&self, column: &str) -> Oid {
        let bytes = self.bytes(column).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| Oid::from_le_bytes(*bytes))
    }

    /// The row's own OID.
    pub(crate) fn id(&self) -> Oid {
        self.oid("oid")
    }

    /// A number of 1, 2, 4 or 8 bytes; 0 for null.
    pub(crate) fn int(&self, column: &str) -> i64 {
        self.number(column).unwrap_or(0)
    }

    /// A number, nothing for null.
    pub(crate) fn number(&self, column: &str) -> Option<i64> {
        match *self.bytes(column)? {
            [a] => Some(i64::from(a)),
            [a, b] => Some(i64::from(i16::from_le_bytes([a, b]))),
            [a, b, c, d] => Some(i64::from(i32::from_le_bytes([a, b, c, d]))),
            [a, b, c, d, e, f, g, h] => Some(i64::from_le_bytes([a, b, c, d, e, f, g, h])),
            _ => None,
        }
    }

    /// A `float4`.
    pub(crate) fn float(&self, column: &str) -> f32 {
        let bytes = self.bytes(column).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0.0, |bytes| f32::from_le_bytes(*bytes))
    }

    /// A `bool`; false for null.
    pub(crate) fn flag(&self, column: &str) -> bool {
        self.int(column) != 0
    }

    /// A `"char"`; a blank for null.
    pub(crate) fn letter(&self, column: &str) -> char {
        let byte = self.bytes(column).and_then(<[u8]>::first);
        byte.map_or(' ', |byte| char::from(*byte))
    }

    /// The bytes of a `text`, or of a `name` up to its first zero, as they are stored.
    pub(crate) fn text_bytes(&self, column: &str) -> Option<&'a [u8]> {
        let bytes = self.bytes(column)?;
        let end = bytes.iter().position(|byte| *byte == 0);
        bytes.get(..end.unwrap_or(bytes.len()))
    }

    /// A `text` or `name`. Bytes that are no text are shown as escapes.
    pub(crate) fn text(&self, column: &str) -> Option<String> {
        let bytes = self.text_bytes(column)?;
        Some(self.table.words.readable(bytes))
    }

    /// The same, empty for null.
    pub(crate) fn name(&self, column: &str) -> String {
        self.text(column).unwrap_or_default()
    }

    /// The elements of an `oid[]` or `oidvector`.
    pub(crate) fn oids(&self, column: &str) -> Vec<Oid> {
        let raw = self.elements(column).into_iter();
        raw.map(|element| {
            let bytes = element.and_then(<[u8]>::first_chunk);
            bytes.map_or(0, |bytes| Oid::from_le_bytes(*bytes))
        })
        .collect()
    }

    /// The elements of an `int2[]` or `int2vector`.
    pub(crate) fn shorts(&self, column: &str) -> Vec<i64> {
        let raw = self.elements(column).into_iter();
        raw.map(|element| {
            let bytes = element.and_then(<[u8]>::first_chunk);
            bytes.map_or(0, |bytes| i64::from(i16::from_le_bytes(*bytes)))
        })
        .collect()
    }

    /// The elements of a `text[]`.
    pub(crate) fn texts(&self, column: &str) -> Vec<String> {
        let raw = self.elements(column).into_iter();
        let words = self.table.words;
        raw.map(|element| element.map_or(String::new(), |bytes| words.readable(bytes)))
            .collect()
    }

    /// The elements of a `"char"[]`.
    pub(crate) fn letters(&self, column: &str) -> Vec<char> {
        let raw = self.elements(column).into_iter().flatten();
        raw.filter_map(<[u8]>::first)
            .map(|byte| char::from(*byte))
            .collect()
    }

    /// The elements of any one-dimensional array of built-in elements, without their headers.
    pub(crate) fn elements(&self, column: &str) -> Vec<Option<&'a [u8]>> {
        self.bytes(column)
            .and_then(array::elements)
            .unwrap_or_default()
    }
}
