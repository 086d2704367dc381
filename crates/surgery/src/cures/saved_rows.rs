//! The rows that cures are about, saved before anything changes: as CSV, and those that cannot be
//! decoded as hexadecimal digits.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pgclinic_cluster::{Cluster, DatabaseContext, ForkFiles, Relation, read_block};
use pgclinic_format::{BlockNo, Fork, Oid, Page};
use pgclinic_model::document::{Cure, SavedRows};
use pgclinic_salvage::{BlockRows, encoded, rows_of_block};

use super::databases::Databases;
use crate::error::{Error, Result};
use crate::operate::FileBeside;

/// Line pointers by block.
type Wanted = BTreeMap<BlockNo, BTreeSet<u16>>;

/// The files that hold the rows of these cures, and what they are. Where rows cannot be decoded,
/// their bytes are saved; `spill_folder` is for TOAST tables that are read meanwhile.
///
/// # Errors
/// When the files of a database cannot be listed.
pub fn rows_to_save(
    cluster: &Cluster,
    cures: &[Cure],
    spill_folder: &Path,
) -> Result<(Vec<FileBeside>, Vec<SavedRows>)> {
    let mut databases = Databases::new(cluster);
    let (mut files, mut saved) = (Vec::new(), Vec::new());
    for ((database, table), wanted) in wanted_of(cures) {
        databases.open(database)?;
        let view = databases.get(database);
        let Some(relation) = view.catalog.relations.get(&table) else {
            continue;
        };
        let found = of_table(cluster, &view, relation, &wanted, spill_folder)?;
        for (file, account) in found {
            files.push(file);
            saved.push(account);
        }
    }
    Ok((files, saved))
}

fn wanted_of(cures: &[Cure]) -> BTreeMap<(Oid, Oid), Wanted> {
    let mut found: BTreeMap<(Oid, Oid), Wanted> = BTreeMap::new();
    for cure in cures {
        let table = cure.place.database_oid.zip(cure.place.relation_oid);
        for (row, table) in cure.rows.iter().zip(table.iter().cycle()) {
            let blocks = found.entry(*table).or_default();
            blocks.entry(row.block).or_default().insert(row.item);
        }
    }
    found
}

fn of_table(
    cluster: &Cluster,
    database: &DatabaseContext<'_>,
    relation: &Relation,
    wanted: &Wanted,
    spill_folder: &Path,
) -> Result<Vec<(FileBeside, SavedRows)>> {
    let (mut csv, mut hex) = (Vec::new(), HEX_HEAD.as_bytes().to_vec());
    let (mut rows, mut as_hex) = (0, 0);
    for (block, items) in wanted {
        let decoded = rows_of_block(cluster, database.catalog, relation, *block, spill_folder);
        // Columns that nobody knows leave the bytes.
        let decoded = decoded.unwrap_or_default();
        if csv.is_empty() {
            csv.clone_from(&decoded.head);
        }
        for item in items {
            let text = decoded.rows.get(item);
            csv.extend(text.into_iter().flatten());
            rows += u64::from(text.is_some());
            if needs_hex(&decoded, *item) {
                let bytes = bytes_of(cluster, database, relation, *block, *item)?;
                hex.extend(format!("{block},{item},{bytes}\n").as_bytes());
                as_hex += 1;
            }
        }
    }
    let stem = name_of(database, relation);
    let account = |file: String, rows, as_hex| SavedRows { file, rows, as_hex };
    let mut found = Vec::new();
    if rows > 0 {
        let name = format!("{stem}.csv");
        found.push((
            FileBeside::of_bytes(name.clone(), csv),
            account(name, rows, 0),
        ));
    }
    if as_hex > 0 {
        let name = format!("{stem}.hex.csv");
        found.push((
            FileBeside::of_bytes(name.clone(), hex),
            account(name, as_hex, as_hex),
        ));
    }
    Ok(found)
}

const HEX_HEAD: &str = "block,item,bytes\n";

/// The row was not printed, or not with all of its values.
fn needs_hex(decoded: &BlockRows, item: u16) -> bool {
    !decoded.rows.contains_key(&item) || decoded.incomplete.contains(&item)
}

fn name_of(database: &DatabaseContext<'_>, relation: &Relation) -> String {
    let name = database
        .catalog
        .database_name
        .as_deref()
        .unwrap_or("shared");
    let parts = [name, &relation.schema, &relation.name];
    parts.map(encoded).join(".")
}

/// The bytes of an item; those of the whole page where its line pointer names none.
fn bytes_of(
    cluster: &Cluster,
    database: &DatabaseContext<'_>,
    relation: &Relation,
    block: BlockNo,
    item: u16,
) -> Result<String> {
    let own = |files: &&ForkFiles| {
        files.home.tablespace == relation.tablespace
            && files.filenode == relation.filenode
            && files.fork == Fork::Main
            && files.temporary.is_none()
    };
    let files = database.forks.iter().find(own);
    let page =
        files.and_then(|files| read_block(cluster.source().as_ref(), files, cluster.build, block));
    let page = page.ok_or_else(|| Error::Cure {
        place: format!("{}, block {block}", relation.qualified_name()),
        why: "the page cannot be read again to save its rows".into(),
    })?;
    let row = Page::parse(&page).and_then(|page| page.item(page.line_pointer(item)?));
    let digits = row
        .unwrap_or(&page)
        .iter()
        .map(|byte| format!("{byte:02x}"));
    Ok(digits.collect())
}
