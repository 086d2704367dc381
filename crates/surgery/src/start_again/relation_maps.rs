//! `pg_filenode.map`: which file holds which mapped catalog. A catalog keeps the number that it was
//! born with until VACUUM FULL, CLUSTER or REINDEX writes it anew under another one, and then the
//! file of its first number goes.
//!
//! Truth: `src/backend/utils/cache/relmapper.c`.

use std::collections::BTreeMap;

use pgclinic_cluster::{Cluster, DatabaseDirectory};
use pgclinic_format::build::put_u32;
use pgclinic_format::relation_map::{MAGIC, seal};
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{Oid, RelationMap};
use pgclinic_model::plan::Safety;
use pgclinic_source::EntryKind;

use super::databases::is_first_home;
use super::{Draft, write};

pub(super) const NAME: &str = "relation-map-from-files";

/// One for each map that cannot be read, as far as files tell what stood in it.
pub(super) fn drafts(cluster: &Cluster) -> Vec<Draft> {
    let homes = cluster
        .homes
        .iter()
        .filter(|home| is_first_home(cluster, home));
    homes.filter_map(|home| draft(cluster, home)).collect()
}

fn right_map(cluster: &Cluster, home: &DatabaseDirectory) -> Option<RelationMap> {
    let map = cluster.relation_map(home).ok()?;
    map.is_right().then_some(map)
}

/// Which catalogs the map of a database has, the map of another one says. Of those that all
/// databases share nothing says that one is missing.
fn safety_of(home: &DatabaseDirectory) -> Safety {
    match home.database {
        0 => Safety::Lossy,
        _ => Safety::Exact,
    }
}

fn draft(cluster: &Cluster, home: &DatabaseDirectory) -> Option<Draft> {
    if right_map(cluster, home).is_some() {
        return None;
    }
    let (oids, why) = if home.database == 0 {
        shared_catalogs(cluster, home)?
    } else {
        own_catalogs(cluster, home)?
    };
    let bytes = map_of(cluster.layout.relation_map_bytes, &oids)?;
    let len = bytes.len() as u64;
    let path = format!("{}/pg_filenode.map", home.folder);
    let change = write(cluster, &path, bytes, len);
    let draft = Draft::new(
        NAME,
        safety_of(home),
        &path,
        "the map is written again: every mapped catalog in the file that has its own number",
    );
    let draft = draft.because(why).because(format!(
        "the files of all {} catalogs and indexes are there under the numbers that they were born with, which they lose when they are rewritten",
        oids.len()
    ));
    Some(draft.change(format!("{} mappings", oids.len()), change))
}

/// Relations with files in a directory, by number, with the bytes of their first segment.
fn files(cluster: &Cluster, directory: &str) -> BTreeMap<Oid, u64> {
    let source = cluster.source().as_ref();
    let entries = source.list(directory).unwrap_or_default().into_iter();
    let files = entries.filter(|entry| entry.kind == EntryKind::File);
    files
        .filter_map(|entry| {
            let number: Oid = entry.name.parse().ok()?;
            Some((number, source.len(&format!("{directory}/{number}")).ok()?))
        })
        .collect()
}

/// Everything in `global` is mapped. A file with a later number is a catalog that was written anew:
/// then nobody knows which.
fn shared_catalogs(cluster: &Cluster, home: &DatabaseDirectory) -> Option<(Vec<Oid>, String)> {
    let files = files(cluster, &home.folder);
    let is_rewritten = files.keys().any(|number| *number >= FIRST_NORMAL_OID);
    if files.is_empty() || is_rewritten {
        return None;
    }
    let why = "every relation in global is mapped, and none has a later number";
    Some((files.keys().copied().collect(), why.into()))
}

/// The catalogs that the map of another database has.
fn own_catalogs(cluster: &Cluster, home: &DatabaseDirectory) -> Option<(Vec<Oid>, String)> {
    let others = cluster.homes.iter();
    let mut others = others.filter(|other| other.database != 0 && other.database != home.database);
    let (other, map) = others.find_map(|other| Some((other, right_map(cluster, other)?)))?;
    let (own, elsewhere) = (files(cluster, &home.folder), files(cluster, &other.folder));
    let oids: Vec<Oid> = map.mappings.iter().map(|(oid, _)| *oid).collect();
    // An index and a catalog with rows have bytes; where both are empty it is a TOAST relation.
    let is_born = |oid: &Oid| match (own.get(oid), elsewhere.get(oid)) {
        (Some(0), Some(0)) => true,
        (Some(bytes), _) => *bytes > 0,
        (None, _) => false,
    };
    let why = format!("the map in {} names the mapped catalogs", other.folder);
    oids.iter().all(is_born).then_some((oids, why))
}

fn map_of(len: usize, oids: &[Oid]) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    put_u32(&mut bytes, 0, MAGIC);
    put_u32(&mut bytes, 4, u32::try_from(oids.len()).ok()?);
    for (index, oid) in oids.iter().enumerate() {
        let at = index.checked_mul(8)?.checked_add(8)?;
        put_u32(&mut bytes, at, *oid);
        put_u32(&mut bytes, at.checked_add(4)?, *oid);
    }
    let map = seal(&mut bytes)
        .then(|| RelationMap::parse(&bytes).ok())
        .flatten();
    map.is_some_and(|map| map.is_right()).then_some(bytes)
}
