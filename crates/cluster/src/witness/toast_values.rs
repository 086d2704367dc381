//! When live TOASTed values without a row prove lost rows.
//!
//! A transaction writes a value before the row that points to it, and whoever deletes the row
//! deletes the value: a live value has its row. Only CLUSTER and VACUUM FULL leave some behind, of
//! rows that were dead and still seen by somebody.

use pgclinic_format::{ColumnLayout, Oid};

use crate::cluster::Cluster;
use crate::relation::Relation;

/// Nobody kills more rows by hand, with pg_surgery or a lossy cure, and leaves their values.
pub const KILLED_BY_HAND_MAX: u64 = 10;
/// The database that initdb calls postgres, from 15 on: pg_upgrade keeps the number that it had.
const POSTGRES: Oid = 5;

/// So many rows have so many values, at least: a row has one in each column that may be TOASTed.
pub fn rows_with_values(values: u64, columns: &[ColumnLayout]) -> u64 {
    let varying = columns.iter().filter(|column| column.attlen == -1);
    values.div_ceil((varying.count() as u64).max(1))
}

impl Cluster {
    /// The file is the one with which the relation was created, so that nobody has copied rows into
    /// it. Before 15 pg_upgrade gave files their relations' numbers, whatever they had been.
    pub fn has_first_file(&self, relation: &Relation) -> bool {
        let first_database = self.databases.get(&POSTGRES);
        let is_of_initdb =
            first_database.is_some_and(|own| own.name.as_deref() == Some("postgres"));
        relation.filenode == relation.oid && is_of_initdb
    }
}
