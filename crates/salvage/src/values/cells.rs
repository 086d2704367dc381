//! The values of one row, each a slice of the row or of memory that is used again for the next row.

use std::ops::Range;

use pgclinic_cluster::{FoundChunks, ToastReader};
use pgclinic_format::attribute::{Attribute, AttributeFault};
use pgclinic_format::datum::{decompress, decompress_prefix};
use pgclinic_format::heap_tuple::HEAP_HASEXTERNAL;
use pgclinic_format::toast::{MAX_VALUE_BYTES, ToastPointer};
use pgclinic_format::types::Tid;
use pgclinic_format::varlena::Compressed;
use pgclinic_format::{Attributes, ColumnLayout, HeapTuple, Varlena, varlena};
use serde::Serialize;

use super::fault::{Fault, FaultKind};
use super::mending;
use crate::shape::{Column, Missing, Origin, SystemColumn, Table};
use crate::visible::VersionFate;

/// Memory that is kept from row to row.
const KEPT_BYTES: usize = 1 << 20;

/// What it takes to put a value together: its stored bytes, and those that they stand for.
pub(crate) fn needed_by(pointer: ToastPointer) -> u64 {
    u64::from(pointer.va_extsize) + u64::from(pointer.va_rawsize)
}

/// What it takes to put the values together that the row holds out of line.
pub(crate) fn needed_by_row(tuple: HeapTuple<'_>, layouts: &[ColumnLayout]) -> u64 {
    if !tuple.has(HEAP_HASEXTERNAL) {
        return 0;
    }
    let long = Attributes::new(tuple, layouts).zip(layouts);
    let pointers = long.filter_map(|(attribute, layout)| match attribute {
        Ok(Attribute::Value(range)) if layout.attlen == -1 => {
            match varlena::parse(tuple.bytes().get(range)?) {
                Ok((Varlena::External(pointer), _)) => Some(pointer),
                _ => None,
            }
        }
        _ => None,
    });
    pointers.map(needed_by).sum()
}

/// Where a value is.
#[derive(Clone, Debug)]
enum Slot {
    Null,
    Tuple(Range<usize>),
    Owned(usize),
    Lost,
}

/// The attribute behind so many others, or the fault that stands before it.
fn step(walk: &mut Attributes<'_>, skipped: usize) -> Option<Result<Attribute, AttributeFault>> {
    for _ in 0..skipped {
        if let Some(Err(fault)) = walk.next() {
            return Some(Err(fault));
        }
    }
    walk.next()
}

/// Bytes that are lost say this of the attribute, all or some of them.
fn reaches_beyond(
    found: &Result<Attribute, AttributeFault>,
    tuple: HeapTuple<'_>,
    known_bytes: usize,
) -> bool {
    match found {
        _ if usize::from(tuple.t_hoff()) > known_bytes => true,
        Ok(Attribute::Value(range)) => range.end > known_bytes,
        Ok(Attribute::Null | Attribute::Missing) => false,
        Err(_) => true,
    }
}

#[inline]
fn is_null(bitmap: &[u8], index: usize) -> bool {
    let byte = bitmap.get(index / 8);
    byte.is_none_or(|byte| byte >> (index % 8) & 1 == 0)
}

/// Where the next value stands without its header, if it is whole, as it is, and where it is
/// expected.
#[inline]
fn plain_value(bytes: &[u8], at: usize, layout: ColumnLayout) -> Option<(usize, usize)> {
    // 1, 2, 4 or 8.
    let mask = usize::from(layout.attalign.max(1)) - 1;
    let aligned = (at + mask) & !mask;
    if layout.attlen != -1 {
        let end = aligned + usize::try_from(layout.attlen).ok()?;
        return (end <= bytes.len()).then_some((aligned, end));
    }
    let first = *bytes.get(at)?;
    if first & 1 == 1 {
        let end = at + usize::from(first >> 1);
        // A length of 0 is a pointer to a value elsewhere.
        return (end > at && end <= bytes.len()).then_some((at + 1, end));
    }
    // Padding is zeros; what is not counts as the value's header, wherever it stands.
    (first == 0 || at == aligned).then_some(())?;
    let word = u32::from_le_bytes(*bytes.get(aligned..)?.first_chunk()?);
    let len = usize::try_from(word >> 2).ok()?;
    let is_plain = word & 3 == 0 && len >= 4 && len <= bytes.len() - aligned;
    is_plain.then_some((aligned + 4, aligned + len))
}

/// What is done with a value of which only a part is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Partial {
    /// It is null.
    Null,
    /// What is left is given.
    Kept,
}

/// Memory for the values of one row.
#[derive(Debug, Default)]
pub struct RowValues {
    slots: Vec<Slot>,
    owned: Vec<Vec<u8>>,
    used: usize,
    stored: Vec<u8>,
    faults: Vec<Fault>,
    mended: Option<&'static str>,
    /// Values out of line that were left there, by column.
    too_large: Vec<(usize, ToastPointer)>,
    /// Bytes of the row's values that were put together.
    held_bytes: u64,
    /// The columns end before the row does.
    has_rest: bool,
}

/// How values are taken out of rows.
pub(crate) struct Taking<'a, 'b> {
    pub(crate) table: &'b Table,
    pub(crate) chunks: Option<&'b mut ToastReader<'a>>,
    pub(crate) partial: Partial,
    /// Bytes in a full chunk.
    pub(crate) chunk_bytes: u32,
    /// What the values of a row that are put together may need, in bytes.
    pub(crate) value_bytes_max: u64,
    /// The short walk is tried first: [`writes_all`] says so of the table.
    pub(crate) writes_all: bool,
    /// Where the bytes of the row end that are known; others in their place stand for those that
    /// are lost.
    pub(crate) known_bytes: usize,
}

/// The columns that are written are those of the table's rows, one by one, and their types are
/// known.
pub(crate) fn writes_all(table: &Table) -> bool {
    let is_own = |(index, column): (usize, &Column)| {
        matches!(column.origin, Origin::Attribute(own) if own == index)
            && column.lost_type().is_none()
    };
    table.columns.len() == table.layouts.len() && table.columns.iter().enumerate().all(is_own)
}

/// A row with its values.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    tuple: HeapTuple<'a>,
    cells: &'a RowValues,
}

impl<'a> Row<'a> {
    /// The value of a written column: a fixed one whole, a varlena's payload. `None` is null, or
    /// lost.
    #[inline]
    pub fn value(&self, column: usize) -> Option<&'a [u8]> {
        match self.cells.slots.get(column)? {
            Slot::Null | Slot::Lost => None,
            Slot::Tuple(range) => self.tuple.bytes().get(range.clone()),
            Slot::Owned(index) => self.cells.owned.get(*index).map(Vec::as_slice),
        }
    }

    /// How many columns are written.
    pub fn len(&self) -> usize {
        self.cells.slots.len()
    }

    /// No column is written.
    pub fn is_empty(&self) -> bool {
        self.cells.slots.is_empty()
    }
}

impl RowValues {
    /// Finds the values of a row.
    pub(crate) fn fill(
        &mut self,
        tuple: HeapTuple<'_>,
        place: Tid,
        verdict: VersionFate,
        taking: &mut Taking<'_, '_>,
    ) {
        self.mended = None;
        if taking.known_bytes < tuple.bytes().len() {
            self.take(tuple, place, verdict, taking);
            return;
        }
        if mending::is_sound(tuple, &taking.table.layouts) {
            self.take(tuple, place, verdict, taking);
            if !self.has_rest {
                return;
            }
        }
        match mending::mended(tuple, &taking.table.layouts) {
            Some((bytes, what)) => {
                // The copy has the same values at the same places.
                let tuple = HeapTuple::parse(&bytes).unwrap_or(tuple);
                self.take(tuple, place, verdict, taking);
                self.mended = Some(what);
            }
            None => self.take(tuple, place, verdict, taking),
        }
    }

    fn take(
        &mut self,
        tuple: HeapTuple<'_>,
        place: Tid,
        verdict: VersionFate,
        taking: &mut Taking<'_, '_>,
    ) {
        self.slots.clear();
        self.faults.clear();
        self.too_large.clear();
        self.held_bytes = 0;
        self.used = 0;
        self.forget_large();
        self.has_rest = false;
        let is_cut = taking.known_bytes < tuple.bytes().len();
        let may_be_plain = taking.writes_all && !is_cut && !tuple.has(HEAP_HASEXTERNAL);
        if may_be_plain && self.take_plain(tuple, &taking.table.layouts).is_some() {
            return;
        }
        self.slots.clear();
        let mut behind: Option<std::vec::IntoIter<Attribute>> = None;
        let mut walk = Attributes::new(tuple, &taking.table.layouts);
        let mut next_attribute = 0;
        for (column, number) in taking.table.columns.iter().zip(0..) {
            let index = match column.origin {
                Origin::System(system) => {
                    let slot = self.system(system, tuple, place, verdict);
                    self.slots.push(slot);
                    continue;
                }
                Origin::Attribute(index) => index,
            };
            let skipped = index - next_attribute;
            next_attribute = index + 1;
            let layout = taking.table.layouts.get(index);
            let attlen = layout.map_or(-1, |layout| layout.attlen);
            let attribute = match &mut behind {
                Some(behind) => behind.nth(skipped).map(Ok),
                None => step(&mut walk, skipped),
            };
            let slot = match attribute {
                Some(found) if is_cut && reaches_beyond(&found, tuple, taking.known_bytes) => {
                    // What follows stands beyond too.
                    behind = Some(Vec::new().into_iter());
                    self.lose(number, FaultKind::CutOff)
                }
                Some(Ok(Attribute::Null)) => Slot::Null,
                Some(Ok(Attribute::Missing)) => self.missing(column, number, attlen),
                Some(Ok(Attribute::Value(range))) => {
                    self.value(tuple.bytes(), range, (number, attlen), taking)
                }
                Some(Err(fault)) => {
                    let broken = usize::from(fault.attribute).saturating_sub(1);
                    let rest = mending::behind(tuple, &taking.table.layouts, broken, fault.at);
                    // The fault may be in a column before this one that is not written.
                    behind = rest.map(Vec::into_iter);
                    match behind.as_mut().filter(|_| broken < index) {
                        Some(behind) => {
                            let attribute = behind.nth(index - broken - 1);
                            self.found(attribute, tuple, (number, attlen), taking)
                        }
                        None => self.lose(number, FaultKind::Walk(fault.kind)),
                    }
                }
                None => Slot::Lost,
            };
            self.slots.push(slot);
        }
        let is_walked = behind.is_none() && self.faults.is_empty() && !is_cut;
        self.doubt_types(&taking.table.columns);
        if is_walked {
            let left = taking.table.layouts.len().saturating_sub(next_attribute);
            let is_whole = walk.by_ref().take(left).all(|attribute| attribute.is_ok());
            self.has_rest = is_whole && walk.end() != tuple.bytes().len();
        }
    }

    /// Bytes are no values where their type is lost.
    fn doubt_types(&mut self, columns: &[Column]) {
        for ((number, column), slot) in columns.iter().enumerate().zip(&self.slots) {
            let is_there = matches!(slot, Slot::Tuple(_) | Slot::Owned(_));
            if let Some(ty) = column.lost_type().filter(|_| is_there) {
                let kind = FaultKind::LostType(ty.name.clone());
                self.faults.push(Fault {
                    column: number,
                    kind,
                });
            }
        }
    }

    /// The short walk: all values are nulls or stand in the row as they are, and they end where the
    /// row does. Nothing where there is anything else to a row.
    #[inline]
    fn take_plain(&mut self, tuple: HeapTuple<'_>, layouts: &[ColumnLayout]) -> Option<()> {
        (usize::from(tuple.attribute_count()) == layouts.len()).then_some(())?;
        let (bytes, nulls) = (tuple.bytes(), tuple.null_bitmap());
        let mut at = usize::from(tuple.t_hoff());
        for (index, layout) in layouts.iter().enumerate() {
            if nulls.is_some_and(|nulls| is_null(nulls, index)) {
                self.slots.push(Slot::Null);
                continue;
            }
            let (start, end) = plain_value(bytes, at, *layout)?;
            self.slots.push(Slot::Tuple(start..end));
            at = end;
        }
        (at == bytes.len()).then_some(())
    }

    /// The columns end before the row does, and no one change of its header explains that.
    pub fn has_rest(&self) -> bool {
        self.has_rest
    }

    /// The row, for writing it.
    pub fn row<'a>(&'a self, tuple: HeapTuple<'a>) -> Row<'a> {
        Row { tuple, cells: self }
    }

    /// What of the row's header was put right before its values were found.
    pub fn mended(&self) -> Option<&'static str> {
        self.mended
    }

    /// What could not be had of it.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Values out of line that are larger than memory allows, by column: they are still where they
    /// were.
    pub(crate) fn too_large(&self) -> &[(usize, ToastPointer)] {
        &self.too_large
    }

    /// Memory for one large value is not kept for all rows that come after it.
    fn forget_large(&mut self) {
        let all = self.owned.iter_mut().chain([&mut self.stored]);
        for memory in all.filter(|memory| memory.capacity() > KEPT_BYTES) {
            *memory = Vec::new();
        }
    }

    /// A value that was found from the end of the row.
    fn found(
        &mut self,
        attribute: Option<Attribute>,
        tuple: HeapTuple<'_>,
        column: (usize, i16),
        taking: &mut Taking<'_, '_>,
    ) -> Slot {
        match attribute {
            Some(Attribute::Value(range)) => self.value(tuple.bytes(), range, column, taking),
            Some(Attribute::Null) => Slot::Null,
            Some(Attribute::Missing) | None => Slot::Lost,
        }
    }

    fn lose(&mut self, column: usize, kind: FaultKind) -> Slot {
        self.faults.push(Fault { column, kind });
        Slot::Lost
    }

    fn own(&mut self, bytes: &[u8]) -> Slot {
        let (index, memory) = self.memory();
        memory.extend_from_slice(bytes);
        Slot::Owned(index)
    }

    fn memory(&mut self) -> (usize, &mut Vec<u8>) {
        let index = self.used;
        self.used += 1;
        if index == self.owned.len() {
            self.owned.push(Vec::new());
        }
        let memory = self.owned.get_mut(index).expect("pushed above");
        memory.clear();
        (index, memory)
    }

    fn system(
        &mut self,
        column: SystemColumn,
        tuple: HeapTuple<'_>,
        place: Tid,
        verdict: VersionFate,
    ) -> Slot {
        match column {
            SystemColumn::Xmin => self.own(&tuple.t_xmin().0.to_le_bytes()),
            SystemColumn::Xmax => self.own(&tuple.t_xmax().0.to_le_bytes()),
            SystemColumn::VersionFate => self.own(verdict.word().as_bytes()),
            SystemColumn::Ctid => {
                let (high, low) = ((place.block >> 16) as u16, (place.block & 0xFFFF) as u16);
                let words = [high, low, place.offset].map(u16::to_le_bytes);
                self.own(words.as_flattened())
            }
        }
    }

    /// The value that rows have which are older than the column.
    fn missing(&mut self, column: &Column, number: usize, attlen: i16) -> Slot {
        match &column.missing {
            Missing::Null => Slot::Null,
            Missing::Lost => self.lose(number, FaultKind::MissingDefault),
            Missing::Value(value) if attlen != -1 => self.own(value),
            Missing::Value(value) => match varlena::parse(value) {
                Ok((Varlena::Short(payload) | Varlena::Plain(payload), _)) => self.own(payload),
                Ok((Varlena::Compressed(packed), _)) => {
                    self.unpack(packed, number, u64::from(MAX_VALUE_BYTES))
                }
                Ok((Varlena::External(_), _)) | Err(_) => {
                    self.lose(number, FaultKind::MissingDefault)
                }
            },
        }
    }

    /// Of the column of this number and `attlen`.
    #[inline]
    fn value(
        &mut self,
        tuple: &[u8],
        range: Range<usize>,
        (number, attlen): (usize, i16),
        taking: &mut Taking<'_, '_>,
    ) -> Slot {
        match attlen {
            -1 => {}
            // A C string's closing zero is no part of it.
            -2 => return Slot::Tuple(range.start..range.end.saturating_sub(1)),
            _ => return Slot::Tuple(range),
        }
        let bytes = tuple.get(range.clone()).unwrap_or_default();
        match varlena::parse(bytes) {
            Ok((Varlena::Short(_), len)) => Slot::Tuple(range.start + 1..range.start + len),
            Ok((Varlena::Plain(_), len)) => Slot::Tuple(range.start + 4..range.start + len),
            Ok((Varlena::Compressed(packed), _)) => {
                self.unpack(packed, number, taking.value_bytes_max)
            }
            Ok((Varlena::External(pointer), _)) => self.fetch(pointer, number, taking),
            Err(fault) => self.lose(number, FaultKind::Header(fault)),
        }
    }

    fn unpack(&mut self, packed: Compressed<'_>, number: usize, bytes_max: u64) -> Slot {
        let bytes = u64::from(packed.raw_size);
        if bytes > bytes_max {
            return self.lose(number, FaultKind::TooLarge { bytes });
        }
        let raw_size = usize::try_from(packed.raw_size).unwrap_or(usize::MAX);
        match decompress(packed.method, packed.data, raw_size) {
            Ok(raw) => {
                let (index, memory) = self.memory();
                *memory = raw;
                Slot::Owned(index)
            }
            Err(error) => self.lose(number, FaultKind::Packed(error)),
        }
    }

    fn fetch(&mut self, pointer: ToastPointer, number: usize, taking: &mut Taking<'_, '_>) -> Slot {
        let needed = needed_by(pointer);
        if self.held_bytes + needed > taking.value_bytes_max {
            self.too_large.push((number, pointer));
            return self.lose(number, FaultKind::TooLarge { bytes: needed });
        }
        self.held_bytes += needed;
        let mut stored = std::mem::take(&mut self.stored);
        stored.clear();
        let found = match &mut taking.chunks {
            Some(chunks) => chunks.fetch(pointer, &mut stored),
            None => FoundChunks::UpTo {
                missing: 0,
                expected: pointer.va_extsize.div_ceil(taking.chunk_bytes.max(1)),
            },
        };
        let slot = if found == FoundChunks::Whole && !pointer.is_compressed() {
            let (index, memory) = self.memory();
            std::mem::swap(memory, &mut stored);
            Slot::Owned(index)
        } else {
            self.fetched(pointer, &stored, found, number, taking.partial)
        };
        self.stored = stored;
        slot
    }

    fn fetched(
        &mut self,
        pointer: ToastPointer,
        stored: &[u8],
        found: FoundChunks,
        number: usize,
        partial: Partial,
    ) -> Slot {
        let raw_size = pointer.va_rawsize.saturating_sub(4);
        if let FoundChunks::UpTo { missing, expected } = found {
            let left = match pointer.is_compressed() {
                _ if partial == Partial::Null => Vec::new(),
                false => stored.to_vec(),
                true => {
                    let packed = stored.get(4..).unwrap_or_default();
                    decompress_prefix(pointer.method, packed, raw_size.into())
                }
            };
            let kept = !left.is_empty();
            let kind = FaultKind::Chunks {
                value: pointer.va_valueid,
                expected,
                first_missing: missing,
                kept,
            };
            let lost = self.lose(number, kind);
            return if kept { self.own(&left) } else { lost };
        }
        // Stored compressed data begins with the word of raw size and method.
        let packed = Compressed {
            raw_size,
            method: pointer.method,
            data: stored.get(4..).unwrap_or_default(),
        };
        self.unpack(packed, number, u64::from(MAX_VALUE_BYTES))
    }
}
