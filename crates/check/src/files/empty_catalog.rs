//! A catalog without which nothing has a name has no pages.

use pgclinic_cluster::inventory::default_home;
use pgclinic_cluster::{Cluster, Comparison, Database, DatabaseContext};
use pgclinic_format::{Fork, Oid, RelationMap, oid};
use pgclinic_model::Rule;
use pgclinic_model::document::{FileKind, Level, Place};

use crate::check::DatabaseCheck;
use crate::findings::{Draft, Findings};

/// Mapped catalogs that are never empty, of a database and of the cluster.
const NEVER_EMPTY: &[(Oid, &str)] = &[
    (oid::PG_TYPE, "pg_type"),
    (oid::PG_ATTRIBUTE, "pg_attribute"),
    (oid::PG_PROC, "pg_proc"),
    (oid::PG_CLASS, "pg_class"),
    (oid::PG_TABLESPACE, "pg_tablespace"),
    (oid::PG_AUTHID, "pg_authid"),
    (oid::PG_DATABASE, "pg_database"),
];

/// The rule.
pub static EMPTY_CATALOG: Rule = Rule::from_page(include_str!("../../rules/empty-catalog.md"));

/// See [`EMPTY_CATALOG`].
pub struct EmptyCatalog;

impl DatabaseCheck for EmptyCatalog {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&EMPTY_CATALOG] }
    }

    fn level(&self) -> Level {
        Level::Pages
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
        let (cluster, oid) = (database.cluster, database.catalog.database);
        if !cluster.may_compare(Comparison::FilesWithCatalogs)
            || !(oid == 0 || lives(cluster.databases.get(&oid), cluster))
        {
            return;
        }
        let Some(home) = default_home(cluster, oid) else {
            return;
        };
        let map = cluster
            .relation_map(home)
            .ok()
            .filter(RelationMap::is_right);
        let mappings = map.map(|map| map.mappings).unwrap_or_default();
        for (catalog, name) in NEVER_EMPTY {
            let Some((_, filenode)) = mappings.iter().find(|(mapped, _)| mapped == catalog) else {
                continue;
            };
            let own = |files: &&pgclinic_cluster::ForkFiles| {
                files.home == *home
                    && files.filenode == *filenode
                    && files.fork == Fork::Main
                    && files.temporary.is_none()
            };
            let build = cluster.build;
            let files = database.forks.iter().find(own);
            // A name without a regular file is told with what was not checked.
            let is_filled = |files: &pgclinic_cluster::ForkFiles| {
                files.segments.is_empty() || files.blocks(build.block_size, build.segment_bytes) > 0
            };
            if files.is_none_or(is_filled) {
                continue;
            }
            let place = Place {
                path: format!("{}/{filenode}", home.folder),
                database: database.catalog.database_name.clone(),
                schema: Some("pg_catalog".into()),
                relation: Some((*name).into()),
                database_oid: Some(oid),
                relation_oid: Some(*catalog),
                filenode: Some(*filenode),
                kind: FileKind::Table,
                fork: Some(Fork::Main),
                ..Place::default()
            };
            let message = format!("the file of catalog {name} has no pages");
            out.add(Draft::new(&EMPTY_CATALOG, message).place(place));
        }
    }
}

/// Folders that only a crash or an interrupted `DROP DATABASE` left behind may hold empty files.
/// With `pg_database` itself lost, no name is known and every folder counts.
fn lives(known: Option<&Database>, cluster: &Cluster) -> bool {
    let nameless = cluster
        .databases
        .values()
        .all(|database| database.name.is_none());
    known.is_some_and(|database| !database.invalid && (database.name.is_some() || nameless))
}
