//! A `pg_filenode.map` with a right checksum that says nonsense.

use std::collections::BTreeSet;

use pgclinic_cluster::{Cluster, Comparison, DatabaseDirectory, fork_path};
use pgclinic_format::relation_map::MAGIC;
use pgclinic_format::{Fork, Oid, RelationMap, oid};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;
use pgclinic_source::SourceErrorKind;

use crate::catalogs::relation_map_unreadable::{homes_with_maps, map_place, readable_map};
use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// Mapped in every database of 13 to 18: the four nailed catalogs and their indexes.
const NEEDED_IN_DATABASE: &[Oid] = &[
    oid::PG_TYPE,
    oid::PG_ATTRIBUTE,
    oid::PG_PROC,
    oid::PG_CLASS,
    oid::PG_ATTRIBUTE_RELID_ATTNAM_INDEX,
    oid::PG_ATTRIBUTE_RELID_ATTNUM_INDEX,
    oid::PG_CLASS_OID_INDEX,
    oid::PG_CLASS_RELNAME_NSP_INDEX,
    oid::PG_PROC_OID_INDEX,
    oid::PG_PROC_PRONAME_ARGS_NSP_INDEX,
    oid::PG_TYPE_OID_INDEX,
    oid::PG_TYPE_TYPNAME_NSP_INDEX,
];
/// Mapped in `global` of 13 to 18: tables and the indexes that a login needs.
pub(crate) const NEEDED_IN_GLOBAL: &[Oid] = &[
    oid::PG_TABLESPACE,
    oid::PG_SHDEPEND,
    oid::PG_AUTHID,
    oid::PG_AUTH_MEMBERS,
    oid::PG_DATABASE,
    oid::PG_SHDESCRIPTION,
    oid::PG_DATABASE_DATNAME_INDEX,
    oid::PG_DATABASE_OID_INDEX,
    oid::PG_AUTHID_ROLNAME_INDEX,
    oid::PG_AUTHID_OID_INDEX,
    oid::PG_AUTH_MEMBERS_ROLE_MEMBER_INDEX,
    oid::PG_AUTH_MEMBERS_MEMBER_ROLE_INDEX,
    oid::PG_TABLESPACE_OID_INDEX,
    oid::PG_TABLESPACE_SPCNAME_INDEX,
    oid::PG_DB_ROLE_SETTING,
    oid::PG_SHSECLABEL,
    oid::PG_REPLICATION_ORIGIN,
    oid::PG_SUBSCRIPTION,
];

/// The rule.
pub static RELATION_MAP_INCONSISTENT: Rule =
    Rule::from_page(include_str!("../../rules/relation-map-inconsistent.md"));

/// See [`RELATION_MAP_INCONSISTENT`].
pub struct RelationMapInconsistent;

impl ClusterCheck for RelationMapInconsistent {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&RELATION_MAP_INCONSISTENT] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        for home in homes_with_maps(cluster) {
            let map = readable_map(cluster, home).filter(|map| map.magic == MAGIC);
            // The entries of a map with a wrong checksum mean nothing.
            let Some(map) = map.filter(|map| map.crc_stored == map.crc_computed) else {
                continue;
            };
            let place = map_place(cluster, home);
            if usize::try_from(map.num_mappings) != Ok(map.mappings.len()) {
                let message = format!(
                    "the map claims {} entries and has room for {}",
                    map.num_mappings,
                    map.mappings.len()
                );
                let words = format!(
                    "FATAL:  relation mapping file \"{}\" contains invalid data",
                    place.path
                );
                out.add(
                    Draft::new(&RELATION_MAP_INCONSISTENT, message)
                        .bytes(4, 8)
                        .server_says(words)
                        .place(place),
                );
                continue;
            }
            for message in nonsense(&map, home)
                .into_iter()
                .chain(lost_files(cluster, &map, home))
            {
                out.add(Draft::new(&RELATION_MAP_INCONSISTENT, message).place(place.clone()));
            }
        }
    }
}

fn nonsense(map: &RelationMap, home: &DatabaseDirectory) -> Vec<String> {
    let mut found = Vec::new();
    let (mut catalogs, mut files) = (BTreeSet::new(), BTreeSet::new());
    for (catalog, file) in &map.mappings {
        if *catalog == 0 || *file == 0 {
            found.push(format!("catalog {catalog} is mapped to file {file}"));
        } else {
            if !catalogs.insert(*catalog) {
                found.push(format!("catalog {catalog} is mapped twice"));
            }
            if !files.insert(*file) {
                found.push(format!("file {file} is named twice"));
            }
        }
    }
    let needed = if home.database == 0 {
        NEEDED_IN_GLOBAL
    } else {
        NEEDED_IN_DATABASE
    };
    let missing = needed.iter().filter(|catalog| !catalogs.contains(catalog));
    found.extend(missing.map(|catalog| format!("catalog {catalog} is not mapped")));
    found
}

fn lost_files(cluster: &Cluster, map: &RelationMap, home: &DatabaseDirectory) -> Vec<String> {
    if !cluster.may_compare(Comparison::FilesWithCatalogs) {
        return Vec::new();
    }
    let lost = |(catalog, filenode): &(Oid, Oid)| {
        let path = fork_path(&home.folder, *filenode, Fork::Main, 0);
        let missing = cluster
            .source()
            .len(&path)
            .is_err_and(|error| error.kind == SourceErrorKind::NotFound);
        (missing && *filenode != 0)
            .then(|| format!("catalog {catalog} is mapped to {path}, which is missing"))
    };
    map.mappings.iter().filter_map(lost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_trial::{ClusterTrial, sound_map};
    use pgclinic_format::build::put_u32;
    use pgclinic_format::relation_map::seal;

    #[test]
    fn entries_are_whole_single_and_backed_by_files() {
        let said = |at: usize, value: u32| {
            let mut map = sound_map();
            put_u32(&mut map, at, value);
            assert!(seal(&mut map), "a map of 18");
            let drafts = ClusterTrial::with_shared_map(Some(map)).drafts(&RelationMapInconsistent);
            drafts
                .into_iter()
                .map(|draft| draft.message)
                .collect::<Vec<_>>()
        };
        assert!(said(0, MAGIC).is_empty(), "as it was");
        assert_eq!(
            said(4, 65),
            ["the map claims 65 entries and has room for 64"]
        );
        assert_eq!(said(12, 1214), ["file 1214 is named twice"]);
        assert_eq!(
            said(8, 1214),
            ["catalog 1214 is mapped twice", "catalog 1213 is not mapped"]
        );
        assert_eq!(
            said(12, 77),
            ["catalog 1213 is mapped to global/77, which is missing"]
        );
    }
}
