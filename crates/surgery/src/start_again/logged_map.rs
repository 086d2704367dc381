//! A relation map that WAL still holds: the record that wrote it has all of its bytes.

use pgclinic_cluster::wal::{LoggedMaps, StartKind};
use pgclinic_cluster::{Cluster, DatabaseDirectory};
use pgclinic_format::{Oid, RelationMap};

use super::relation_maps::{Map, files};

/// The map of a directory; nothing where WAL has none, or one that the files contradict.
pub(super) fn logged(
    cluster: &Cluster,
    home: &DatabaseDirectory,
    maps: Option<&LoggedMaps>,
) -> Option<Map> {
    let maps = maps?;
    let logged = maps.of(home.database)?;
    let map = RelationMap::parse(&logged.bytes).ok()?;
    if !map.is_right() || !has_its_files(cluster, home, &map, maps.kind) {
        return None;
    }
    let end = match maps.kind {
        StartKind::Settled | StartKind::Crash => {
            format!(
                "no record after it, up to the end of WAL at {}, writes another",
                maps.end
            )
        }
        StartKind::Backup | StartKind::Archive => format!(
            "no record after it writes another before recovery begins at {}, and recovery writes all later ones itself",
            maps.redo
        ),
    };
    let whole = format!("the record of WAL at {} holds the whole map", logged.at);
    Some(Map {
        bytes: logged.bytes.clone(),
        why: vec![whole, end],
        nobodys: Vec::new(),
    })
}

/// After a shutdown nothing makes a file any more.
fn has_its_files(
    cluster: &Cluster,
    home: &DatabaseDirectory,
    map: &RelationMap,
    kind: StartKind,
) -> bool {
    if kind != StartKind::Settled {
        return true;
    }
    let files = files(cluster, &home.folder);
    let is_there = |(_, number): &(Oid, Oid)| files.contains_key(number);
    map.mappings.iter().all(is_there)
}
