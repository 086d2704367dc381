//! Relations that the catalogs of a stream name, and whose files did not come with it: made or
//! dropped while the stream ran, or lost. The server that sends it knows which.

use std::sync::Arc;

use pgclinic_cluster::{
    Catalog, Cluster, OpenOptions, Persistence, Relation, StreamedFiles, fork_path,
};
use pgclinic_format::oid::PG_CLASS;
use pgclinic_format::{Fork, Oid};
use pgclinic_source::{Source, StreamedBackup};

use crate::stream::StreamCheck;

/// From this major on a dump may bring the number along from another server.
const RELPAGES_MAY_BE_IMPORTED: u16 = 18;

/// What did not come of a relation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Absent {
    /// Its file.
    File,
    /// Blocks that `relpages` counts.
    Blocks,
}

/// A relation of which something did not come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AbsentFile {
    /// What.
    pub absent: Absent,
    /// OID of its database; 0 for all of them.
    pub database: Oid,
    /// Name of its database.
    pub database_name: Option<String>,
    /// OID in `pg_class`.
    pub relation: Oid,
    /// Its schema and name.
    pub name: String,
    /// A base backup has no main fork of an unlogged relation: the file need not have come.
    pub is_unlogged: bool,
}

impl StreamCheck {
    /// What did not come, of a stream that came to its end.
    pub fn absent_files(
        &self,
        passed: &Arc<StreamedBackup>,
        adjust: impl FnOnce(OpenOptions) -> OpenOptions,
    ) -> Vec<AbsentFile> {
        if !self.is_whole {
            return Vec::new();
        }
        let opening = OpenOptions::of(Arc::clone(passed) as Arc<_>);
        let opening = opening.streamed(StreamedFiles::default());
        let Ok(cluster) = Cluster::open(adjust(opening)) else {
            return Vec::new();
        };
        let databases = cluster.databases.keys().copied();
        let catalogs = std::iter::once(0).chain(databases);
        let catalogs = catalogs.map(|database| cluster.catalog_names(database));
        catalogs
            .flat_map(|catalog| absent_of(&cluster, passed, &catalog))
            .collect()
    }
}

fn absent_of(cluster: &Cluster, passed: &StreamedBackup, catalog: &Catalog) -> Vec<AbsentFile> {
    let lost = |oid: Oid| {
        catalog
            .lost_relations
            .iter()
            .any(|lost| lost.oid == Some(oid))
    };
    let relations = catalog.relations.values().filter(|relation| {
        relation.kind.has_storage()
            && relation.filenode != 0
            && relation.persistence != Persistence::Temporary
            && relation.unknown_storage().is_none()
            && !lost(relation.oid)
    });
    let absent = relations.filter_map(|relation| {
        let absent = absent_part(cluster, passed, catalog, relation)?;
        Some((relation, absent))
    });
    absent
        .map(|(relation, absent)| AbsentFile {
            absent,
            database: catalog.database,
            database_name: catalog.database_name.clone(),
            relation: relation.oid,
            name: relation.qualified_name(),
            is_unlogged: relation.persistence == Persistence::Unlogged,
        })
        .collect()
}

fn absent_part(
    cluster: &Cluster,
    passed: &StreamedBackup,
    catalog: &Catalog,
    relation: &Relation,
) -> Option<Absent> {
    let mut homes = cluster.homes.iter();
    let home = homes
        .find(|home| home.tablespace == relation.tablespace && home.database == catalog.database);
    let segments = (0..).map_while(|segment| {
        let path = fork_path(&home?.folder, relation.filenode, Fork::Main, segment);
        passed.len(&path).ok()
    });
    let (mut bytes, mut has_come) = (0u64, false);
    for len in segments {
        (bytes, has_come) = (bytes.saturating_add(len), true);
    }
    if !has_come {
        return Some(Absent::File);
    }
    let counted = u64::try_from(relation.relpages).unwrap_or(0);
    let is_told = cluster.layout.major < RELPAGES_MAY_BE_IMPORTED
        && relation.persistence == Persistence::Permanent
        && relation.oid != PG_CLASS;
    let is_short = counted.saturating_mul(u64::from(cluster.build.block_size)) > bytes;
    (is_told && is_short).then_some(Absent::Blocks)
}
