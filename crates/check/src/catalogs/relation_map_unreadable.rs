//! A `pg_filenode.map` that is missing or has the wrong length.
//!
//! Truth: `src/backend/utils/cache/relmapper.c`.

use pgclinic_cluster::inventory::default_home;
use pgclinic_cluster::{Cluster, DatabaseDirectory};
use pgclinic_format::RelationMap;
use pgclinic_format::relation_map::RelationMapFault;
use pgclinic_model::Rule;
use pgclinic_model::document::{FileKind, Level, Place};
use pgclinic_source::read_all;

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static RELATION_MAP_UNREADABLE: Rule =
    Rule::from_page(include_str!("../../rules/relation-map-unreadable.md"));

/// See [`RELATION_MAP_UNREADABLE`].
pub struct RelationMapUnreadable;

impl ClusterCheck for RelationMapUnreadable {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&RELATION_MAP_UNREADABLE] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        for home in homes_with_maps(cluster) {
            if let Some(draft) = unreadable(cluster, home) {
                out.add(draft.place(map_place(cluster, home)));
            }
        }
    }
}

/// `global` and the folder of every database that has one and is not half dropped.
pub(crate) fn homes_with_maps(cluster: &Cluster) -> impl Iterator<Item = &DatabaseDirectory> {
    let alive = cluster
        .databases
        .values()
        .filter(|database| database.name.is_some() && !database.invalid);
    let oids = std::iter::once(0).chain(alive.map(|database| database.oid));
    oids.filter_map(|oid| default_home(cluster, oid))
}

pub(crate) fn map_place(cluster: &Cluster, home: &DatabaseDirectory) -> Place {
    Place {
        path: map_path(home),
        database: cluster
            .databases
            .get(&home.database)
            .and_then(|database| database.name.clone()),
        database_oid: Some(home.database),
        kind: FileKind::RelationMap,
        ..Place::default()
    }
}

fn map_path(home: &DatabaseDirectory) -> String {
    format!("{}/pg_filenode.map", home.folder)
}

/// The map in this folder, if it has the length of one.
pub(crate) fn readable_map(cluster: &Cluster, home: &DatabaseDirectory) -> Option<RelationMap> {
    let bytes = read_all(cluster.source().as_ref(), &map_path(home), 4096).ok()?;
    RelationMap::parse(&bytes).ok()
}

fn unreadable(cluster: &Cluster, home: &DatabaseDirectory) -> Option<Draft> {
    let path = map_path(home);
    let expected = cluster.layout.relation_map_bytes;
    let bytes = match read_all(cluster.source().as_ref(), &path, 4096) {
        Ok(bytes) => bytes,
        // What is there and out of reach is told with what was not checked.
        Err(error) if error.is_out_of_reach() => return None,
        Err(error) => {
            let draft = Draft::new(&RELATION_MAP_UNREADABLE, error.to_string());
            let words =
                format!("FATAL:  could not open file \"{path}\": No such file or directory");
            let is_there = |name: &str| {
                let entries = cluster.source().list(&home.folder).unwrap_or_default();
                entries
                    .iter()
                    .any(|entry| name.is_empty() || entry.name == name)
            };
            // A folder without anything is told by `missing-database-directory`.
            is_there("").then_some(())?;
            // A database's folder is looked at for its version first.
            let said = error.is_absent() && (home.database == 0 || is_there("PG_VERSION"));
            return Some(if said {
                draft.server_says(words)
            } else {
                draft
            });
        }
    };
    (bytes.len() != expected).then_some(())?;
    let message = match RelationMap::parse(&bytes) {
        Err(fault @ RelationMapFault { .. }) => fault.to_string(),
        Ok(_) => format!(
            "a relation map of {} bytes is not of PostgreSQL {}",
            bytes.len(),
            cluster.layout.major
        ),
    };
    let draft = Draft::new(&RELATION_MAP_UNREADABLE, message).fact("bytes", bytes.len());
    let words = format!(
        "FATAL:  could not read file \"{path}\": read {} of {expected}",
        bytes.len()
    );
    Some(if bytes.len() < expected {
        draft.server_says(words)
    } else {
        draft
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_trial::{ClusterTrial, sound_map};

    #[test]
    fn a_map_is_there_and_has_its_length() {
        let said = |map: Option<Vec<u8>>| {
            let draft = ClusterTrial::with_shared_map(map)
                .drafts(&RelationMapUnreadable)
                .pop();
            draft.map(|draft| draft.server_says.unwrap_or_default())
        };
        assert_eq!(said(Some(sound_map())), None);
        let missing =
            "FATAL:  could not open file \"global/pg_filenode.map\": No such file or directory";
        assert_eq!(said(None).as_deref(), Some(missing));
        let cut = "FATAL:  could not read file \"global/pg_filenode.map\": read 100 of 524";
        assert_eq!(
            said(Some(sound_map()[..100].to_vec())).as_deref(),
            Some(cut)
        );
        assert_eq!(
            said(Some(vec![0; 600])).as_deref(),
            Some(""),
            "the server does not see the rest"
        );
    }
}
