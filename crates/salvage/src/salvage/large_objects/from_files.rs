//! Large objects out of the files of `pg_largeobject` and `pg_largeobject_metadata`.

use pgclinic_cluster::{Cluster, ForkFiles, Pieces, Visibility};
use pgclinic_format::oid::{PG_LARGEOBJECT, PG_LARGEOBJECT_METADATA};
use pgclinic_format::{BlockNo, HeapTuple, LpFlags, Oid, Page, types::Tid};
use pgclinic_model::document::{LossPlace, NotChecked, TableAccount};

use super::super::SalvageOptions;
use super::super::error::SalvageError;
use super::super::loss_search::LossSearch;
use super::super::lost_keys::is_hurt;
use super::super::plan::account_of;
use super::super::reading::{HELD_ROWS, look, map_marks};
use super::super::roots::sum_of_roots;
use super::super::witnesses::Witnesses;
use super::{ObjectLosses, Objects};
use crate::carve::{self, PageState, Probe};
use crate::schema::given::columns_in;
use crate::shape::{ColumnChoice, Table};
use crate::values::{Partial, RowValues, Taking};
use crate::visible::VersionFate;

/// Large objects that were found in files.
#[derive(Default)]
pub(crate) struct FoundObjects {
    /// Nothing where there are none.
    pub(crate) objects: Option<Objects>,
    /// What could not be asked of them.
    pub(crate) gaps: Vec<NotChecked>,
}

/// The objects of a database whose catalogs say where they are, and what their indexes name beside
/// them.
pub(in crate::salvage) fn of_database(
    search: &LossSearch<'_>,
    options: &SalvageOptions,
) -> Result<FoundObjects, SalvageError> {
    let Witnesses {
        cluster,
        catalog,
        files,
        ..
    } = search.witnesses;
    let table = |oid: Oid| {
        let relation = catalog.relations.get(&oid)?;
        Table::of(files, catalog, relation, ColumnChoice::default()).ok()
    };
    let tables = [PG_LARGEOBJECT_METADATA, PG_LARGEOBJECT].map(|oid| (oid, table(oid)));
    gather(cluster, tables, options, Some(search))
}

/// The objects of a database without catalogs: the two relations have the columns that they have in
/// every major, and as long as nobody rewrote them the numbers of their files.
pub(crate) fn of_numbers(
    cluster: &Cluster,
    files: &[ForkFiles],
    options: &SalvageOptions,
) -> Result<FoundObjects, SalvageError> {
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
    gather(cluster, tables, options, None)
}

fn gather(
    cluster: &Cluster,
    tables: [(Oid, Option<Table>); 2],
    options: &SalvageOptions,
    search: Option<&LossSearch<'_>>,
) -> Result<FoundObjects, SalvageError> {
    let mut objects = Objects::new(options, cluster.build.block_size)?;
    let mut gaps = Vec::new();
    for (oid, table) in tables {
        let Some(table) = table else { continue };
        let mut account = account_of(&table, cluster);
        each_row(cluster, &table, &mut account, &mut |row| match oid {
            PG_LARGEOBJECT if row.number.is_some() => {
                objects.add_page(row.oid, row.number.unwrap_or(0), row.data)
            }
            _ => {
                objects.add(row.oid);
                Ok(())
            }
        })?;
        if let Some(search) = search {
            gaps.extend(search.of_tables(std::slice::from_mut(&mut account))?);
            objects.losses.add(oid, &account, search);
        }
        objects.losses.out_of_reach |= account.out_of_reach;
        objects.lose(oid, account.places);
    }
    let objects = Some(objects).filter(|objects| !objects.is_empty());
    // Of nothing nobody asks who would tell that it is missing.
    gaps.retain(|gap| !gap.inherent || objects.is_some());
    Ok(FoundObjects { objects, gaps })
}

impl ObjectLosses {
    /// What an index of one of the two relations names, and that does not have.
    fn add(&mut self, relation: Oid, account: &TableAccount, search: &LossSearch<'_>) {
        if account.out_of_reach || !is_hurt(account) {
            return;
        }
        search.search.each_lost_key(account, &mut |key| {
            let text = String::from_utf8_lossy(key);
            let object = text.split('\t').next().and_then(|oid| oid.parse().ok());
            match object {
                Some(object) if relation == PG_LARGEOBJECT => {
                    *self.pages.entry(object).or_default() += 1;
                }
                Some(object) => drop(self.rows.insert(object)),
                None => {}
            }
        });
    }
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
    account: &mut TableAccount,
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
                account.out_of_reach |= error.is_out_of_reach();
                let lost = LossPlace::page(piece.first_block, error);
                account.places.push(lost);
                account.pages.damaged.extend(piece.blocks(cluster.build));
                continue;
            }
        };
        if count < buffer.len() || !count.is_multiple_of(page_bytes) {
            let behind = u32::try_from(count / page_bytes).unwrap_or(u32::MAX);
            let block = piece.first_block.saturating_add(behind);
            let why = "the file ends before this block does";
            account.places.push(LossPlace::page(block, why));
        }
        let pages = buffer
            .get(..count)
            .unwrap_or_default()
            .chunks_exact(page_bytes);
        for (block, page) in (piece.first_block..).zip(pages.filter_map(Page::parse)) {
            for (tuple, place) in rows_of(cluster, table, page, block, account) {
                if !VersionFate::of(&visibility, tuple, place).counts() {
                    continue;
                }
                account.rows.live += 1;
                let mut taking = Taking {
                    known_bytes: usize::MAX,
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
                    account.places.push(LossPlace::row(place, &fault.kind));
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
    account: &mut TableAccount,
) -> Vec<(HeapTuple<'p>, Tid)> {
    let (state, why) = look(cluster, page, block);
    let TableAccount { pages, places, .. } = account;
    if let Some(why) = why {
        pages.damaged.push(block);
        places.push(LossPlace::page(block, why));
    }
    if page.line_pointer_count() == 0 && !state.is_carved() {
        pages.note_vacant(block);
    }
    if state == PageState::Empty {
        if map_marks(cluster, table, block) {
            places.push(LossPlace::page(block, HELD_ROWS));
        }
        return Vec::new();
    }
    if state == PageState::Sound {
        pages.note_roots(block, sum_of_roots(page, block));
        let normal = page
            .line_pointers()
            .filter(|(_, pointer)| pointer.flags() == LpFlags::Normal);
        let mut rows = Vec::new();
        for (offset, pointer) in normal {
            let place = Tid { block, offset };
            let row = page.item(pointer).and_then(HeapTuple::parse);
            match row.filter(|row| carve::is_row(*row, &table.layouts)) {
                Some(tuple) => rows.push((tuple, place)),
                None => {
                    let why = "the line pointer names bytes that are no row";
                    pages.damaged.push(block);
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
