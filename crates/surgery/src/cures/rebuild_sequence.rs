//! The page of a sequence is made again from the column that it serves: it goes on after the
//! largest value of the column, as `setval(…, max(column))` would. Truth: `fill_seq_fork_with_data`
//! in `src/backend/commands/sequence.c`.

use pgclinic_cluster::{HeapScan, RawRow, RelKind, Relation};
use pgclinic_format::Oid;
use pgclinic_format::build::{PageBuilder, TupleBuilder};
use pgclinic_format::sequence::{SEQUENCE_MAGIC, SPECIAL_BYTES};
use pgclinic_model::plan::Safety;

use super::draft::Draft;
use super::heap_place::HeapPlace;
use super::{Cure, CureUnit, CuredFiles};
use crate::error::Result;

/// Name of the cure.
pub const REBUILD_SEQUENCE: &str = "rebuild-sequence";

pub(super) const CURE: Cure = Cure {
    name: REBUILD_SEQUENCE,
    summary: "make the page of a sequence again from the largest value of its column",
    unit: CureUnit::Page,
    files: CuredFiles::Sequences,
    draft: rebuild_sequence,
};

const FROZEN_XID: u32 = 2;
/// `HEAP_XMIN_FROZEN` and `HEAP_XMAX_INVALID`.
const FROZEN: u16 = 0x0300 | 0x0800;
const PG_CLASS: Oid = 1259;

/// What `pg_sequence` says of it.
struct Definition {
    start: i64,
    increment: i64,
    min: i64,
    max: i64,
}

fn rebuild_sequence(place: &HeapPlace<'_>) -> Result<Draft> {
    let sequence = place.relation.map_or(0, |relation| relation.oid);
    let Some(definition) = definition(place, sequence) else {
        return place.refuse("pg_sequence does not say where it begins and by how much it grows");
    };
    let Some((table, attnum)) = owner(place, sequence) else {
        return place.refuse("no column of a table owns it, so that nothing shows how far it was: DROP SEQUENCE and CREATE SEQUENCE make it again");
    };
    let values = match furthest(place, table, attnum, definition.increment) {
        Ok(values) => values,
        Err(why) => return place.refuse(why),
    };
    let column = column_name(table, attnum);
    let (last, is_called) = match values {
        Some(last) => (last, true),
        None => (definition.start, false),
    };
    if !(definition.min..=definition.max).contains(&last) {
        return place.refuse(format!(
            "{column} has the value {last}, which is not between {} and {}",
            definition.min, definition.max
        ));
    }
    let summary = if is_called {
        format!("the sequence goes on after {last}, the furthest value in {column}")
    } else {
        format!("the sequence begins at {last}, since {column} has no value")
    };
    let page = page_of(place, last, is_called);
    let mut draft = Draft::new(page, summary, Safety::Lossy)
        .because(format!("every row version of {column} was read, those of rows that are gone included"))
        .warn("numbers that were given and never stored in the column may be given again: rows that VACUUM removed, transactions that were rolled back, numbers that are known elsewhere");
    draft.replaces_page = true;
    Ok(draft)
}

fn page_of(place: &HeapPlace<'_>, last: i64, is_called: bool) -> Vec<u8> {
    let mut special = [0; SPECIAL_BYTES];
    let magic = SEQUENCE_MAGIC.to_le_bytes();
    if let Some(room) = special.first_chunk_mut() {
        *room = magic;
    }
    let log_cnt = 0i64;
    let data = [
        &last.to_le_bytes()[..],
        &log_cnt.to_le_bytes(),
        &[u8::from(is_called)],
    ];
    let tuple = TupleBuilder::new(3)
        .xids(FROZEN_XID, 0)
        .infomask(FROZEN)
        .ctid(0, 1)
        .data(&data.concat());
    let len = u16::try_from(place.bytes.len()).unwrap_or(u16::MAX);
    PageBuilder::new(len, &special)
        .item(&tuple.finish())
        .finish(place.block)
}

/// A table of the catalogs, row by row, those that count.
fn each_row(
    place: &HeapPlace<'_>,
    name: &str,
    mut each: impl FnMut(&Relation, RawRow<'_>),
) -> Option<()> {
    let catalog = place.database.catalog;
    let mut all = catalog.relations.values();
    let table = all.find(|own| own.name == name && own.schema == "pg_catalog")?;
    let layouts = table.layouts.as_deref()?;
    let files = place.database.main_fork(table)?;
    let mut scan = HeapScan::new(place.cluster, files, layouts);
    scan.each_that_may_count(|row| each(table, row));
    scan.is_whole().then_some(())
}

/// Where a column stands in the rows.
fn index_of(table: &Relation, name: &str) -> usize {
    let columns = table.columns.iter().flatten();
    let at = columns
        .zip(0usize..)
        .find(|(column, _)| column.name == name);
    at.map_or(usize::MAX, |(_, index)| index)
}

fn definition(place: &HeapPlace<'_>, sequence: Oid) -> Option<Definition> {
    let mut found = None;
    each_row(place, "pg_sequence", |table, row| {
        if row.u32(index_of(table, "seqrelid")) != Some(sequence) {
            return;
        }
        let number = |name: &str| row.i64(index_of(table, name));
        found = number("seqstart").and_then(|start| {
            Some(Definition {
                start,
                increment: number("seqincrement")?,
                min: number("seqmin")?,
                max: number("seqmax")?,
            })
        });
    })?;
    found
}

/// The column that owns the sequence: `serial` and identity columns.
fn owner<'a>(place: &HeapPlace<'a>, sequence: Oid) -> Option<(&'a Relation, u16)> {
    let mut found = None;
    each_row(place, "pg_depend", |table, row| {
        let oid = |name: &str| row.u32(index_of(table, name));
        let is_own = oid("classid") == Some(PG_CLASS)
            && oid("objid") == Some(sequence)
            && oid("refclassid") == Some(PG_CLASS);
        let kind = row.u8(index_of(table, "deptype"));
        let column = oid("refobjsubid").filter(|number| *number > 0);
        if let (true, Some(b'a' | b'i'), Some(column)) = (is_own, kind, column) {
            found = oid("refobjid").zip(u16::try_from(column).ok());
        }
    })?;
    let (table, column) = found?;
    let table = place.database.catalog.relations.get(&table)?;
    (table.kind == RelKind::Table).then_some((table, column))
}

fn column_name(table: &Relation, attnum: u16) -> String {
    let mut columns = table.columns.iter().flatten();
    let column = columns.find(|column| column.attnum == attnum);
    let column = column.map_or_else(|| attnum.to_string(), |column| column.name.clone());
    format!("{}.{column}", table.qualified_name())
}

/// The largest value of the column, or the smallest where the sequence goes down; nothing where it
/// has none.
fn furthest(
    place: &HeapPlace<'_>,
    table: &Relation,
    attnum: u16,
    increment: i64,
) -> std::result::Result<Option<i64>, String> {
    let index = usize::from(attnum).saturating_sub(1);
    let layouts = table
        .layouts
        .as_deref()
        .ok_or("the columns of its table are not known")?;
    let files = place
        .database
        .main_fork(table)
        .ok_or("the files of its table are not there")?;
    let mut found: Option<i64> = None;
    let mut scan = HeapScan::new(place.cluster, files, layouts);
    scan.each_row(|row| {
        let value = match layouts.get(index).map(|layout| layout.attlen) {
            Some(2) => row.i16(index).map(i64::from),
            Some(4) => row.u32(index).map(|value| i64::from(value.cast_signed())),
            Some(8) => row.i64(index),
            _ => None,
        };
        found = match (found, value) {
            (Some(one), Some(other)) if increment < 0 => Some(one.min(other)),
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
    });
    if scan.is_whole() {
        Ok(found)
    } else {
        Err("its table cannot be read whole: heal that first".into())
    }
}
