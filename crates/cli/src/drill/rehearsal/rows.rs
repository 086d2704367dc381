//! The rows of tables as hashes, to be compared: eight bytes a row, in files and in their order, so
//! that memory does not grow with the tables.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use pgclinic_cluster::Cluster;
use pgclinic_model::document::RehearsalTable;
use pgclinic_model::{Glob, Progress, Selection};
use pgclinic_salvage::{SalvageOptions, salvage};
use pgclinic_spill::{MemoryPlan, Part, SortedRuns};
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

/// The rows of a table: a file with a hash of each, in their order, however many there are.
#[derive(Debug)]
pub(crate) struct RowHashes {
    path: PathBuf,
}

/// Bytes of a hash in the file.
const HASH_BYTES: usize = 8;

impl RowHashes {
    /// Those that lie in this file.
    pub(crate) fn in_file(path: PathBuf) -> Self {
        RowHashes { path }
    }

    fn count(&self) -> Result<u64, Failure> {
        Ok(std::fs::metadata(&self.path)?.len() / HASH_BYTES as u64)
    }

    fn reader(&self) -> Result<impl Iterator<Item = Result<u64, Failure>> + use<>, Failure> {
        let mut file = BufReader::new(File::open(&self.path)?);
        Ok(std::iter::from_fn(move || {
            let mut hash = [0; HASH_BYTES];
            match file.read_exact(&mut hash) {
                Ok(()) => Some(Ok(u64::from_le_bytes(hash))),
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => None,
                Err(error) => Some(Err(error.into())),
            }
        }))
    }
}

/// Where the rows of tables are read.
#[derive(Clone, Copy)]
pub(crate) struct RowsPlace<'a> {
    /// An existing directory, for what is needed for a while.
    pub(crate) scratch: &'a Path,
    /// How the files with the hashes are called there: this, and the number of the table.
    pub(crate) name: &'a str,
    pub(crate) threads: NonZeroUsize,
}

impl RowsPlace<'_> {
    /// The file of the table with this number.
    pub(crate) fn file(&self, number: usize) -> PathBuf {
        self.scratch.join(format!("{}-{number}", self.name))
    }
}

/// Reads all rows of these tables that can be read; a table that cannot be named any more has none.
/// Files are numbered in the order of the tables' names.
pub(crate) fn rows_of(
    cluster: &Cluster,
    tables: &[TableName],
    place: RowsPlace<'_>,
    progress: &dyn Progress,
) -> Result<BTreeMap<TableName, RowHashes>, Failure> {
    let names: BTreeSet<TableName> = tables.iter().cloned().collect();
    let mut rows = BTreeMap::new();
    for (number, name) in names.into_iter().enumerate() {
        let path = place.file(number);
        File::create(&path)?;
        rows.insert(name, RowHashes::in_file(path));
    }
    if rows.is_empty() {
        return Ok(rows);
    }
    let folder = place.scratch.join("read");
    let account = salvage(cluster, &options(tables, &folder, place.threads)?, progress)?;
    for table in account.tables {
        let name = TableName {
            database: table.database,
            schema: table.schema,
            table: table.table,
        };
        if let (Some(hashes), Some(file)) = (rows.get(&name), &table.file) {
            write_hashes(&folder.join(file), &hashes.path, place.scratch)?;
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

/// A row is a line. What does not fit into memory is sorted in a file of `scratch`.
fn write_hashes(file: &Path, to: &Path, scratch: &Path) -> Result<(), Failure> {
    let memory = MemoryPlan::default();
    let mut sorted = SortedRuns::within(&memory.part(Part::KeySort), scratch)?;
    let mut reader = BufReader::new(File::open(file)?);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        let mut hasher = DefaultHasher::new();
        hasher.write(&line);
        // Bytes in this order sort as the numbers do.
        sorted.push(&hasher.finish().to_be_bytes(), &[])?;
        line.clear();
    }
    let mut out = BufWriter::new(File::create(to)?);
    for record in sorted.finish()? {
        let (mut hash, _) = record?;
        hash.reverse();
        out.write_all(&hash)?;
    }
    Ok(out.flush()?)
}

/// What of the original's rows is there now, and what is there that it does not have.
pub(crate) fn compared(
    name: &TableName,
    before: &RowHashes,
    now: Option<&RowHashes>,
) -> Result<RehearsalTable, Failure> {
    let (saved, wrong) = match now {
        Some(now) => matched(before.reader()?, now.reader()?)?,
        None => (0, 0),
    };
    Ok(RehearsalTable {
        database: name.database.clone(),
        schema: name.schema.clone(),
        table: name.table.clone(),
        rows: before.count()?,
        saved,
        wrong,
    })
}

/// How many of `now` are in `before`, and how many are not; both are in order.
fn matched(
    mut before: impl Iterator<Item = Result<u64, Failure>>,
    now: impl Iterator<Item = Result<u64, Failure>>,
) -> Result<(u64, u64), Failure> {
    let (mut saved, mut wrong) = (0, 0);
    let mut next = before.next().transpose()?;
    for hash in now {
        let hash = hash?;
        while next.is_some_and(|own| own < hash) {
            next = before.next().transpose()?;
        }
        if next == Some(hash) {
            saved += 1;
            next = before.next().transpose()?;
        } else {
            wrong += 1;
        }
    }
    Ok((saved, wrong))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_counts_as_often_as_it_is_there() {
        let seen = |before: &[u64], now: &[u64]| {
            matched(before.iter().copied().map(Ok), now.iter().copied().map(Ok)).expect("no file")
        };
        assert_eq!(seen(&[1, 1, 2, 5], &[1, 1, 1, 2, 3]), (3, 2));
        assert_eq!(seen(&[], &[4]), (0, 1));
        assert_eq!(seen(&[4, 7], &[]), (0, 0));
    }

    #[test]
    fn hashes_lie_in_their_order_and_are_counted() {
        let scratch = tempfile::tempdir().expect("a directory");
        let (lines, hashes) = (scratch.path().join("lines"), scratch.path().join("rows-0"));
        let text: String = (0..1000)
            .map(|number| format!("{{\"id\":{number}}}\n"))
            .collect();
        std::fs::write(&lines, text).expect("written");
        write_hashes(&lines, &hashes, scratch.path()).expect("sorted");
        let rows = RowHashes::in_file(hashes);
        assert_eq!(rows.count().expect("a file"), 1000);
        let all: Vec<u64> = rows
            .reader()
            .expect("a file")
            .map(|own| own.expect("a hash"))
            .collect();
        assert!(all.is_sorted());
        let own = matched(
            rows.reader().expect("a file"),
            rows.reader().expect("a file"),
        );
        assert_eq!(own.expect("read"), (1000, 0));
    }
}
