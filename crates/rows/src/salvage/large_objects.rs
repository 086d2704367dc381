//! All large objects of a database in one file.
//!
//! With a form of columns it is one of that form: see `large_object_columns`. Else it is a tar file, a member each, named by its number.
//! The member `restore.sql` puts them back under their numbers: unpack the file where the server can read it, and run
//! `psql -v folder=FOLDER -f FOLDER/restore.sql`. An object without a page is empty; a gap between pages reads as zeros.

use std::collections::BTreeMap;
use std::io;

use pgclinic_cluster::{Catalog, Cluster};
use pgclinic_format::{BlockNo, HeapTuple, LpFlags, Oid, Page, types::Tid};
use pgclinic_spill::SortedRuns;

use super::SalvageOptions;
use super::account::{LargeObjectsAccount, LossPlace, Tally};
use super::error::SalvageError;
use super::folder::{Folder, PartFile};
use super::large_object_columns::Columns;
use super::pieces::Pieces;
use crate::carve::{self, PageState, Probe};
use crate::shape::{ColumnChoice, MainForks, Table};
use crate::values::{Cells, Partial, Taking};
use crate::visible::Judge;

const PG_LARGEOBJECT: Oid = 2613;
const PG_LARGEOBJECT_METADATA: Oid = 2995;
const TAR_BLOCK: usize = 512;
/// Bytes that are gathered before they are written.
const WRITE_BYTES: usize = 1 << 20;

/// Sizes of all objects, and their pages sorted by object and number.
pub(super) struct Objects {
    pub(super) sizes: BTreeMap<Oid, u64>,
    pub(super) pages: SortedRuns,
    pub(super) page_bytes: u64,
    tally: Tally,
}

/// The page of an object, as it was sorted.
pub(super) struct ObjectPage {
    pub(super) oid: Oid,
    /// Where it begins in the object.
    pub(super) start: u64,
    pub(super) data: Vec<u8>,
}

impl ObjectPage {
    pub(super) fn of((key, data): (Vec<u8>, Vec<u8>), page_bytes: u64) -> Self {
        let four = |at: usize| {
            let bytes = key.get(at..).and_then(|key| key.first_chunk());
            bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
        };
        ObjectPage {
            oid: four(0),
            start: u64::from(four(4)) * page_bytes,
            data,
        }
    }
}

/// Writes the large objects of a database; nothing where there are none. `name` has no extension.
pub(crate) fn salvage(
    cluster: &Cluster,
    catalog: &Catalog,
    files: &MainForks,
    options: &SalvageOptions,
    folder: &Folder,
    name: &str,
) -> Result<Option<LargeObjectsAccount>, SalvageError> {
    let budget = usize::try_from(options.memory_bytes / 4).unwrap_or(usize::MAX);
    let spill = |source| SalvageError::destination(&options.spill_folder, "sort in", source);
    let mut objects = Objects {
        sizes: BTreeMap::new(),
        pages: SortedRuns::new(budget, &options.spill_folder).map_err(spill)?,
        page_bytes: u64::from(cluster.build.block_size / 4),
        tally: Tally::default(),
    };
    let tables = [PG_LARGEOBJECT_METADATA, PG_LARGEOBJECT];
    for oid in tables {
        let relation = catalog.relations.get(&oid);
        let table =
            relation.map(|relation| Table::of(files, catalog, relation, ColumnChoice::default()));
        if let Some(Ok(table)) = table {
            each_row(
                cluster,
                &table,
                &mut objects.tally.places,
                &mut |row| match oid {
                    PG_LARGEOBJECT => objects.pages.push(&row.key, row.data).map(|()| {
                        let size = objects.sizes.entry(row.oid).or_default();
                        let end =
                            u64::from(row.number) * objects.page_bytes + row.data.len() as u64;
                        *size = (*size).max(end);
                    }),
                    _ => {
                        objects.sizes.entry(row.oid).or_default();
                        Ok(())
                    }
                },
            )
            .map_err(spill)?;
        }
    }
    if objects.sizes.is_empty() {
        return Ok(None);
    }
    let mut account = LargeObjectsAccount {
        database: crate::shape::database_name(catalog),
        file: String::new(),
        file_bytes: 0,
        objects: objects.sizes.len() as u64,
        bytes: objects.sizes.values().sum(),
        places: std::mem::take(&mut objects.tally.places),
    };
    account.places.truncate(super::PLACES_MAX);
    match options.form.layout() {
        None => {
            account.file = format!("{name}.tar");
            account.file_bytes = write(objects, folder, &account.file, &spill)?;
        }
        Some(layout) => {
            let extension = options.form.extension();
            account.file = format!("{name}.{extension}");
            let memory_bytes = budget;
            let to = Columns {
                layout,
                folder,
                name: &account.file,
                memory_bytes,
            };
            account.file_bytes = to.write(objects, &spill)?;
        }
    }
    Ok(Some(account))
}

/// A row of either table.
struct ObjectRow<'a> {
    oid: Oid,
    number: u32,
    key: [u8; 8],
    data: &'a [u8],
}

/// Every live row, found by its structure where its page does not name it.
fn each_row(
    cluster: &Cluster,
    table: &Table,
    places: &mut Vec<LossPlace>,
    each: &mut dyn FnMut(ObjectRow<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let judge = Judge::new(cluster);
    let pieces = Pieces::of(&table.files, cluster.build);
    let page_bytes = usize::try_from(cluster.build.block_size).unwrap_or(8192);
    let (mut buffer, mut cells) = (Vec::new(), Cells::default());
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
        let pages = buffer
            .get(..count)
            .unwrap_or_default()
            .chunks_exact(page_bytes);
        for (block, page) in (piece.first_block..).zip(pages.filter_map(Page::parse)) {
            let rows = rows_of(cluster, table, page, block, places);
            for (tuple, place) in rows {
                if !judge.verdict(tuple, place).counts() {
                    continue;
                }
                let mut taking = Taking {
                    table,
                    chunks: None,
                    partial: Partial::Null,
                    chunk_bytes: cluster.build.toast_chunk,
                    value_bytes_max: u64::from(cluster.build.block_size),
                };
                cells.fill(tuple, place, crate::visible::Verdict::Live, &mut taking);
                let row = cells.row(tuple);
                let number = |column| {
                    let value: &[u8] = row.value(column)?;
                    Some(u32::from_le_bytes(*value.first_chunk()?))
                };
                let Some(oid) = number(0) else { continue };
                let page_number = number(1).unwrap_or(0);
                let data = row.value(2).unwrap_or_default();
                if let Some(fault) = cells.faults().first() {
                    places.push(LossPlace::row(place, &fault.kind));
                }
                let [a, b, c, d] = oid.to_be_bytes();
                let [e, f, g, h] = page_number.to_be_bytes();
                each(ObjectRow {
                    oid,
                    number: page_number,
                    key: [a, b, c, d, e, f, g, h],
                    data,
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
    if PageState::of(page) == PageState::Empty {
        return Vec::new();
    }
    if PageState::of(page) == PageState::Sound {
        let normal = page
            .line_pointers()
            .filter(|(_, pointer)| pointer.flags() == LpFlags::Normal);
        let rows = normal.filter_map(|(offset, pointer)| {
            let tuple = HeapTuple::parse(page.item(pointer)?)?;
            Some((tuple, Tid { block, offset }))
        });
        return rows.collect();
    }
    places.push(LossPlace::page(
        block,
        "the header of the page makes no sense",
    ));
    let mut fits = |_: usize, _: &[u8]| true;
    let mut probe = Probe::new(&table.layouts, u64::MAX, &cluster.transactions, &mut fits);
    let found = carve::of_broken_page(page, block, &mut probe);
    found
        .into_iter()
        .map(|found| (found.tuple, found.place))
        .collect()
}

fn write(
    objects: Objects,
    folder: &Folder,
    name: &str,
    spill: &dyn Fn(io::Error) -> SalvageError,
) -> Result<u64, SalvageError> {
    let Objects {
        sizes,
        pages,
        page_bytes,
        ..
    } = objects;
    let mut tar = Tar {
        file: folder.begin(name)?,
        buffer: Vec::new(),
    };
    let script = restore_script(&sizes);
    tar.head("restore.sql", script.len() as u64)?;
    tar.add(script.as_bytes())?;
    tar.pad(script.len() as u64)?;
    let mut pages = pages.finish().map_err(spill)?.peekable();
    for (oid, size) in &sizes {
        tar.head(&oid.to_string(), *size)?;
        let mut at = 0u64;
        while let Some(page) = pages.next_if(|page| match page {
            Ok((key, _)) => key.get(..4) == Some(oid.to_be_bytes().as_slice()),
            Err(_) => true,
        }) {
            let page = ObjectPage::of(page.map_err(spill)?, page_bytes);
            // A page that is there twice is written once.
            if page.start < at {
                continue;
            }
            tar.zeros(page.start - at)?;
            tar.add(&page.data)?;
            at = page.start + page.data.len() as u64;
        }
        tar.zeros(size.saturating_sub(at))?;
        tar.pad(*size)?;
    }
    tar.finish()
}

fn restore_script(sizes: &BTreeMap<Oid, u64>) -> String {
    let mut script = String::from("\\if :{?folder}\n\\else\n\\set folder '.'\n\\endif\n");
    for oid in sizes.keys() {
        script.push_str(&format!(
            "SELECT pg_catalog.lo_import(:'folder' || '/{oid}', {oid});\n"
        ));
    }
    script
}

/// A tar file, written from its beginning to its end. Truth: `pax` in POSIX, format `ustar`.
struct Tar {
    file: PartFile,
    buffer: Vec<u8>,
}

impl Tar {
    fn head(&mut self, name: &str, size: u64) -> Result<(), SalvageError> {
        let mut block = [0u8; TAR_BLOCK];
        let mut put = |at: usize, bytes: &[u8]| {
            if let Some(slot) = block.get_mut(at..at + bytes.len()) {
                slot.copy_from_slice(bytes);
            }
        };
        put(0, name.as_bytes());
        put(100, b"0000600\0");
        put(108, b"0000000\0");
        put(116, b"0000000\0");
        put(124, &tar_size(size));
        put(136, b"00000000000\0");
        put(148, b"        ");
        put(156, b"0");
        put(257, b"ustar\x0000");
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        let sum = format!("{sum:06o}\0 ");
        if let Some(slot) = block.get_mut(148..156) {
            slot.copy_from_slice(sum.as_bytes());
        }
        self.add(&block)
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), SalvageError> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= WRITE_BYTES {
            self.file.write(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    fn zeros(&mut self, count: u64) -> Result<(), SalvageError> {
        let mut left = count;
        while left > 0 {
            let step = left.min(TAR_BLOCK as u64);
            let zeros = [0u8; TAR_BLOCK];
            let step_bytes = usize::try_from(step).unwrap_or(TAR_BLOCK);
            self.add(zeros.get(..step_bytes).unwrap_or_default())?;
            left -= step;
        }
        Ok(())
    }

    /// Fills the last block of a member.
    fn pad(&mut self, size: u64) -> Result<(), SalvageError> {
        self.zeros(size.next_multiple_of(TAR_BLOCK as u64) - size)
    }

    fn finish(mut self) -> Result<u64, SalvageError> {
        self.zeros(2 * TAR_BLOCK as u64)?;
        self.file.write(&self.buffer)?;
        self.file.finish()
    }
}

/// Eleven octal digits, or eight bytes behind a mark where they do not hold it.
fn tar_size(size: u64) -> [u8; 12] {
    let mut field = [0u8; 12];
    let octal = format!("{size:011o}\0");
    match octal.len() == field.len() {
        true => field.copy_from_slice(octal.as_bytes()),
        false => {
            field[0] = 0x80;
            if let Some(slot) = field.get_mut(4..) {
                slot.copy_from_slice(&size.to_be_bytes());
            }
        }
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_octal_while_they_fit() {
        assert_eq!(&tar_size(2048), b"00000004000\0");
        assert_eq!(tar_size(1 << 33), [0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]);
    }
}
