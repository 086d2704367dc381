//! The rows of tables as hashes, to be compared: eight bytes a row.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::io::{BufRead, BufReader};
use std::num::NonZeroUsize;
use std::path::Path;

use pgclinic_cluster::Cluster;
use pgclinic_model::document::RehearsalTable;
use pgclinic_model::{Glob, Progress, Selection};
use pgclinic_salvage::{SalvageOptions, salvage};
use serde::{Deserialize, Serialize};

use crate::drill::salvage_options::salvage_options;
use crate::exit::Failure;

/// A table by its names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct TableName {
    pub(crate) database: String,
    pub(crate) schema: String,
    pub(crate) table: String,
}

/// A hash for each row, in their order.
pub(crate) type RowHashes = Vec<u64>;

/// Reads all rows of these tables that can be read; a table that cannot be named any more has none.
pub(crate) fn rows_of(
    cluster: &Cluster,
    tables: &[TableName],
    (folder, threads): (&Path, NonZeroUsize),
    progress: &dyn Progress,
) -> Result<BTreeMap<TableName, RowHashes>, Failure> {
    let mut rows: BTreeMap<TableName, RowHashes> = BTreeMap::new();
    for table in tables {
        rows.insert(table.clone(), RowHashes::new());
    }
    if tables.is_empty() {
        return Ok(rows);
    }
    let account = salvage(cluster, &options(tables, folder, threads)?, progress)?;
    for table in account.tables {
        let name = TableName {
            database: table.database,
            schema: table.schema,
            table: table.table,
        };
        if let (Some(hashes), Some(file)) = (rows.get_mut(&name), &table.file) {
            *hashes = hashes_of(&folder.join(file))?;
        }
    }
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(rows)
}

fn options(
    tables: &[TableName],
    folder: &Path,
    threads: NonZeroUsize,
) -> Result<SalvageOptions, Failure> {
    let globs = |names: &dyn Fn(&TableName) -> String| {
        let mut names: Vec<String> = tables.iter().map(names).collect();
        names.sort();
        names.dedup();
        names.into_iter().map(Glob::new).collect()
    };
    let spill = folder.parent().unwrap_or(folder);
    Ok(SalvageOptions {
        selection: Selection {
            databases: globs(&|own| own.database.clone()),
            relations: globs(&|own| format!("{}.{}", own.schema, own.table)),
            ..Selection::default()
        },
        ..salvage_options("jsonl", (folder, spill), threads)?
    })
}

/// A row is a line.
fn hashes_of(file: &Path) -> Result<RowHashes, Failure> {
    let mut reader = BufReader::new(std::fs::File::open(file)?);
    let (mut line, mut hashes) = (Vec::new(), RowHashes::new());
    while reader.read_until(b'\n', &mut line)? > 0 {
        let mut hasher = DefaultHasher::new();
        hasher.write(&line);
        hashes.push(hasher.finish());
        line.clear();
    }
    hashes.sort_unstable();
    Ok(hashes)
}

/// What of the original's rows is there now, and what is there that it does not have.
pub(crate) fn compared(name: &TableName, before: &[u64], now: &[u64]) -> RehearsalTable {
    let (mut saved, mut wrong) = (0, 0);
    let mut left = before;
    for hash in now {
        let passed = left.partition_point(|own| own < hash);
        left = left.get(passed..).unwrap_or_default();
        match left.split_first() {
            Some((own, rest)) if own == hash => {
                saved += 1;
                left = rest;
            }
            _ => wrong += 1,
        }
    }
    RehearsalTable {
        database: name.database.clone(),
        schema: name.schema.clone(),
        table: name.table.clone(),
        rows: before.len() as u64,
        saved,
        wrong,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_counts_as_often_as_it_is_there() {
        let name = TableName {
            database: "d".into(),
            schema: "s".into(),
            table: "t".into(),
        };
        let seen = |before: &[u64], now: &[u64]| {
            let table = compared(&name, before, now);
            (table.rows, table.saved, table.wrong)
        };
        assert_eq!(seen(&[1, 1, 2, 5], &[1, 1, 1, 2, 3]), (4, 3, 2));
        assert_eq!(seen(&[], &[4]), (0, 0, 1));
        assert_eq!(seen(&[4, 7], &[]), (2, 0, 0));
    }
}
