//! Large objects out of the files of `pg_largeobject` and `pg_largeobject_metadata`.

use pgclinic_cluster::{Catalog, Cluster, ForkFiles, Pieces, Visibility};
use pgclinic_format::oid::{PG_LARGEOBJECT, PG_LARGEOBJECT_METADATA};
use pgclinic_format::{BlockNo, HeapTuple, LpFlags, Oid, Page, types::Tid};
use pgclinic_model::document::LossPlace;

use super::super::SalvageOptions;
use super::super::error::SalvageError;
use super::super::reading::{HELD_ROWS, look, map_marks};
use super::Objects;
use crate::carve::{self, PageState, Probe};
use crate::schema::given::columns_in;
use crate::shape::{ColumnChoice, MainForks, Table};
use crate::values::{Partial, RowValues, Taking};
use crate::visible::VersionFate;

/// The objects of a database whose catalogs say where they are; nothing where there are none.
pub(crate) fn of_database(
    cluster: &Cluster,
    catalog: &Catalog,
    files: &MainForks,
    options: &SalvageOptions,
) -> Result<Option<Objects>, SalvageError> {
    let table = |oid: Oid| {
        let relation = catalog.relations.get(&oid)?;
        Table::of(files, catalog, relation, ColumnChoice::default()).ok()
    };
    let tables = [PG_LARGEOBJECT_METADATA, PG_LARGEOBJECT].map(|oid| (oid, table(oid)));
    gather(cluster, tables, options)
}

/// The objects of a database without catalogs: the two relations have the columns that they have in
/// every major, and as long as nobody rewrote them the numbers of their files.
pub(crate) fn of_numbers(
    cluster: &Cluster,
    files: &[ForkFiles],
    options: &SalvageOptions,
) -> Result<Option<Objects>, SalvageError> {
    let table = |oid: Oid, columns: &str| {
        let own = files.iter().find(|files| files.filenode == oid)?;
        let given = columns_in(columns).ok()?;
        Some(Table::of_files(
            own.clone(),
            ColumnChoice::default(),
            &given,
        ))
    };
    let metadata = table(
        PG_LARGEOBJECT_METADATA,
        "oid oid, lomowner oid, lomacl bytea",
    );
    let pages = table(PG_LARGEOBJECT, "loid oid, pageno int4, data bytea");
    let tables = [(PG_LARGEOBJECT_METADATA, metadata), (PG_LARGEOBJECT, pages)];
    gather(cluster, tables, options)
}

fn gather(
    cluster: &Cluster,
    tables: [(Oid, Option<Table>); 2],
    options: &SalvageOptions,
) -> Result<Option<Objects>, SalvageError> {
    let mut objects = Objects::new(options, cluster.build.block_size)?;
    for (oid, table) in tables {
        let Some(table) = table else { continue };
        let mut places = Vec::new();
        each_row(cluster, &table, &mut places, &mut |row| match oid {
            PG_LARGEOBJECT if row.number.is_some() => {
                objects.add_page(row.oid, row.number.unwrap_or(0), row.data)
            }
            _ => {
                objects.add(row.oid);
                Ok(())
            }
        })?;
        objects.lose(oid, places);
    }
    Ok(Some(objects).filter(|objects| !objects.is_empty()))
}

/// A row of either table.
struct ObjectRow<'a> {
    oid: Oid,
    /// None where the row lost it: there is a fault, and nobody knows where its bytes belong.
    number: Option<u32>,
    data: &'a [u8],
}

/// Every live row, found by its structure where its page does not name it.
fn each_row(
    cluster: &Cluster,
    table: &Table,
    places: &mut Vec<LossPlace>,
    each: &mut dyn FnMut(ObjectRow<'_>) -> Result<(), SalvageError>,
) -> Result<(), SalvageError> {
    let visibility = Visibility::new(cluster);
    let pieces = Pieces::of(&table.files, cluster.build);
    let page_bytes = usize::try_from(cluster.build.block_size).unwrap_or(8192);
    let (mut buffer, mut cells) = (Vec::new(), RowValues::default());
    for piece in (0..pieces.count()).filter_map(|number| pieces.get(number)) {
        buffer.resize(usize::try_from(piece.len).unwrap_or(0), 0);
        let source = cluster.source();
        let count = match source.read_at(&piece.path, piece.offset, &mut buffer) {
            Ok(count) => count,
            Err(error) => {
                places.push(LossPlace::page(piece.first_block, error));
                continue;
            }
        };
        if count < buffer.len() || !count.is_multiple_of(page_bytes) {
            let behind = u32::try_from(count / page_bytes).unwrap_or(u32::MAX);
            let block = piece.first_block.saturating_add(behind);
            let why = "the file ends before this block does";
            places.push(LossPlace::page(block, why));
        }
        let pages = buffer
            .get(..count)
            .unwrap_or_default()
            .chunks_exact(page_bytes);
        for (block, page) in (piece.first_block..).zip(pages.filter_map(Page::parse)) {
            for (tuple, place) in rows_of(cluster, table, page, block, places) {
                if !VersionFate::of(&visibility, tuple, place).counts() {
                    continue;
                }
                let mut taking = Taking {
                    table,
                    chunks: None,
                    partial: Partial::Null,
                    chunk_bytes: cluster.build.toast_chunk,
                    value_bytes_max: u64::from(cluster.build.block_size),
                    writes_all: false,
                };
                cells.fill(tuple, place, VersionFate::Live, &mut taking);
                let row = cells.row(tuple);
                let number = |column| {
                    let value: &[u8] = row.value(column)?;
                    Some(u32::from_le_bytes(*value.first_chunk()?))
                };
                if let Some(fault) = cells.faults().first() {
                    places.push(LossPlace::row(place, &fault.kind));
                }
                let Some(oid) = number(0) else { continue };
                each(ObjectRow {
                    oid,
                    number: number(1),
                    data: row.value(2).unwrap_or_default(),
                })?;
            }
        }
    }
    Ok(())
}

fn rows_of<'p>(
    cluster: &Cluster,
    table: &Table,
    page: Page<'p>,
    block: BlockNo,
    places: &mut Vec<LossPlace>,
) -> Vec<(HeapTuple<'p>, Tid)> {
    let (state, why) = look(cluster, page, block);
    places.extend(why.map(|why| LossPlace::page(block, why)));
    if state == PageState::Empty {
        if map_marks(cluster, table, block) {
            places.push(LossPlace::page(block, HELD_ROWS));
        }
        return Vec::new();
    }
    if state == PageState::Sound {
        let normal = page
            .line_pointers()
            .filter(|(_, pointer)| pointer.flags() == LpFlags::Normal);
        let mut rows = Vec::new();
        for (offset, pointer) in normal {
            let place = Tid { block, offset };
            match page.item(pointer).and_then(HeapTuple::parse) {
                Some(tuple) => rows.push((tuple, place)),
                None => {
                    let why = "the line pointer names bytes that are no row";
                    places.push(LossPlace::row(place, why));
                }
            }
        }
        return rows;
    }
    let mut fits = |_: usize, _: &[u8]| true;
    let mut probe = Probe::new(&table.layouts, u64::MAX, &cluster.transactions, &mut fits);
    let found = carve::of_broken_page(page, block, &mut probe);
    found
        .into_iter()
        .map(|found| (found.tuple, found.place))
        .collect()
}
