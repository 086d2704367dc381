//! The keys of rows as cells, from the threads of a salvage into a sorter.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pgclinic_columnar::cells;
use pgclinic_format::datum::{Printed, TypeInfo, TypeKind};
use pgclinic_spill::{SortedRecords, SortedRuns};

use super::ordered_files::Piece;
use super::row_sink::RowTaker;
use crate::formats::Form;
use crate::shape::Table;
use crate::texts::Texts;
use crate::values::Row;

/// Types among which equal values have the same text, once it is put right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KeyFamily {
    /// Whole and exact numbers: zeros at the end do not count.
    Number,
    /// `float4` and `float8`, each for itself: zero has no sign.
    Float(u32),
    /// Texts.
    Text,
    /// `char(n)`: blanks at the end do not count.
    Padded,
    /// A type that is equal only to itself.
    Own(u32),
}

/// The family of a type; nothing where equal values may have different texts.
pub(super) fn family_of(ty: &TypeInfo) -> Option<KeyFamily> {
    let mut ty = ty;
    // Domains over domains.
    for _ in 0..64 {
        match &ty.kind {
            TypeKind::Domain(base) => ty = base,
            _ => break,
        }
    }
    match &ty.kind {
        TypeKind::Enum(_) => return Some(KeyFamily::Own(ty.oid)),
        TypeKind::Base => {}
        _ => return None,
    }
    Some(match ty.oid {
        20 | 21 | 23 | 26 | 1700 => KeyFamily::Number,
        700 | 701 => KeyFamily::Float(ty.oid),
        19 | 25 | 1043 => KeyFamily::Text,
        1042 => KeyFamily::Padded,
        // Their equality is that of their bytes, and each has one text.
        16 | 17 | 18 | 27 | 28 | 29 | 650 | 774 | 790 | 829 | 869 | 1082 | 1083 | 1114 | 1184
        | 1266 | 1560 | 1562 | 2950 | 3220 | 5069 => KeyFamily::Own(ty.oid),
        _ => return None,
    })
}

/// A form that is for no file: a row is one cell, which holds a cell of text for each column.
pub(super) struct KeyCells;

impl Form for KeyCells {
    fn name(&self) -> &'static str {
        "keys"
    }

    fn extension(&self) -> &'static str {
        ""
    }

    fn head(&self, _table: &Table, _out: &mut Vec<u8>) {}

    fn row(&self, table: &Table, row: &Row<'_>, texts: &mut Texts, out: &mut Vec<u8>) {
        let whole = cells::begin(out);
        for (column, number) in table.columns.iter().zip(0..) {
            let Some(value) = row.value(number) else {
                cells::put_null(out);
                continue;
            };
            let start = cells::begin(out);
            match texts.print(number, value, out) {
                Some(Printed::Plain) => {}
                Some(Printed::Text(text)) => out.extend_from_slice(text),
                None => {
                    out.truncate(start);
                    continue;
                }
            }
            put_right(family_of(&column.ty), start, out);
            cells::end(start, out);
        }
        cells::end(whole, out);
    }

    fn tail(&self, _out: &mut Vec<u8>) {}
}

/// Gives the text from `start` on the form that all equal values have.
fn put_right(family: Option<KeyFamily>, start: usize, out: &mut Vec<u8>) {
    let text = out.get(start..).unwrap_or_default();
    let trimmed = |text: &[u8], byte: u8| {
        let behind = text.iter().rposition(|one| *one != byte);
        behind.map_or(0, |last| last + 1)
    };
    match family {
        Some(KeyFamily::Padded) => out.truncate(start + trimmed(text, b' ')),
        Some(KeyFamily::Number) if text.contains(&b'.') => {
            out.truncate(start + trimmed(text, b'0'));
            if out.last() == Some(&b'.') {
                out.pop();
            }
        }
        Some(KeyFamily::Float(_)) if text == b"-0" => {
            out.truncate(start);
            out.push(b'0');
        }
        _ => {}
    }
}

/// Takes the keys of tables.
pub(super) struct KeySorter {
    state: Mutex<State>,
    is_stopped: AtomicBool,
}

struct State {
    runs: Option<SortedRuns>,
    failure: Option<io::Error>,
}

impl KeySorter {
    pub(super) fn new(runs: SortedRuns) -> Self {
        KeySorter {
            state: Mutex::new(State {
                runs: Some(runs),
                failure: None,
            }),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// For a table whose columns stand otherwise than in the key: `order` says where each column of
    /// the key stands.
    pub(super) fn of_table(&self, order: Vec<usize>) -> KeysOfTable<'_> {
        KeysOfTable {
            sorter: self,
            order,
        }
    }

    /// All keys are there.
    pub(super) fn finish(self) -> io::Result<SortedRecords> {
        let state = self.state.into_inner();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        match (state.failure, state.runs) {
            (None, Some(runs)) => runs.finish(),
            (failure, _) => Err(failure.unwrap_or_else(|| io::ErrorKind::Interrupted.into())),
        }
    }
}

/// Takes the keys of one table.
pub(super) struct KeysOfTable<'a> {
    sorter: &'a KeySorter,
    order: Vec<usize>,
}

impl RowTaker for KeysOfTable<'_> {
    fn add(&self, printed: &Piece) {
        let mut rows = printed.rows.as_slice();
        let state = self.sorter.state.lock();
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let mut key = Vec::new();
        while let Some(Some(row)) = cells::take(&mut rows) {
            self.put_in_order(row, &mut key);
            let pushed = state.runs.as_mut().map(|runs| runs.push(&key, &[]));
            if let Some(Err(error)) = pushed {
                state.runs = None;
                state.failure = Some(error);
                self.stop();
                return;
            }
        }
    }

    fn stop(&self) {
        self.sorter.is_stopped.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.sorter.is_stopped.load(Ordering::Relaxed)
    }
}

impl KeysOfTable<'_> {
    fn put_in_order(&self, mut row: &[u8], key: &mut Vec<u8>) {
        key.clear();
        let mut columns = Vec::with_capacity(self.order.len());
        while let Some(column) = cells::take(&mut row) {
            columns.push(column);
        }
        for at in &self.order {
            match columns.get(*at).copied().flatten() {
                Some(text) => cells::put(text, key),
                None => cells::put_null(key),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_one_text() {
        let right = |family, text: &str| {
            let mut out = text.as_bytes().to_vec();
            put_right(Some(family), 0, &mut out);
            String::from_utf8(out).expect("text")
        };
        assert_eq!(right(KeyFamily::Number, "1.500"), "1.5");
        assert_eq!(right(KeyFamily::Number, "100"), "100");
        assert_eq!(right(KeyFamily::Number, "100.00"), "100");
        assert_eq!(right(KeyFamily::Float(701), "-0"), "0");
        assert_eq!(right(KeyFamily::Padded, "ab  "), "ab");
        assert_eq!(right(KeyFamily::Text, "ab  "), "ab  ");
    }
}
