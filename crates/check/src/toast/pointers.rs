//! The pointers to long values in the rows of a table.

use std::io;

use pgclinic_cluster::{Cluster, Visibility};
use pgclinic_format::heap_tuple::HEAP_HASEXTERNAL;
use pgclinic_format::toast::{ToastPointer, pointers_of};
use pgclinic_format::{BlockNo, HeapTuple, LpFlags, Oid};
use pgclinic_spill::{SortedRecords, SortedRuns};

use crate::check::ForkCx;
use crate::relation_check::RelationCx;

/// A pointer and where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pointer {
    pub(crate) toast: ToastPointer,
    pub(crate) block: BlockNo,
    pub(crate) item: u16,
    /// From 1.
    pub(crate) attribute: u16,
    /// Its row is live; dead ones only show whose a value was.
    pub(crate) live: bool,
}

/// All pointers into one TOAST relation, by value.
pub(crate) struct Pointers {
    records: SortedRecords,
    /// Some row has more columns than the catalogs know, and may have more pointers.
    pub(crate) lacks_columns: bool,
}

impl Iterator for Pointers {
    type Item = io::Result<Pointer>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.records.next()?;
        record.map(|(_, record)| parse(&record)).transpose()
    }
}

fn parse(record: &[u8]) -> Option<Pointer> {
    Some(Pointer {
        toast: ToastPointer::parse(record)?,
        block: BlockNo::from_le_bytes(*record.get(16..)?.first_chunk()?),
        item: u16::from_le_bytes(*record.get(20..)?.first_chunk()?),
        attribute: u16::from_le_bytes(*record.get(22..)?.first_chunk()?),
        live: record.get(24).is_some_and(|live| *live != 0),
    })
}

/// Reads every row version of `owner` for pointers into the TOAST relation `toast`.
pub(crate) fn collect_pointers<'a>(
    relation: &RelationCx<'a>,
    owner: &'a ForkCx<'a>,
    toast: Oid,
    cluster: &Cluster,
    memory_bytes: usize,
) -> io::Result<Pointers> {
    let mut sorted = SortedRuns::new(memory_bytes, relation.spill_folder)?;
    let mut pages = relation.pages_of(owner);
    let columns = owner.columns.unwrap_or_default();
    let visibility = Visibility::new(cluster);
    let mut lacks_columns = false;
    for block in 0..BlockNo::try_from(owner.blocks).unwrap_or(BlockNo::MAX) {
        if relation.is_interrupted() {
            break;
        }
        let Some(page) = pages.page(block) else {
            continue;
        };
        for (item, pointer) in page.line_pointers() {
            let tuple = (pointer.flags() == LpFlags::Normal)
                .then(|| page.item(pointer).and_then(HeapTuple::parse))
                .flatten();
            let Some(tuple) = tuple.filter(|tuple| tuple.has(HEAP_HASEXTERNAL)) else {
                continue;
            };
            let live = visibility.is_visible(tuple);
            lacks_columns |= usize::from(tuple.attribute_count()) > columns.len();
            for (number, found) in pointers_of(tuple, columns) {
                if found.va_toastrelid == toast {
                    let mut record = [0; 25];
                    record[..16].copy_from_slice(&found.to_bytes());
                    record[16..20].copy_from_slice(&block.to_le_bytes());
                    record[20..22].copy_from_slice(&item.to_le_bytes());
                    record[22..24].copy_from_slice(&number.to_le_bytes());
                    record[24] = u8::from(live);
                    sorted.push(&found.va_valueid.to_be_bytes(), &record)?;
                }
            }
        }
    }
    Ok(Pointers {
        records: sorted.finish()?,
        lacks_columns,
    })
}
