//! Files of long values: known by the shape of their rows, and paired with the tables whose rows
//! point at them.

use std::collections::BTreeSet;

use pgclinic_cluster::{Cluster, ForkFiles};
use pgclinic_format::attribute::Attribute;
use pgclinic_format::toast_chunk::ToastChunk;
use pgclinic_format::{Attributes, ColumnLayout, HeapTuple, Oid, Varlena, varlena};

use super::super::sampling::{each_row, every_row};
use crate::schema::given::{GivenColumn, GivenTable};

/// Pointers of one table that are looked for.
const POINTERS_MAX: usize = 1000;

/// A row as a chunk: the value's number and the chunk's, and how long it is.
struct Chunk {
    value: Oid,
    number: u32,
    bytes: usize,
}

/// The rows of a file are chunks of long values, all that were looked at: three columns, no nulls,
/// the data plain and no longer than a chunk, and full where the next row goes on with the same
/// value.
pub(super) fn is_alike(cluster: &Cluster, files: &ForkFiles) -> bool {
    let full = usize::try_from(cluster.build.toast_chunk).unwrap_or(usize::MAX);
    let (mut rows, mut others) = (0u64, 0u64);
    let mut last: Option<Chunk> = None;
    each_row(cluster, files, &mut |tuple, _| {
        rows += 1;
        let chunk = chunk(tuple).filter(|chunk| chunk.value != 0 && chunk.bytes <= full);
        let Some(chunk) = chunk else {
            others += 1;
            return;
        };
        let goes_on = |last: &Chunk| last.value == chunk.value && last.number + 1 == chunk.number;
        if last
            .as_ref()
            .is_some_and(|last| goes_on(last) && last.bytes != full)
        {
            others += 1;
        }
        last = Some(chunk);
    });
    rows > 0 && others == 0
}

fn chunk(tuple: HeapTuple<'_>) -> Option<Chunk> {
    if tuple.attribute_count() != 3 || tuple.null_bitmap().is_some() {
        return None;
    }
    let chunk = ToastChunk::parse(tuple)?;
    let (Varlena::Plain(payload), range) = chunk.chunk_data? else {
        return None;
    };
    let number = u32::try_from(chunk.chunk_seq?).ok()?;
    // A value has at most 1 GB.
    let is_whole = range.end == tuple.bytes().len() && number < 1 << 21;
    is_whole.then_some(Chunk {
        value: chunk.chunk_id?,
        number,
        bytes: payload.len(),
    })
}

/// Which files of long values have found their tables.
pub(super) struct Pairing<'a> {
    cluster: &'a Cluster,
    /// Each with whether a table points at it.
    chunks: Vec<(ForkFiles, bool)>,
}

impl<'a> Pairing<'a> {
    pub(super) fn new(cluster: &'a Cluster, chunks: &[ForkFiles]) -> Self {
        Pairing {
            cluster,
            chunks: chunks.iter().map(|files| (files.clone(), false)).collect(),
        }
    }

    /// The file at which the rows of a table point: the one with the number that they name, as long
    /// as nobody rewrote it; else the one that holds most of the values.
    pub(super) fn of(&mut self, table: &ForkFiles, given: &GivenTable) -> Option<ForkFiles> {
        let (relation, values) = self.pointers(table, given)?;
        let named = |files: &ForkFiles| {
            files.filenode == relation && files.home.database == table.home.database
        };
        let mut at = self.chunks.iter().position(|(files, _)| named(files));
        if at.is_none() {
            let held = self
                .chunks
                .iter()
                .map(|(files, _)| self.held(files, &values));
            let best = held.enumerate().max_by_key(|(_, held)| *held);
            at = best.filter(|(_, held)| *held > 0).map(|(at, _)| at);
        }
        let (files, is_owned) = self.chunks.get_mut(at?)?;
        *is_owned = true;
        Some(files.clone())
    }

    /// Files at which no table points.
    pub(super) fn without_owner(self) -> Vec<ForkFiles> {
        let alone = self.chunks.into_iter().filter(|(_, is_owned)| !is_owned);
        alone.map(|(files, _)| files).collect()
    }

    /// The relation that the rows point at, and numbers of values there.
    fn pointers(&self, table: &ForkFiles, given: &GivenTable) -> Option<(Oid, BTreeSet<Oid>)> {
        let layouts: Vec<ColumnLayout> = given.columns.iter().map(GivenColumn::layout).collect();
        let (mut relation, mut values) = (None, BTreeSet::new());
        every_row(self.cluster, table, &mut |tuple, _| {
            for value in Attributes::new(tuple, &layouts) {
                let Ok(Attribute::Value(range)) = value else {
                    continue;
                };
                let bytes = tuple.bytes().get(range).unwrap_or_default();
                if bytes.len() != varlena::TOAST_POINTER_BYTES {
                    continue;
                }
                if let Ok((Varlena::External(pointer), _)) = varlena::parse(bytes) {
                    relation.get_or_insert(pointer.va_toastrelid);
                    if values.len() < POINTERS_MAX {
                        values.insert(pointer.va_valueid);
                    }
                }
            }
            values.len() < POINTERS_MAX
        });
        Some((relation?, values))
    }

    /// How many of the values the file holds.
    fn held(&self, files: &ForkFiles, values: &BTreeSet<Oid>) -> usize {
        let mut held = BTreeSet::new();
        every_row(self.cluster, files, &mut |tuple, _| {
            let value = chunk(tuple).map(|chunk| chunk.value);
            held.extend(value.filter(|value| values.contains(value)));
            held.len() < values.len()
        });
        held.len()
    }
}
