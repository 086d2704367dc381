//! The files of a running server, read by our own reader: blocks that it refuses, and its catalogs.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pgclinic_cluster::{Catalog, Cluster};
use pgclinic_format::{BlockNo, Oid};
use pgclinic_model::Progress;
use pgclinic_model::document::TableAccount;
use pgclinic_servers::{ConnectOptions, ConnectionTarget, TextRow};
use pgclinic_source::Source;

use super::server_source::ServerSource;
use super::tables::LiveTable;
use super::{RESTART, careful_session};
use crate::salvage::{SalvageOptions, TakeRows, blocks_of_table};

/// The files of the server, opened when they are asked for first.
pub(super) struct Files<'a> {
    target: &'a ConnectionTarget,
    connect: &'a ConnectOptions,
    source: OnceLock<Result<Arc<ServerSource>, String>>,
    opened: OnceLock<Result<(Cluster, Catalog), String>>,
    /// Why the server did not write down first what its files do not know yet.
    stale: OnceLock<String>,
    /// Held by the one that has the memory for reading.
    turn: Mutex<()>,
}

impl<'a> Files<'a> {
    pub(super) fn new(target: &'a ConnectionTarget, connect: &'a ConnectOptions) -> Self {
        Files {
            target,
            connect,
            source: OnceLock::new(),
            opened: OnceLock::new(),
            stale: OnceLock::new(),
            turn: Mutex::new(()),
        }
    }

    /// Does something with the files and the catalogs in them; why they cannot be read, otherwise.
    pub(super) fn with<T>(&self, work: impl FnOnce(&Cluster, &Catalog) -> T) -> Result<T, String> {
        let opened = self.opened.get_or_init(|| self.open());
        let (cluster, catalog) = opened.as_ref().map_err(String::clone)?;
        Ok(work(cluster, catalog))
    }

    /// Why the files may be older than the server; nothing while they were not asked for.
    pub(super) fn stale(&self) -> Option<&str> {
        self.stale.get().map(String::as_str)
    }

    /// Gives the rows of these blocks in the form of the options, and says what became of them.
    pub(super) fn rows(
        &self,
        table: &LiveTable,
        blocks: &[BlockNo],
        options: &SalvageOptions,
        progress: &dyn Progress,
        take: TakeRows<'_>,
    ) -> Result<TableAccount, String> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.with(|cluster, catalog| {
            let relation = catalog.relations.get(&table.oid);
            let relation = relation.ok_or("the catalogs on disk do not know the table")?;
            blocks_of_table(cluster, catalog, relation, blocks, options, progress, take)
        })?
    }

    /// The files as they lie there: nobody is asked to write down first what they do not know.
    pub(super) fn as_they_are(&self) -> Result<(Cluster, Arc<ServerSource>), String> {
        let source = self.source()?;
        let cluster = Cluster::open(Arc::clone(&source) as Arc<dyn Source>);
        Ok((cluster.map_err(|error| error.to_string())?, source))
    }

    /// The number of the database that is salvaged.
    pub(super) fn database(source: &ServerSource) -> Result<Oid, String> {
        let oid =
            "SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()";
        let rows = source.query(oid).map_err(|error| error.to_string())?;
        let oid = rows.into_iter().flatten().flatten().next();
        let oid = oid.and_then(|oid| oid.parse().ok());
        oid.ok_or_else(|| "the database has no number".into())
    }

    /// What the server says now, and not at the moment of a snapshot.
    pub(super) fn ask(&self, sql: &str) -> Result<Vec<TextRow>, String> {
        let source = self.source()?;
        source.query(sql).map_err(|error| error.to_string())
    }

    /// Connects now. A session that begins while others hold locks on catalogs would wait for
    /// whoever waits for those (VACUUM FULL of `pg_class`), and the three for each other.
    pub(super) fn connect(&self) {
        // Why it failed is said to whoever asks for the files.
        let _source = self.source();
    }

    fn source(&self) -> Result<Arc<ServerSource>, String> {
        let source = self.source.get_or_init(|| {
            let session = careful_session(self.target, self.connect, RESTART, |_| Ok(()));
            let session = session.map_err(|error| error.to_string())?;
            let source = ServerSource::new(session, self.target, self.connect);
            Ok(Arc::new(source))
        });
        source.clone()
    }

    fn open(&self) -> Result<(Cluster, Catalog), String> {
        let source = self.source()?;
        // What the server knows and its files do not is written now, where the role may ask for
        // that.
        if let Err(error) = source.query("CHECKPOINT") {
            let _first = self.stale.set(error.to_string());
        }
        let database = Files::database(&source)?;
        let (cluster, _) = self.as_they_are()?;
        let catalog = cluster.catalog(database);
        Ok((cluster, catalog))
    }
}
