//! The hash of a row's key, the same from the row and from its entry.

use std::ops::Range;

use pgclinic_cluster::{Column, Relation};
use pgclinic_format::attribute::{Attribute, Attributes};
use pgclinic_format::btree::BtreeTuple;
use pgclinic_format::front_bits::FrontBits;
use pgclinic_format::heap_tuple::HEAP_HASNULL;
use pgclinic_format::index_tuple::INDEX_NULL_MASK;
use pgclinic_format::types::Tid;
use pgclinic_format::{ColumnLayout, HeapTuple, PlainAttributes};

use crate::btree::payload;

const SEED: u64 = 0x9E37_79B9_7F4A_7C15;
const FACTOR: u64 = 0xD6E8_FEB8_6659_FD93;
/// Stands for a null among the hashed words.
const NULL_WORD: u64 = 0xA076_1D64_78BD_642F;
/// `NAMEDATALEN`: a `name`, or a value of a domain over it, is padded to it in a table and a C
/// string in an index.
const NAME_BYTES: i16 = 64;
/// Length of a C string, as `pg_attribute` says.
const C_STRING: i16 = -2;

/// A hash in the making.
#[derive(Clone, Copy)]
struct Hash {
    row: u64,
    sum: u64,
}

impl Hash {
    #[inline]
    fn of_row(tid: Tid) -> Self {
        let row = u64::from(tid.block) << 16 | u64::from(tid.offset);
        let row = fold(row ^ SEED, FACTOR);
        Hash { row, sum: row }
    }

    /// Columns are added up, so that both sides may take them in their own order; the row is in
    /// each of the summands.
    #[inline]
    fn add(&mut self, summand: u64) {
        self.sum = self.sum.wrapping_add(summand);
    }

    #[inline]
    fn null(&mut self, column: usize) {
        self.add(fold(self.start(column) ^ NULL_WORD, FACTOR));
    }

    /// Each column begins elsewhere, lest two that change places have one sum.
    #[inline]
    fn start(self, column: usize) -> u64 {
        self.row ^ (column as u64 + 1).wrapping_mul(SEED)
    }

    /// The same as [`Hash::bytes`] of its bytes.
    #[inline]
    fn word(&mut self, column: usize, word: u64, len: usize) {
        let length = (len as u64) << 56;
        self.add(fold(self.start(column) ^ word ^ length, FACTOR));
    }

    #[inline]
    fn bytes(&mut self, column: usize, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        if let ([word], []) = (words, rest) {
            return self.word(column, u64::from_le_bytes(*word), 8);
        }
        let mut state = self.start(column);
        for word in words {
            state = fold(state ^ u64::from_le_bytes(*word), FACTOR);
        }
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        let length = (bytes.len() as u64) << 56;
        self.add(fold(state ^ u64::from_le_bytes(last) ^ length, FACTOR));
    }
}

/// Where no key is compared: of the row alone.
#[inline]
pub(crate) fn hash_of_row(tid: Tid) -> u64 {
    Hash::of_row(tid).sum
}

/// The two halves of a product, folded.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the two halves are meant")]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// A column of an index that is a plain column of the table.
#[derive(Clone, Debug)]
struct KeyColumn {
    /// Place in the table's row, from 0.
    in_table: usize,
    table_layout: ColumnLayout,
    /// Place in the index entry, from 0.
    in_index: usize,
    /// Only up to the first zero counts.
    is_name: bool,
    /// What rows from before the column have.
    missing: Option<Vec<u8>>,
    has_missing: bool,
}

/// Which columns of a table an index's entries hold, and how to hash them from both sides.
#[derive(Debug)]
pub(crate) struct KeyColumns {
    /// In the order of the table's columns.
    columns: Vec<KeyColumn>,
    /// For each column of the index, its place in `columns`.
    in_index: Vec<Option<usize>>,
    index_layouts: Vec<ColumnLayout>,
    /// Columns of the table to walk.
    table_width: usize,
    /// Where the columns stand in rows and entries, if all are numbers at one place in each.
    fixed: Option<Vec<FixedKey>>,
    /// Columns of the table up to the last of them, as bits of a row's bitmap of nulls.
    bits: FrontBits,
}

/// A column of fixed size, behind none but columns of fixed size.
#[derive(Clone, Copy, Debug)]
struct FixedKey {
    in_index: usize,
    /// From `t_hoff`.
    row_offset: usize,
    entry_offset: usize,
    len: usize,
}

impl FixedKey {
    #[inline]
    fn add(&self, hash: &mut Hash, bytes: &[u8], at: usize) -> Option<()> {
        let rest = bytes.get(at..)?;
        let word = match self.len {
            8 => u64::from_le_bytes(*rest.first_chunk()?),
            4 => u64::from(u32::from_le_bytes(*rest.first_chunk()?)),
            2 => u64::from(u16::from_le_bytes(*rest.first_chunk()?)),
            len => {
                hash.bytes(self.in_index, rest.get(..len)?);
                return Some(());
            }
        };
        hash.word(self.in_index, word, self.len);
        Some(())
    }
}

impl KeyColumns {
    /// Nothing when the catalogs do not tell the columns of both.
    pub(crate) fn new(table: &Relation, index: &Relation) -> Option<Self> {
        let facts = index.index.as_ref()?;
        let table_columns = table.columns.as_ref()?;
        let index_layouts = index.layouts.clone()?;
        let mut columns = Vec::new();
        for (in_index, number) in facts.keys.iter().enumerate() {
            // Expressions and system columns cannot be computed here.
            let Some(in_table) = usize::try_from(*number).ok().and_then(|n| n.checked_sub(1))
            else {
                continue;
            };
            let column: &Column = table_columns.get(in_table)?;
            let in_entry = index_layouts.get(in_index)?;
            columns.push(KeyColumn {
                in_table,
                table_layout: column.layout,
                in_index,
                is_name: column.layout.attlen == NAME_BYTES && in_entry.attlen == C_STRING,
                missing: column.missing.clone(),
                has_missing: column.has_missing,
            });
        }
        columns.sort_by_key(|column| column.in_table);
        let place = |in_index| {
            columns
                .iter()
                .position(|column| column.in_index == in_index)
        };
        let in_index = (0..index_layouts.len()).map(place).collect();
        let table_width = columns.iter().map(|column| column.in_table + 1).max()?;
        Some(KeyColumns {
            fixed: fixed_keys(&columns, &index_layouts, table.layouts.as_ref()?),
            bits: FrontBits::of(table_width),
            columns,
            in_index,
            index_layouts,
            table_width,
        })
    }

    /// From the row. `None`: a value is elsewhere or does not decode, so that the key is not known.
    #[inline]
    pub(crate) fn hash_row(
        &self,
        tid: Tid,
        tuple: HeapTuple<'_>,
        layouts: &[ColumnLayout],
    ) -> Option<u64> {
        let mut hash = Hash::of_row(tid);
        if let Some(fixed) = &self.fixed
            && usize::from(tuple.attribute_count()) >= self.table_width
            && self.bits.are_set(tuple.null_bitmap())
        {
            let start = usize::from(tuple.t_hoff());
            for key in fixed {
                key.add(&mut hash, tuple.bytes(), start + key.row_offset)?;
            }
            return Some(hash.sum);
        }
        let layouts = layouts.get(..self.table_width)?;
        if let Some(hash) = self.hash_plain_row(hash, tuple, layouts) {
            return Some(hash);
        }
        let mut wanted = self.columns.iter().peekable();
        for (number, value) in Attributes::new(tuple, layouts).enumerate() {
            let value = value.ok()?;
            while let Some(column) = wanted.next_if(|column| column.in_table == number) {
                let bytes = match &value {
                    Attribute::Null => None,
                    Attribute::Missing if column.has_missing => Some(column.missing.as_deref()?),
                    Attribute::Missing => None,
                    Attribute::Value(range) => Some(tuple.bytes().get(range.clone())?),
                };
                column.add(&mut hash, bytes, column.table_layout)?;
            }
        }
        Some(hash.sum)
    }

    /// From a leaf entry, for one of its rows.
    #[inline]
    pub(crate) fn hash_entry(&self, tid: Tid, tuple: BtreeTuple<'_>) -> Option<u64> {
        let mut hash = Hash::of_row(tid);
        if let Some(fixed) = &self.fixed
            && !tuple.0.has(INDEX_NULL_MASK)
        {
            for key in fixed {
                key.add(&mut hash, tuple.0.item(), key.entry_offset)?;
            }
            return Some(hash.sum);
        }
        if let Some(hash) = self.hash_plain_entry(hash, tuple) {
            return Some(hash);
        }
        let values = tuple.0.attributes(&self.index_layouts);
        for (number, value) in values.enumerate() {
            let value = value.ok()?;
            let Some(column) = self.in_index.get(number).copied().flatten() else {
                continue;
            };
            let column = self.columns.get(column)?;
            let layout = *self.index_layouts.get(number)?;
            let bytes = match value {
                Attribute::Null | Attribute::Missing => None,
                Attribute::Value(range) => Some(tuple.0.bytes().get(range)?),
            };
            column.add(&mut hash, bytes, layout)?;
        }
        Some(hash.sum)
    }

    /// The columns in which a row and its entry differ; nothing where one of them does not decode.
    pub(crate) fn differences(
        &self,
        row: HeapTuple<'_>,
        layouts: &[ColumnLayout],
        entry: BtreeTuple<'_>,
    ) -> Option<Vec<KeyDifference>> {
        let layouts = layouts.get(..self.table_width)?;
        let rows: Vec<_> = Attributes::new(row, layouts).collect();
        let entries: Vec<_> = entry.0.attributes(&self.index_layouts).collect();
        let mut found = Vec::new();
        for column in &self.columns {
            let of_row = match rows.get(column.in_table)?.as_ref().ok()? {
                Attribute::Null => None,
                Attribute::Missing => column.missing.clone(),
                Attribute::Value(range) => {
                    let raw = row.bytes().get(range.clone())?;
                    Some(column.value(raw, column.table_layout)?)
                }
            };
            let layout = *self.index_layouts.get(column.in_index)?;
            let (of_entry, entry_range) = match entries.get(column.in_index)?.as_ref().ok()? {
                Attribute::Null | Attribute::Missing => (None, None),
                Attribute::Value(range) => {
                    let raw = entry.0.bytes().get(range.clone())?;
                    (Some(column.value(raw, layout)?), Some(range.clone()))
                }
            };
            if of_row != of_entry {
                found.push(KeyDifference {
                    in_table: column.in_table,
                    row: of_row,
                    entry: of_entry,
                    entry_range,
                });
            }
        }
        Some(found)
    }

    #[inline]
    fn hash_plain_row(
        &self,
        mut hash: Hash,
        tuple: HeapTuple<'_>,
        layouts: &[ColumnLayout],
    ) -> Option<u64> {
        let whole =
            !tuple.has(HEAP_HASNULL) && usize::from(tuple.attribute_count()) >= self.table_width;
        whole.then_some(())?;
        let mut values = PlainAttributes::new(tuple.bytes(), usize::from(tuple.t_hoff()));
        let mut wanted = self.columns.iter().peekable();
        for (number, layout) in layouts.iter().enumerate() {
            let payload = values.payload(*layout)?;
            while let Some(column) = wanted.next_if(|column| column.in_table == number) {
                column.add_payload(&mut hash, payload, *layout)?;
            }
        }
        Some(hash.sum)
    }

    #[inline]
    fn hash_plain_entry(&self, mut hash: Hash, tuple: BtreeTuple<'_>) -> Option<u64> {
        (!tuple.0.has(INDEX_NULL_MASK)).then_some(())?;
        let mut values = PlainAttributes::new(tuple.0.item(), 8);
        for (layout, place) in self.index_layouts.iter().zip(&self.in_index) {
            let payload = values.payload(*layout)?;
            if let Some(place) = *place {
                let column = self.columns.get(place)?;
                column.add_payload(&mut hash, payload, *layout)?;
            }
        }
        Some(hash.sum)
    }

    /// No column is left to compare: every key is an expression.
    pub(crate) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }
}

/// A column in which a row and its entry differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KeyDifference {
    /// Place in the table's row, from 0.
    pub(crate) in_table: usize,
    /// The row's value; `None` for null.
    pub(crate) row: Option<Vec<u8>>,
    /// The entry's.
    pub(crate) entry: Option<Vec<u8>>,
    /// Where the entry's stands in it, with its length word.
    pub(crate) entry_range: Option<Range<usize>>,
}

impl KeyColumn {
    /// The value itself, without length word or padding.
    fn value(&self, raw: &[u8], layout: ColumnLayout) -> Option<Vec<u8>> {
        let payload = payload(raw, layout)?;
        let end = if self.is_name || layout.attlen == C_STRING {
            payload.iter().position(|byte| *byte == 0)
        } else {
            None
        };
        payload
            .get(..end.unwrap_or(payload.len()))
            .map(<[u8]>::to_vec)
    }

    fn add(&self, hash: &mut Hash, bytes: Option<&[u8]>, layout: ColumnLayout) -> Option<()> {
        let Some(bytes) = bytes else {
            hash.null(self.in_index);
            return Some(());
        };
        self.add_payload(hash, &payload(bytes, layout)?, layout)
    }

    #[inline]
    fn add_payload(&self, hash: &mut Hash, payload: &[u8], layout: ColumnLayout) -> Option<()> {
        let end = if self.is_name || layout.attlen == -2 {
            payload.iter().position(|byte| *byte == 0)
        } else {
            None
        };
        hash.bytes(self.in_index, payload.get(..end.unwrap_or(payload.len()))?);
        Some(())
    }
}

/// The short way, where all columns of the index are columns of the table and of fixed size.
fn fixed_keys(
    columns: &[KeyColumn],
    index: &[ColumnLayout],
    table: &[ColumnLayout],
) -> Option<Vec<FixedKey>> {
    let (in_rows, in_entries) = (fixed_offsets(table, 0), fixed_offsets(index, 8));
    let key = |column: &KeyColumn| {
        let layout = index.get(column.in_index)?;
        let is_plain = !column.is_name && column.table_layout == *layout;
        is_plain.then_some(FixedKey {
            in_index: column.in_index,
            row_offset: *in_rows.get(column.in_table)?,
            entry_offset: *in_entries.get(column.in_index)?,
            len: usize::try_from(layout.attlen).ok()?,
        })
    };
    columns.iter().map(key).collect()
}

/// Where the columns in front begin that stand at one place wherever there are no nulls.
fn fixed_offsets(columns: &[ColumnLayout], start: usize) -> Vec<usize> {
    let (mut offsets, mut end) = (Vec::new(), start);
    for layout in columns {
        let Ok(len) = usize::try_from(layout.attlen) else {
            break;
        };
        let offset = end.next_multiple_of(usize::from(layout.attalign.max(1)));
        offsets.push(offset);
        end = offset + len;
    }
    offsets
}
