//! A relation map that WAL still holds: the record that wrote it has all of its bytes.

use pgclinic_cluster::wal::{LoggedMaps, StartKind};
use pgclinic_cluster::{Cluster, DatabaseDirectory};
use pgclinic_format::oid::{PG_ATTRIBUTE, PG_CLASS, PG_PROC, PG_TYPE};
use pgclinic_format::{Oid, RelationMap};

use super::relation_maps::{Map, Mapped, NEVER_EMPTY, files};

/// Catalogs of a database's map that have rows, for when no other map says which it holds.
const OF_EVERY_DATABASE: [Oid; 4] = [PG_CLASS, PG_ATTRIBUTE, PG_PROC, PG_TYPE];

/// The map of a directory; nothing where WAL has none, or one that the files contradict: WAL may
/// break off before the last one.
pub(super) fn logged(
    cluster: &Cluster,
    home: &DatabaseDirectory,
    maps: Option<&LoggedMaps>,
    mapped: Option<&[Mapped]>,
) -> Option<Map> {
    let maps = maps?;
    let logged = maps.of(home.database)?;
    let map = RelationMap::parse(&logged.bytes).ok()?;
    if !map.is_right() || !has_its_files(cluster, home, &map, (maps.kind, mapped)) {
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

/// A catalog that is written anew has a file with all of its pages before its map is in WAL, and
/// the file that it had before is emptied right after. Of a backup, files may be of before or
/// after.
///
/// Truth: `finish_heap_swap` in `src/backend/commands/cluster.c`.
fn has_its_files(
    cluster: &Cluster,
    home: &DatabaseDirectory,
    map: &RelationMap,
    (kind, mapped): (StartKind, Option<&[Mapped]>),
) -> bool {
    if matches!(kind, StartKind::Backup | StartKind::Archive) {
        return true;
    }
    let files = files(cluster, &home.folder);
    let may_be_empty = |oid: Oid, number: Oid| match mapped {
        Some(mapped) => mapped.iter().any(|own| own.oid == oid && own.may_be_empty),
        None => oid == number && !OF_EVERY_DATABASE.contains(&oid) && !NEVER_EMPTY.contains(&oid),
    };
    map.mappings.iter().all(|(oid, number)| {
        let bytes = files.get(number);
        bytes.is_some_and(|bytes| *bytes > 0 || may_be_empty(*oid, *number))
    })
}
