//! Directories that an interrupted `CREATE DATABASE` left behind: a part of a copy of another
//! database, which no transaction has made a database. A server never opens them.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{BlockNo, Fork, Oid, Page};

use crate::catalog::Catalog;
use crate::cluster::Cluster;
use crate::database::LostDatabase;
use crate::files::{ForkFiles, read_block};
use crate::state::{DatabasesOfServer, State};

/// Where a page goes on behind LSN and checksum.
const CONTENT_AT: usize = 10;

/// A relation of a user by which a copy is known: number, schema and name.
type UserRelation = (Oid, String, String);

impl Cluster {
    /// Directories in which nothing can be lost: `pg_database` was read whole and neither it, nor
    /// its indexes, nor WAL names them, and all that they hold stands in another database too, from
    /// which it was being copied. One that holds more was a database with a row.
    pub fn leftover_databases(&self) -> &BTreeSet<Oid> {
        self.leftovers.get_or_init(|| self.find_leftovers())
    }

    /// Databases that the server made or dropped while it sent its files: what passed of them is of
    /// no moment, and nobody misses the rest.
    pub(crate) fn made_or_dropped(&self) -> BTreeSet<Oid> {
        let asked = self.databases_of_server();
        let all = self.databases.keys().copied();
        all.filter(|oid| asked.is_some_and(|asked| asked.made_or_dropped(*oid)))
            .collect()
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
        let (own, files) = (
            user_relations(&self.catalog_names(oid)),
            self.main_forks(oid),
        );
        // Pages that passed by once cannot be compared any more.
        let is_streamed = matches!(self.state(), State::Streamed(_));
        if is_streamed && files.keys().any(|file| *file >= FIRST_NORMAL_OID) {
            return false;
        }
        let mut templates = self.databases.values().filter(|other| other.name.is_some());
        templates.any(|template| {
            let originals = self.main_forks(template.oid);
            let is_copy = |(file, copied): (&Oid, &ForkFiles)| {
                let original = originals.get(file);
                original.is_some_and(|original| is_streamed || self.adds_nothing(copied, original))
            };
            (own.is_empty() || own.is_subset(&user_relations(&self.catalog_names(template.oid))))
                && files.iter().all(is_copy)
        })
    }

    /// No page of the copy was changed since it was copied: it is as the original's, or older, or
    /// not yet written. A database that somebody worked in has others.
    fn adds_nothing(&self, copied: &ForkFiles, original: &ForkFiles) -> bool {
        let read = |files, block| read_block(self.source.as_ref(), files, self.build, block);
        let blocks = copied.bytes() / u64::from(self.build.block_size.max(1));
        let Ok(blocks) = BlockNo::try_from(blocks) else {
            return false;
        };
        (0..blocks).all(|block| {
            let Some(own) = read(copied, block) else {
                return false;
            };
            if own.iter().all(|byte| *byte == 0) {
                return true;
            }
            let other = read(original, block);
            other.is_some_and(|other| is_as_old(&own, &other))
        })
    }

    /// By number, which a copy keeps.
    fn main_forks(&self, database: Oid) -> BTreeMap<Oid, ForkFiles> {
        let homes = self.homes.iter().filter(|home| home.database == database);
        let files = homes.flat_map(|home| self.files(home).unwrap_or_default());
        let main = files.filter(|own| own.temporary.is_none() && own.fork == Fork::Main);
        main.map(|files| (files.filenode, files)).collect()
    }
}

/// Copying through the buffers gives a page another LSN, and with it another checksum, alone.
fn is_as_old(own: &[u8], other: &[u8]) -> bool {
    let lsn = |page| Page::parse(page).map(|page| page.pd_lsn());
    own.get(CONTENT_AT..) == other.get(CONTENT_AT..) || lsn(own) < lsn(other)
}

fn user_relations(catalog: &Catalog) -> BTreeSet<UserRelation> {
    let relations = catalog.relations.values();
    let own = relations.filter(|relation| relation.oid >= FIRST_NORMAL_OID);
    let named = own.map(|own| (own.oid, own.schema.clone(), own.name.clone()));
    named.collect()
}
