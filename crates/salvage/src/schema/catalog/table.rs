//! One catalog in memory: rows of raw attributes in one piece, found by OID or by a key column.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;

use pgclinic_cluster::CatalogEncoding;
use pgclinic_format::Oid;

use super::super::long_text::{Kept, LongText, TextStore};
use super::super::refusal::{Refusal, Written};
use super::array;

/// Longer values are kept by the store.
const SHORT_BYTES: usize = 128;

/// Where an attribute stands in the table's bytes.
#[derive(Clone, Copy)]
enum Cell {
    Null,
    /// It is there, but cannot be read.
    Lost,
    At(u32, u32),
    /// Its number among those that the store keeps.
    Long(u32),
}

/// A value that goes into a table.
pub(super) enum Taken {
    Null,
    Lost,
    /// Without a header.
    Payload(Vec<u8>),
    /// The same, kept by the store.
    Kept(Kept),
}

/// A catalog.
#[derive(Default)]
pub(crate) struct Table {
    columns: HashMap<String, usize>,
    width: usize,
    words: CatalogEncoding,
    bytes: Vec<u8>,
    cells: Vec<Cell>,
    long: Vec<Kept>,
    store: TextStore,
    keys: HashMap<&'static str, HashMap<Oid, Vec<usize>>>,
}

impl Table {
    /// An empty table with these columns, whose words are read so, and whose long values this store
    /// keeps.
    pub(super) fn new(
        columns: impl Iterator<Item = String>,
        words: CatalogEncoding,
        store: &TextStore,
    ) -> Self {
        let columns: HashMap<String, usize> = columns.zip(0..).collect();
        Table {
            width: columns.len(),
            columns,
            words,
            store: store.clone(),
            ..Table::default()
        }
    }

    /// Adds a row; the error is that of the first value that could not be kept. A table that
    /// outgrows 4 GiB loses the values of its last rows.
    pub(super) fn push(&mut self, values: Vec<Taken>) -> io::Result<()> {
        let mut failure = None;
        let end = self.cells.len() + self.width;
        for value in values.into_iter().take(self.width) {
            let cell = match value {
                Taken::Null => Cell::Null,
                Taken::Lost => Cell::Lost,
                Taken::Kept(kept) => self.refer(kept).unwrap_or(Cell::Lost),
                Taken::Payload(value) if value.len() > SHORT_BYTES => {
                    match self.store.keep(&value) {
                        Ok(kept) => self.refer(kept).unwrap_or(Cell::Lost),
                        Err(error) => {
                            failure = failure.or(Some(error));
                            Cell::Lost
                        }
                    }
                }
                Taken::Payload(value) => self.keep(&value).unwrap_or(Cell::Lost),
            };
            self.cells.push(cell);
        }
        self.cells.resize(end, Cell::Null);
        failure.map_or(Ok(()), Err)
    }

    /// Adds a row with these values in the columns of these names, and nulls in the others.
    pub(super) fn push_named(&mut self, values: &[(&'static str, Vec<u8>)]) {
        let end = self.cells.len() + self.width;
        let start = self.cells.len();
        self.cells.resize(end, Cell::Null);
        for (name, value) in values {
            let Some(at) = self.columns.get(*name).copied() else {
                continue;
            };
            let cell = self.keep(value).unwrap_or(Cell::Lost);
            if let Some(slot) = self.cells.get_mut(start + at) {
                *slot = cell;
            }
        }
    }

    /// Adds a row of another table, with what it has in the columns of this one.
    pub(super) fn push_row(&mut self, row: &Row<'_>) -> io::Result<()> {
        let mut values: Vec<Taken> = Vec::new();
        values.resize_with(self.width, || Taken::Null);
        for (name, at) in &self.columns {
            let value = match row.bytes(name) {
                Some(bytes) => Taken::Payload(bytes.into_owned()),
                None if row.is_lost(name) => Taken::Lost,
                None => Taken::Null,
            };
            if let Some(slot) = values.get_mut(*at) {
                *slot = value;
            }
        }
        self.push(values)
    }

    /// Keeps these rows alone; keys are to be made again.
    pub(super) fn retain(&mut self, is_kept: impl Fn(Row<'_>) -> bool) {
        let kept: Vec<Cell> = self
            .iter()
            .filter(|row| is_kept(*row))
            .flat_map(|row| row.cells.iter().copied())
            .collect();
        self.cells = kept;
        self.keys.clear();
    }

    fn refer(&mut self, kept: Kept) -> Option<Cell> {
        let number = u32::try_from(self.long.len()).ok()?;
        self.long.push(kept);
        Some(Cell::Long(number))
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
    pub(crate) fn bytes(&self, column: &str) -> Option<Cow<'a, [u8]>> {
        match *self.cells.get(*self.table.columns.get(column)?)? {
            Cell::Null | Cell::Lost => None,
            Cell::At(start, len) => self.short(start, len).map(Cow::Borrowed),
            Cell::Long(number) => {
                let kept = self.table.long.get(usize::try_from(number).ok()?)?;
                self.table.store.bytes(kept)
            }
        }
    }

    fn short(&self, start: u32, len: u32) -> Option<&'a [u8]> {
        let start = usize::try_from(start).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        self.table.bytes.get(start..end)
    }

    /// The first bytes of a short value, which all numbers are.
    fn first<const N: usize>(&self, column: &str) -> Option<[u8; N]> {
        match *self.cells.get(*self.table.columns.get(column)?)? {
            Cell::At(start, len) => self.short(start, len)?.first_chunk().copied(),
            _ => None,
        }
    }

    fn kept(&self, column: &str) -> Option<&'a Kept> {
        match *self.cells.get(*self.table.columns.get(column)?)? {
            Cell::Long(number) => self.table.long.get(usize::try_from(number).ok()?),
            _ => None,
        }
    }

    /// The column holds something; it need not be read for that.
    pub(crate) fn has(&self, column: &str) -> bool {
        let at = self.table.columns.get(column);
        let cell = at.and_then(|at| self.cells.get(*at));
        matches!(cell, Some(Cell::At(..) | Cell::Long(_)))
    }

    /// A text that is written between dollar signs piece by piece; nothing where it is short or
    /// null.
    pub(crate) fn long_text(&self, column: &str) -> Written<Option<LongText>> {
        let Some(kept) = self.kept(column) else {
            return Ok(None);
        };
        let text = LongText::of(&self.table.store, kept, self.table.words);
        text.map(Some)
            .map_err(|error| Refusal(format!("its {column} cannot be read: {error}")))
    }

    /// Parts that a tree of this table may have.
    pub(crate) fn tree_parts_max(&self) -> usize {
        self.table.store.tree_parts_max()
    }

    /// An error if the value of some column, but for that one, is longer than may be held in
    /// memory.
    pub(crate) fn fits_but_for(&self, exempt: &str) -> Written {
        let mut columns: Vec<&String> = self.table.columns.keys().collect();
        columns.sort_unstable();
        let max = self.table.store.value_bytes_max();
        for column in columns.into_iter().filter(|column| *column != exempt) {
            if let Some(bytes) = self
                .kept(column)
                .map(Kept::len)
                .filter(|bytes| *bytes > max)
            {
                return Err(Refusal(format!(
                    "its {column} has {bytes} bytes, more than --memory allows"
                )));
            }
        }
        Ok(())
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
        self.first(column).map_or(0, Oid::from_le_bytes)
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
        match *self.bytes(column)?.as_ref() {
            [a] => Some(i64::from(a)),
            [a, b] => Some(i64::from(i16::from_le_bytes([a, b]))),
            [a, b, c, d] => Some(i64::from(i32::from_le_bytes([a, b, c, d]))),
            [a, b, c, d, e, f, g, h] => Some(i64::from_le_bytes([a, b, c, d, e, f, g, h])),
            _ => None,
        }
    }

    /// A `float4`.
    pub(crate) fn float(&self, column: &str) -> f32 {
        self.first(column).map_or(0.0, f32::from_le_bytes)
    }

    /// A `bool`; false for null.
    pub(crate) fn flag(&self, column: &str) -> bool {
        self.int(column) != 0
    }

    /// A `"char"`; a blank for null.
    pub(crate) fn letter(&self, column: &str) -> char {
        self.first(column).map_or(' ', |[byte]| char::from(byte))
    }

    /// The bytes of a `text`, or of a `name` up to its first zero, as they are stored.
    pub(crate) fn text_bytes(&self, column: &str) -> Option<Cow<'a, [u8]>> {
        let mut bytes = self.bytes(column)?;
        if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
            match &mut bytes {
                Cow::Borrowed(bytes) => *bytes = bytes.get(..end).unwrap_or_default(),
                Cow::Owned(bytes) => bytes.truncate(end),
            }
        }
        Some(bytes)
    }

    /// A `text` or `name`. Bytes that are no text are shown as escapes.
    pub(crate) fn text(&self, column: &str) -> Option<String> {
        let bytes = self.text_bytes(column)?;
        Some(self.table.words.readable(&bytes))
    }

    /// The same, empty for null.
    pub(crate) fn name(&self, column: &str) -> String {
        self.text(column).unwrap_or_default()
    }

    /// The elements of an `oid[]` or `oidvector`.
    pub(crate) fn oids(&self, column: &str) -> Vec<Oid> {
        self.elements(column, |element| {
            let bytes = element.and_then(<[u8]>::first_chunk);
            bytes.map_or(0, |bytes| Oid::from_le_bytes(*bytes))
        })
    }

    /// The elements of an `int2[]` or `int2vector`.
    pub(crate) fn shorts(&self, column: &str) -> Vec<i64> {
        self.elements(column, |element| {
            let bytes = element.and_then(<[u8]>::first_chunk);
            bytes.map_or(0, |bytes| i64::from(i16::from_le_bytes(*bytes)))
        })
    }

    /// The elements of a `text[]`.
    pub(crate) fn texts(&self, column: &str) -> Vec<String> {
        let words = self.table.words;
        self.elements(column, |element| {
            element.map_or(String::new(), |bytes| words.readable(bytes))
        })
    }

    /// The elements of a `"char"[]`.
    pub(crate) fn letters(&self, column: &str) -> Vec<char> {
        let letters = self.elements(column, |element| element.and_then(<[u8]>::first).copied());
        letters.into_iter().flatten().map(char::from).collect()
    }

    /// What is read of the elements of any one-dimensional array of built-in elements, without
    /// their headers.
    pub(crate) fn elements<T>(&self, column: &str, read: impl FnMut(Option<&[u8]>) -> T) -> Vec<T> {
        let bytes = self.bytes(column).unwrap_or_default();
        let elements = array::elements(&bytes).unwrap_or_default();
        elements.into_iter().map(read).collect()
    }
}
