//! Blocks that a running server refuses, read from its files by our own reader.

use std::sync::{Arc, OnceLock};

use pgclinic_cluster::{Catalog, Cluster};
use pgclinic_diagnose::Progress;
use pgclinic_format::{BlockNo, Oid};
use pgclinic_servers::{ConnectOptions, Session, Target};

use super::server_source::ServerSource;
use super::tables::LiveTable;
use crate::salvage::{SalvageOptions, TableAccount, blocks_of_table};

/// The files of the server, opened when the first page is refused.
pub(super) struct Files<'a> {
    target: &'a Target,
    options: &'a ConnectOptions,
    opened: OnceLock<Result<(Cluster, Catalog), String>>,
}

impl<'a> Files<'a> {
    pub(super) fn new(target: &'a Target, options: &'a ConnectOptions) -> Self {
        Files {
            target,
            options,
            opened: OnceLock::new(),
        }
    }

    /// The rows of these blocks as text, and what became of them.
    pub(super) fn rows(
        &self,
        table: &LiveTable,
        blocks: &[BlockNo],
        options: &SalvageOptions,
        progress: &dyn Progress,
    ) -> Result<(Vec<u8>, TableAccount), String> {
        let opened = self.opened.get_or_init(|| self.open());
        let (cluster, catalog) = opened.as_ref().map_err(String::clone)?;
        let relation = catalog.relations.get(&table.oid);
        let relation = relation.ok_or("the catalogs on disk do not know the table")?;
        blocks_of_table(cluster, catalog, relation, blocks, options, progress)
    }

    fn open(&self) -> Result<(Cluster, Catalog), String> {
        let words = |error: &dyn std::fmt::Display| error.to_string();
        let mut session =
            Session::open(self.target, self.options).map_err(|error| words(&error))?;
        // What the server knows and its files do not is written now, where the role may ask for that.
        let _asked = session.execute("CHECKPOINT");
        let oid =
            "SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()";
        let oid = session.query_value(oid).map_err(|error| words(&error))?;
        let oid: Oid = oid
            .and_then(|oid| oid.parse().ok())
            .ok_or("the database has no number")?;
        let source = Arc::new(ServerSource::new(session));
        let cluster = Cluster::open(source).map_err(|error| words(&error))?;
        let catalog = cluster.catalog(oid);
        Ok((cluster, catalog))
    }
}
