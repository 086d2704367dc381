//! Checks of what was saved: no key of a primary key or unique constraint twice, no foreign key
//! without its row.
//!
//! ```text
//! table ─► its key columns alone, as text ─► sorted ─► neighbours that are equal
//! child ─► keys, sorted ─┐
//! parent ─► keys, sorted ┴► keys of the child that the parent does not have
//! ```
//!
//! The rows are found again, as the ones that were written were found. What is equal to the server
//! is equal here only where equal values have one text: other types are told as not checked.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::iter::Peekable;

use pgclinic_cluster::{Catalog, Charset, Cluster};
use pgclinic_columnar::cells;
use pgclinic_format::Oid;
use pgclinic_model::Progress;
use pgclinic_model::document::{CheckAccount, FOREIGN_KEYS, KEYS_MAX, TableAccount};
use pgclinic_spill::{Part, SortedRecords, SortedRuns};

use super::database_job::DatabaseJob;
use super::error::SalvageError;
use super::key_cells::{KeyCells, KeyFamily, KeySorter, family_of};
use super::plan::{Planned, account_of};
use super::row_sink::RowSink;
use super::{Rows, SalvageOptions};
use crate::formats::csv_field;
use crate::schema::keys::{Key, KeyKind, keys_of};
use crate::shape::{Column, ColumnChoice, MainForks, Origin, Table};
use crate::text_settings::TextStyle;

/// What the look at one database shares.
pub(super) struct Checks<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) catalog: &'a Catalog,
    pub(super) files: &'a MainForks,
    pub(super) options: &'a SalvageOptions,
    pub(super) progress: &'a dyn Progress,
}

/// What a look at a key gave: how many keys were looked at, how many of them break it, and the
/// first of those.
#[derive(Default)]
struct KeyCheck {
    keys: u64,
    broken: u64,
    /// Keys without a row in the table that they lead to, each once.
    without_row: u64,
    listed: Vec<String>,
}

impl KeyCheck {
    fn list(&mut self, key: &[u8], rows: u64) {
        self.broken += rows;
        if self.listed.len() < KEYS_MAX {
            self.listed.push(shown(key));
        }
    }
}

/// Why a key cannot be looked at.
type Refused = String;

impl Checks<'_> {
    /// Looks at every key of these tables.
    pub(super) fn of_tables(
        &self,
        tables: &[TableAccount],
    ) -> Result<Vec<CheckAccount>, SalvageError> {
        let saved = saved_of(tables);
        let mut found = Vec::new();
        for key in keys_of(self.cluster, self.catalog) {
            if !saved.contains(&key.table) || self.progress.is_interrupted() {
                continue;
            }
            let Some(mut account) = self.account_of(&key) else {
                continue;
            };
            let looked = self.look(&key, &saved)?;
            // Not all keys may have been read.
            if self.progress.is_interrupted() {
                break;
            }
            match looked {
                Ok(looked) => {
                    account.keys = looked.keys;
                    account.broken = looked.broken;
                    account.listed = looked.listed;
                }
                Err(why) => account.not_checked = Some(why),
            }
            found.push(account);
        }
        Ok(found)
    }

    /// Counts rows of tables that are lost by the keys of others, where no index tells: the tables
    /// for which `is_wanted`.
    pub(super) fn count_by_foreign_keys(
        &self,
        tables: &mut [TableAccount],
        is_wanted: impl Fn(&TableAccount) -> bool,
    ) -> Result<(), SalvageError> {
        if !tables.iter().any(&is_wanted) {
            return Ok(());
        }
        let saved = saved_of(tables);
        let keys = keys_of(self.cluster, self.catalog);
        for table in tables.iter_mut().filter(|table| is_wanted(table)) {
            let oid = table.oid;
            let leads_here = |key: &&Key| {
                let tables = match &key.kind {
                    KeyKind::Foreign { tables, .. } => tables.as_slice(),
                    KeyKind::Unique { .. } => &[],
                };
                // Of a partitioned table nobody knows in which partition the row stood.
                tables == [oid] && key.table != oid && saved.contains(&key.table)
            };
            let mut most = 0;
            for key in keys.iter().filter(leads_here) {
                if let Ok(found) = self.look(key, &saved)? {
                    most = most.max(found.without_row);
                }
            }
            // Not all rows of the table may have been met.
            if self.progress.is_interrupted() {
                return Ok(());
            }
            table.count_at_least(FOREIGN_KEYS, most);
        }
        Ok(())
    }

    fn account_of(&self, key: &Key) -> Option<CheckAccount> {
        let relation = self.catalog.relations.get(&key.table)?;
        let named = |oid: &Oid| {
            let relation = self.catalog.relations.get(oid);
            relation.map_or_else(|| oid.to_string(), |relation| relation.qualified_name())
        };
        let (kind, references) = match &key.kind {
            KeyKind::Unique {
                is_primary: true, ..
            } => ("primary-key", None),
            KeyKind::Unique { .. } => ("unique", None),
            KeyKind::Foreign { parent, .. } => ("foreign-key", Some(named(parent))),
        };
        Some(CheckAccount {
            database: crate::shape::database_name(self.catalog),
            schema: relation.schema.clone(),
            table: relation.name.clone(),
            key: key.name.clone(),
            kind: kind.into(),
            columns: key.columns.clone(),
            references,
            ..CheckAccount::default()
        })
    }

    fn look(
        &self,
        key: &Key,
        saved: &BTreeSet<Oid>,
    ) -> Result<Result<KeyCheck, Refused>, SalvageError> {
        if let Some(excuse) = key.excuse {
            return Ok(Err(excuse.into()));
        }
        let own = match self.key_of(key.table, &key.columns) {
            Ok(own) => own,
            Err(why) => return Ok(Err(why)),
        };
        match &key.kind {
            KeyKind::Unique { nulls_distinct, .. } => {
                let keys = self.sorted(vec![own])?;
                let looked = doubled(keys, *nulls_distinct);
                looked.map(Ok).map_err(|error| self.spill(error))
            }
            KeyKind::Foreign {
                tables,
                columns,
                is_full,
                ..
            } => {
                let mut parents = Vec::new();
                for table in tables {
                    if !saved.contains(table) {
                        let why = "the table that it leads to was not saved whole";
                        return Ok(Err(why.into()));
                    }
                    match self.key_of(*table, columns) {
                        Ok(parent) => parents.push(parent),
                        Err(why) => return Ok(Err(why)),
                    }
                }
                let families = |table: &Table| -> Vec<Option<KeyFamily>> {
                    table
                        .columns
                        .iter()
                        .map(|column| family_of(&column.ty))
                        .collect()
                };
                if parents
                    .iter()
                    .any(|parent| families(parent) != families(&own))
                {
                    return Ok(Err(
                        "its columns and those that it leads to are of other types".into(),
                    ));
                }
                let (own, parents) = (self.sorted(vec![own])?, self.sorted(parents)?);
                let looked = orphaned(own, parents, *is_full);
                looked.map(Ok).map_err(|error| self.spill(error))
            }
        }
    }

    fn spill(&self, source: io::Error) -> SalvageError {
        SalvageError::destination(&self.options.spill_folder, "sort in", source)
    }

    /// The table with nothing but the columns of a key.
    fn key_of(&self, table: Oid, columns: &[String]) -> Result<Table, Refused> {
        let relation = self.catalog.relations.get(&table);
        let relation = relation.ok_or("the catalogs do not tell of its table")?;
        let choice = ColumnChoice {
            generated: true,
            ..ColumnChoice::default()
        };
        let mut found = Table::of(self.files, self.catalog, relation, choice)?;
        let all = std::mem::take(&mut found.columns);
        let by_name: BTreeMap<&str, &Column> = all
            .iter()
            .map(|column| (column.name.as_str(), column))
            .collect();
        for name in columns {
            let column = by_name.get(name.as_str());
            let column = *column.ok_or_else(|| format!("its column {name} is not written"))?;
            self.refuse(table, column)?;
            found.columns.push(column.clone());
        }
        // The walk over a row goes from its first column to its last.
        Ok(found)
    }

    /// Two values of the column may be equal and differ in their text.
    fn refuse(&self, table: Oid, column: &Column) -> Result<(), Refused> {
        if family_of(&column.ty).is_none() {
            return Err(format!(
                "equal values of type {} may differ in their text (column {})",
                column.ty.name, column.name
            ));
        }
        let relation = self.catalog.relations.get(&table);
        let columns = relation.and_then(|relation| relation.columns.as_ref());
        let own = columns.and_then(|all| all.iter().find(|one| one.name == column.name));
        let collation = own.and_then(|own| self.catalog.collation(own.collation));
        if collation.is_some_and(|collation| !collation.deterministic) {
            Err(format!(
                "the collation of column {} takes different texts for equal",
                column.name
            ))
        } else {
            Ok(())
        }
    }

    /// The keys of all rows of these tables, in the order of their bytes.
    fn sorted(&self, tables: Vec<Table>) -> Result<SortedRecords, SalvageError> {
        let mut options = self.options.clone();
        options.form = &KeyCells;
        options.rows = Rows::Live;
        // No two values may become alike.
        options.text = TextStyle::default();
        let memory = options.memory.part(Part::KeySort);
        let runs = SortedRuns::within(&memory, &options.spill_folder);
        let sorter = KeySorter::new(runs.map_err(|error| self.spill(error))?);
        for mut table in tables {
            let order = in_order_of_attributes(&mut table);
            let sorter_of_table = sorter.of_table(order);
            let planned = Planned {
                account: account_of(&table, self.cluster),
                file: String::new(),
                table,
                is_described: false,
            };
            let silent = Silent(self.progress);
            let crew = DatabaseJob::new(
                self.cluster,
                &options,
                &silent,
                vec![planned],
                Charset::Raw,
                |_| RowSink::Rows(&sorter_of_table),
            );
            crew.run()?;
        }
        sorter.finish().map_err(|error| self.spill(error))
    }
}

/// Tables that were written.
fn saved_of(tables: &[TableAccount]) -> BTreeSet<Oid> {
    let written = tables.iter().filter(|table| table.file.is_some());
    written.map(|table| table.oid).collect()
}

/// Puts the columns into the order in which rows hold them; for each column of the key, which of
/// them it is.
fn in_order_of_attributes(table: &mut Table) -> Vec<usize> {
    let wanted: Vec<_> = table.columns.iter().map(|column| column.origin).collect();
    table.columns.sort_by_key(|column| match column.origin {
        Origin::Attribute(index) => index,
        Origin::System(_) => usize::MAX,
    });
    // A key may name a column twice.
    table.columns.dedup_by_key(|column| column.origin);
    let place = |origin| {
        table
            .columns
            .iter()
            .position(|column| column.origin == origin)
    };
    wanted.into_iter().filter_map(place).collect()
}

fn nulls(mut key: &[u8]) -> (usize, usize) {
    let (mut nulls, mut all) = (0, 0);
    while let Some(cell) = cells::take(&mut key) {
        all += 1;
        nulls += usize::from(cell.is_none());
    }
    (nulls, all)
}

/// Keys that more than one row has; each row but the first counts.
fn doubled(keys: SortedRecords, nulls_distinct: bool) -> io::Result<KeyCheck> {
    let mut looked = KeyCheck::default();
    let mut keys = keys.peekable();
    while let Some((key, rows)) = next_key(&mut keys)? {
        looked.keys += rows;
        let is_alone = rows == 1 || (nulls_distinct && nulls(&key).0 > 0);
        if !is_alone {
            looked.list(&key, rows - 1);
        }
    }
    Ok(looked)
}

/// Keys of the first that the second does not have; each row counts.
fn orphaned(own: SortedRecords, parents: SortedRecords, is_full: bool) -> io::Result<KeyCheck> {
    let mut looked = KeyCheck::default();
    let (mut own, mut parents) = (own.peekable(), parents.peekable());
    let mut parent = next_key(&mut parents)?;
    while let Some((key, rows)) = next_key(&mut own)? {
        looked.keys += rows;
        match nulls(&key) {
            (0, _) => {}
            (some, all) if is_full && some < all => {
                looked.list(&key, rows);
                continue;
            }
            _ => continue,
        }
        while parent.as_ref().is_some_and(|(parent, _)| *parent < key) {
            parent = next_key(&mut parents)?;
        }
        if parent.as_ref().is_none_or(|(parent, _)| *parent != key) {
            looked.without_row += 1;
            looked.list(&key, rows);
        }
    }
    Ok(looked)
}

/// The next key, and how many rows have it.
fn next_key(keys: &mut Peekable<SortedRecords>) -> io::Result<Option<(Vec<u8>, u64)>> {
    let Some(first) = keys.next() else {
        return Ok(None);
    };
    let (key, _) = first?;
    let mut rows = 1;
    while let Some(same) = keys.next_if(|next| match next {
        Ok((next, _)) => *next == key,
        Err(_) => true,
    }) {
        same?;
        rows += 1;
    }
    Ok(Some((key, rows)))
}

/// A key as a line of CSV.
fn shown(mut key: &[u8]) -> String {
    let mut line = Vec::new();
    let mut is_first = true;
    while let Some(cell) = cells::take(&mut key) {
        if !is_first {
            line.push(b',');
        }
        is_first = false;
        if let Some(text) = cell {
            csv_field(text, false, &mut line);
        }
    }
    String::from_utf8_lossy(&line).into_owned()
}

/// Pages that are read again are no progress.
struct Silent<'a>(&'a dyn Progress);

impl Progress for Silent<'_> {
    fn expect(&self, _bytes: u64) {}
    fn advance(&self, _bytes: u64) {}
    fn is_interrupted(&self) -> bool {
        self.0.is_interrupted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(keys: &[&[Option<&str>]]) -> SortedRecords {
        let folder = tempfile::tempdir().expect("a directory");
        let mut runs = SortedRuns::new(1 << 20, folder.path()).expect("a sorter");
        for key in keys {
            let mut bytes = Vec::new();
            for cell in *key {
                match cell {
                    Some(text) => cells::put(text.as_bytes(), &mut bytes),
                    None => cells::put_null(&mut bytes),
                }
            }
            runs.push(&bytes, &[]).expect("room");
        }
        runs.finish().expect("sorted")
    }

    #[test]
    fn rows_with_the_key_of_another_are_counted() {
        let keys: [&[Option<&str>]; 7] = [
            &[Some("b"), Some("1")],
            &[Some("a"), Some("1")],
            &[Some("b"), Some("1")],
            &[Some("b"), Some("1")],
            &[None, Some("1")],
            &[None, Some("1")],
            &[Some("a"), Some("2")],
        ];
        let looked = doubled(sorted(&keys), true).expect("read");
        assert_eq!((looked.keys, looked.broken), (7, 2));
        assert_eq!(looked.listed, ["b,1"]);
        let looked = doubled(sorted(&keys), false).expect("read");
        assert_eq!((looked.broken, looked.listed.len()), (3, 2));
    }

    #[test]
    fn keys_without_a_parent_are_counted() {
        let own: [&[Option<&str>]; 6] = [
            &[Some("a"), Some("1")],
            &[Some("c"), Some("1")],
            &[Some("c"), Some("1")],
            &[Some("z"), None],
            &[None, None],
            &[Some("b"), Some("1")],
        ];
        let parents: [&[Option<&str>]; 3] = [
            &[Some("b"), Some("1")],
            &[Some("a"), Some("1")],
            &[None, None],
        ];
        let looked = orphaned(sorted(&own), sorted(&parents), false).expect("read");
        assert_eq!((looked.keys, looked.broken), (6, 2));
        assert_eq!(looked.without_row, 1);
        assert_eq!(looked.listed, ["c,1"]);
        let looked = orphaned(sorted(&own), sorted(&parents), true).expect("read");
        assert_eq!(looked.broken, 3);
    }
}
