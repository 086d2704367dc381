//! The rows of one block of a table as CSV, each by its line pointer: for whoever is about to take
//! some of them away.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use pgclinic_cluster::{Catalog, Cluster, Relation, read_block};
use pgclinic_format::heap_tuple::HEAP_HASEXTERNAL;
use pgclinic_format::{BlockNo, HeapTuple, LpFlags, Page};
use pgclinic_model::document::LossPlace;
use pgclinic_model::{Progress, Selection};
use pgclinic_spill::MemoryPlan;

use super::blocks_of_table;
use super::folder::Durability;
use super::options::{Destination, Encoding, LOCK_WAIT, Rows, SalvageOptions};
use super::ordered_files::Piece;
use super::row_sink::TakeRows;
use crate::formats::{Csv, Form};
use crate::shape::{MainForks, Table};
use crate::text_settings::TextStyle;
use crate::values::Partial;

/// What one block may take while its rows are printed.
const MEMORY_BYTES: u64 = 256 << 20;
/// `xmin` and `xmax` stand before `ctid`.
const FIELDS_BEFORE_CTID: usize = 2;

/// Rows as CSV.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BlockRows {
    /// The names of the columns: `xmin`, `xmax`, `ctid` and what became of the row, then its own.
    pub head: Vec<u8>,
    /// The row of each line pointer, with its end of line.
    pub rows: BTreeMap<u16, Vec<u8>>,
    /// Line pointers of which the block could not give all values.
    pub incomplete: Vec<u16>,
}

/// All row versions of a block, dead ones too; why they cannot be read, otherwise.
///
/// # Errors
/// When the columns of the table are unknown, or the spill directory cannot be used.
pub fn rows_of_block(
    cluster: &Cluster,
    catalog: &Catalog,
    relation: &Relation,
    block: BlockNo,
    spill_folder: &Path,
) -> Result<BlockRows, String> {
    let files = MainForks::of_database(cluster, catalog.database);
    let options = options(spill_folder.to_path_buf());
    let mut relation = relation.clone();
    let own = Table::of(&files, catalog, &relation, options.column_choice())?;
    if !has_external(cluster, &own, block) {
        // Nobody asks for the TOAST table, which would be read whole.
        relation.toast = 0;
    }
    let mut found = BlockRows::default();
    Csv.head(&own, &mut found.head);
    let rows = &mut found.rows;
    let mut take = |printed: &Piece| {
        for record in records(&printed.rows) {
            if let Some(item) = item_of(record) {
                rows.insert(item, record.to_vec());
            }
        }
        ControlFlow::Continue(())
    };
    let taker = TakeRows {
        parts_suspects: false,
        take: &mut take,
    };
    let account = blocks_of_table(
        cluster,
        catalog,
        &relation,
        &[block],
        &options,
        &Nobody,
        taker,
    )?;
    let own = |place: &&LossPlace| place.block == block && !place.in_toast;
    let places = account.places.iter().filter(own);
    found.incomplete = places.filter_map(|place| place.item).collect();
    Ok(found)
}

fn has_external(cluster: &Cluster, table: &Table, block: BlockNo) -> bool {
    let source = cluster.source();
    let bytes = read_block(source.as_ref(), &table.files, cluster.build, block);
    let page = bytes.as_deref().and_then(Page::parse);
    // A page whose line pointers say nothing may hold anything.
    page.is_none_or(|page| {
        let sane = page.header_is_sane_to_the_server();
        let normal = page
            .line_pointers()
            .filter(|(_, pointer)| pointer.flags() == LpFlags::Normal);
        let mut rows = normal.filter_map(|(_, pointer)| HeapTuple::parse(page.item(pointer)?));
        !sane || rows.any(|row| row.has(HEAP_HASEXTERNAL))
    })
}

fn options(spill_folder: PathBuf) -> SalvageOptions {
    SalvageOptions {
        destination: Destination::Folder(PathBuf::new()),
        form: &Csv,
        rows: Rows::All,
        generated: true,
        dropped: false,
        partial: Partial::Kept,
        verify: false,
        encoding: Encoding::Utf8,
        text: TextStyle::default(),
        durability: Durability::Buffered,
        resume: false,
        threads: NonZeroUsize::MIN,
        memory: MemoryPlan::new(MEMORY_BYTES),
        ddl: None,
        given: Vec::new(),
        without_catalogs: false,
        selection: Selection::default(),
        spec: String::new(),
        spill_folder,
        lock_wait: LOCK_WAIT,
    }
}

/// CSV records with their ends of line; quoted values may hold some of their own.
fn records(text: &[u8]) -> Vec<&[u8]> {
    let (mut is_quoted, mut start) = (false, 0);
    let mut found = Vec::new();
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\n' if !is_quoted => {
                found.extend(text.get(start..=at));
                start = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// The line pointer in the `ctid` of a record: `…,…,"(35,7)",…`.
fn item_of(record: &[u8]) -> Option<u16> {
    let mut fields = record.splitn(FIELDS_BEFORE_CTID + 1, |byte| *byte == b',');
    let ctid = fields.nth(FIELDS_BEFORE_CTID)?.strip_prefix(b"\"(")?;
    let (_, item) = split_at(ctid, b',')?;
    let (item, _) = split_at(item, b')')?;
    std::str::from_utf8(item).ok()?.parse().ok()
}

fn split_at(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let middle = bytes.iter().position(|byte| *byte == at)?;
    Some((bytes.get(..middle)?, bytes.get(middle + 1..)?))
}

/// One block is over before anybody could wait for it.
struct Nobody;

impl Progress for Nobody {
    fn expect(&self, _: u64) {}
    fn advance(&self, _: u64) {}
    fn is_interrupted(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_ends_where_no_quote_is_open_and_tells_its_line_pointer() {
        let text = b"7,0,\"(35,7)\",live,\"two\nlines\"\n8,0,\"(35,12)\",deleted,\xC3\xA4\n";
        let items: Vec<Option<u16>> = records(text).into_iter().map(item_of).collect();
        assert_eq!(items, [Some(7), Some(12)]);
    }
}
