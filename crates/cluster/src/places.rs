//! Names of places, made from catalogs and files.

use pgclinic_model::document::{FileKind, Place};

use crate::{ForkFiles, RelKind, Relation};

/// The kind of a relation, for people and JSON.
pub fn kind_of(relation: Option<&Relation>) -> FileKind {
    match relation.map(|relation| relation.kind) {
        Some(RelKind::Table) => FileKind::Table,
        Some(RelKind::Index) => FileKind::Index,
        Some(RelKind::Toast) => FileKind::Toast,
        Some(RelKind::Sequence) => FileKind::Sequence,
        Some(RelKind::MaterializedView) => FileKind::MaterializedView,
        Some(RelKind::PartitionedTable | RelKind::WithoutStorage | RelKind::Unknown(_)) | None => {
            FileKind::Unknown
        }
    }
}

/// The place of one segment of a fork.
pub fn fork_place(
    database_name: Option<&str>,
    relation: Option<&Relation>,
    files: &ForkFiles,
    segment: u32,
) -> Place {
    Place {
        path: files.path(segment),
        database: database_name.map(str::to_owned),
        schema: relation.map(|relation| relation.schema.clone()),
        relation: relation.map(|relation| relation.name.clone()),
        database_oid: Some(files.home.database),
        relation_oid: relation.map(|relation| relation.oid),
        filenode: Some(files.filenode),
        kind: kind_of(relation),
        fork: Some(files.fork),
        ..Place::default()
    }
}

/// The place of a file that belongs to no relation.
pub fn file_place(path: impl Into<String>, kind: FileKind) -> Place {
    Place {
        path: path.into(),
        kind,
        ..Place::default()
    }
}
