//! Which tables of a folder are whole, so that a second run leaves them out: a file that is there
//! while the work is not done and its account not written.
//!
//! ```text
//! salvage.progress   the source and the options, then one line of JSON for each table that is whole
//! ```

use std::path::Path;

use pgclinic_cluster::Catalog;
use pgclinic_model::document::{PageNotes, TableAccount};
use serde::{Deserialize, Serialize};

use super::error::SalvageError;
use super::folder::{self, Folder};
use crate::shape::{Table, database_name};

const NAME: &str = "salvage.progress";

/// What stands in a line: the account, and what those need to know of its pages who look for lost
/// rows at the end.
#[derive(Serialize, Deserialize)]
pub(super) struct FinishedTable {
    account: TableAccount,
    pages: PageNotes,
    /// Its losses are counted.
    is_counted: bool,
}

impl FinishedTable {
    pub(super) fn of(account: &TableAccount) -> Self {
        FinishedTable {
            account: account.clone(),
            pages: account.pages.clone(),
            is_counted: account.is_counted,
        }
    }

    pub(super) fn into_account(self) -> TableAccount {
        TableAccount {
            pages: self.pages,
            is_counted: self.is_counted,
            ..self.account
        }
    }
}

/// The tables of a directory that an earlier run wrote whole.
pub(crate) struct FinishedTables<'a> {
    folder: &'a Folder,
    /// Those of an earlier run.
    before: Vec<TableAccount>,
}

impl<'a> FinishedTables<'a> {
    /// Begins, or goes on after a run with the same source and options.
    pub(crate) fn open(folder: &'a Folder, work: &str) -> Result<Self, SalvageError> {
        let mut found = FinishedTables {
            folder,
            before: Vec::new(),
        };
        let Some(text) = folder.read(NAME)? else {
            folder.append(NAME, &format!("{work}\n"))?;
            return Ok(found);
        };
        let mut lines = text.lines();
        if lines.next() != Some(work) {
            let why = "the directory holds an unfinished salvage of something else, or with other options: name a new directory";
            return Err(SalvageError::Unsuitable(why.into()));
        }
        // A line that was cut off is of a table that is done again.
        let entries = lines.filter_map(|line| serde_json::from_str::<FinishedTable>(line).ok());
        for account in entries.map(FinishedTable::into_account) {
            let is_there = |file: &String| folder.bytes_of(file) == Some(account.file_bytes);
            let suspects = account.suspect_file.as_ref();
            let has_suspects = suspects.is_none_or(|file| folder.bytes_of(file).is_some());
            if account.file.as_ref().is_some_and(is_there) && has_suspects {
                found.before.push(account);
            }
        }
        Ok(found)
    }

    /// A table is whole.
    pub(crate) fn add(&self, account: &TableAccount) -> Result<(), SalvageError> {
        let entry = FinishedTable::of(account);
        let line = serde_json::to_string(&entry).expect("plain data");
        self.folder.append(NAME, &format!("{line}\n"))
    }

    /// An earlier run finished this table.
    pub(crate) fn holds(&self, table: &Table) -> bool {
        let mut tables = self.before.iter();
        tables.any(|before| before.database == table.database && before.oid == table.oid)
    }

    /// What an earlier run finished of a database.
    pub(super) fn of_database(&self, catalog: &Catalog) -> Vec<TableAccount> {
        let mut tables = self.of_name(&database_name(catalog));
        for table in &mut tables {
            let relation = catalog.relations.get(&table.oid);
            table.filenode = relation.map_or(table.oid, |relation| relation.filenode);
        }
        tables
    }

    /// The same by the name of the database.
    pub(crate) fn of_name(&self, database: &str) -> Vec<TableAccount> {
        let tables = self
            .before
            .iter()
            .filter(|table| table.database == database);
        tables.cloned().collect()
    }
}

/// The work is done, and its account is written.
pub(super) fn end(root: &Path) -> Result<(), SalvageError> {
    folder::remove(&root.join(NAME))
}

/// A folder that such a file stands in can be gone on with.
pub(super) fn is_begun(folder: &Path) -> bool {
    folder.join(NAME).is_file()
}
