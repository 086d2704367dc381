//! A catalog without which nothing has a name has no pages, or nothing but pages of zeros.

use pgclinic_cluster::inventory::default_home;
use pgclinic_cluster::{Cluster, Comparison, Database, DatabaseContext, ForkFiles, read_block};
use pgclinic_format::{BlockNo, Fork, Oid, Page, RelationMap, oid};
use pgclinic_model::document::{FileKind, Level, Place};
use pgclinic_model::{Rule, plural};

use crate::check::DatabaseCheck;
use crate::findings::{Draft, Findings};

/// Catalogs that are never empty, of a database and of the cluster.
const NEVER_EMPTY: &[(Oid, &str)] = &[
    (oid::PG_TYPE, "pg_type"),
    (oid::PG_ATTRIBUTE, "pg_attribute"),
    (oid::PG_PROC, "pg_proc"),
    (oid::PG_CLASS, "pg_class"),
    (oid::PG_INDEX, "pg_index"),
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
        let mut mappings = map.map(|map| map.mappings).unwrap_or_default();
        // No map has it: pg_class names its file.
        let pg_index = database.catalog.relations.get(&oid::PG_INDEX);
        mappings.extend(pg_index.map(|own| (own.oid, own.filenode)));
        for (catalog, name) in NEVER_EMPTY {
            let Some((_, filenode)) = mappings.iter().find(|(mapped, _)| mapped == catalog) else {
                continue;
            };
            let own = |files: &&ForkFiles| {
                files.home == *home
                    && files.filenode == *filenode
                    && files.fork == Fork::Main
                    && files.temporary.is_none()
            };
            let build = cluster.build;
            let files = database.forks.iter().find(own);
            // A name without a regular file is told with what was not checked.
            let Some(files) = files.filter(|files| !files.segments.is_empty()) else {
                continue;
            };
            let blocks = files.blocks(build.block_size, build.segment_bytes);
            let message = if blocks == 0 {
                format!("the file of catalog {name} has no pages")
            } else if is_zeroed(cluster, files, blocks) {
                let pages = plural(blocks, "page");
                format!("the file of catalog {name} has nothing but zeros: {pages}")
            } else {
                continue;
            };
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
            out.add(Draft::new(&EMPTY_CATALOG, message).place(place));
        }
    }
}

/// Its first page has rows in every database, so that mostly one page is read. What WAL has yet to
/// bring may be all of them.
fn is_zeroed(cluster: &Cluster, files: &ForkFiles, blocks: u64) -> bool {
    let source = cluster.source().as_ref();
    let is_zeroed = |block: u64| {
        let block = BlockNo::try_from(block).ok();
        let page = block.and_then(|block| read_block(source, files, cluster.build, block));
        page.is_some_and(|page| Page::parse(&page).is_some_and(Page::is_zeroed))
    };
    !cluster.needs_recovery() && !cluster.is_running() && (0..blocks).all(is_zeroed)
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
