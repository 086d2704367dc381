//! The databases that a plan is about: catalogs and forks, each read once.

use std::collections::BTreeMap;

use pgclinic_cluster::{Catalog, Cluster, DatabaseContext, DatabaseDirectory, ForkFiles};
use pgclinic_format::Oid;

use crate::error::{Error, Result};

/// One database.
pub(super) struct OpenDatabase {
    catalog: Catalog,
    forks: Vec<ForkFiles>,
}

/// Databases by OID; 0 is the shared relations.
pub(super) struct Databases<'a> {
    cluster: &'a Cluster,
    open: BTreeMap<Oid, OpenDatabase>,
}

impl<'a> Databases<'a> {
    /// None yet.
    pub(super) fn new(cluster: &'a Cluster) -> Self {
        Databases {
            cluster,
            open: BTreeMap::new(),
        }
    }

    /// Reads one, unless that was done before.
    pub(super) fn open(&mut self, database: Oid) -> Result<()> {
        if self.open.contains_key(&database) {
            return Ok(());
        }
        let mut forks = Vec::new();
        for home in self
            .cluster
            .homes
            .iter()
            .filter(|own| own.database == database)
        {
            let own = self.cluster.files(home);
            forks.extend(own.map_err(|gap| Error::Cure {
                place: gap.what,
                why: gap.why,
            })?);
        }
        let catalog = self.cluster.catalog(database);
        self.open.insert(database, OpenDatabase { catalog, forks });
        Ok(())
    }

    /// One that was read.
    pub(super) fn get(&self, database: Oid) -> DatabaseContext<'_> {
        let open = self.open.get(&database);
        let open = open.expect("a database is opened before it is asked for");
        DatabaseContext {
            cluster: self.cluster,
            catalog: &open.catalog,
            forks: &open.forks,
        }
    }

    /// The directory with this path.
    pub(super) fn directory(&self, folder: &str) -> Option<&'a DatabaseDirectory> {
        let mut homes = self.cluster.homes.iter();
        homes.find(|home| home.folder == folder)
    }
}
