//! Directories that an interrupted `CREATE DATABASE` left behind: a part of a copy of another
//! database, which no transaction has made a database. A server never opens them.

use std::collections::BTreeSet;

use pgclinic_format::Oid;
use pgclinic_format::types::FIRST_NORMAL_OID;

use crate::catalog::Catalog;
use crate::cluster::Cluster;
use crate::database::LostDatabase;
use crate::state::{DatabasesOfServer, State};

/// A relation of a user by which a copy is known: number, schema and name.
type UserRelation = (Oid, String, String);

impl Cluster {
    /// Directories in which nothing can be lost: `pg_database` was read whole and neither it, nor
    /// its indexes, nor WAL names them, and all that they hold of users stands in another database
    /// too, from which it was being copied. One that holds more was a database with a row.
    pub fn leftover_databases(&self) -> &BTreeSet<Oid> {
        self.leftovers.get_or_init(|| self.find_leftovers())
    }

    /// Databases that the server made or dropped while it sent its files: what passed of them is of
    /// no moment, and nobody misses the rest.
    pub(crate) fn made_or_dropped(&self) -> BTreeSet<Oid> {
        let asked = self.databases_of_server();
        asked.map_or_else(BTreeSet::new, |asked| asked.made_or_dropped.clone())
    }

    fn databases_of_server(&self) -> Option<&DatabasesOfServer> {
        match self.state() {
            State::Streamed(files) => files.databases.as_ref(),
            _ => None,
        }
    }

    fn find_leftovers(&self) -> BTreeSet<Oid> {
        // What a server named since its last checkpoint stands in WAL only.
        let may_be_old = self.is_running() || self.needs_recovery();
        let is_told = self.recovered().is_some() || self.databases_of_server().is_some();
        let is_old = may_be_old && !is_told;
        if !self.database_rows_are_whole || self.is_partial() || is_old {
            return BTreeSet::new();
        }
        let logged = self.homes_lost_by_wal();
        let is_lost = |oid: Oid| {
            let by_index = |lost: &LostDatabase| lost.oid == oid;
            self.lost_databases.iter().any(by_index)
                || logged.iter().any(|home| home.database == oid)
        };
        let nameless = self.databases.values().filter(|own| own.name.is_none());
        let nameless = nameless.map(|own| own.oid).filter(|oid| !is_lost(*oid));
        nameless
            .filter(|oid| self.is_part_of_a_copy(*oid))
            .collect()
    }

    fn is_part_of_a_copy(&self, oid: Oid) -> bool {
        let own = self.catalog_names(oid);
        let (relations, files) = (user_relations(&own), self.user_files(oid));
        let mut templates = self.databases.values().filter(|other| other.name.is_some());
        templates.any(|template| {
            // Only files and names together tell whose copy it is, and most have neither.
            files.is_subset(&self.user_files(template.oid))
                && (relations.is_empty()
                    || relations.is_subset(&user_relations(&self.catalog_names(template.oid))))
        })
    }

    /// Numbers of files that no cluster is made with.
    fn user_files(&self, database: Oid) -> BTreeSet<Oid> {
        let homes = self.homes.iter().filter(|home| home.database == database);
        let files = homes.flat_map(|home| self.files(home).unwrap_or_default());
        let permanent = files.filter(|files| files.temporary.is_none());
        let numbers = permanent.map(|files| files.filenode);
        numbers.filter(|file| *file >= FIRST_NORMAL_OID).collect()
    }
}

fn user_relations(catalog: &Catalog) -> BTreeSet<UserRelation> {
    let relations = catalog.relations.values();
    let own = relations.filter(|relation| relation.oid >= FIRST_NORMAL_OID);
    let named = own.map(|own| (own.oid, own.schema.clone(), own.name.clone()));
    named.collect()
}
