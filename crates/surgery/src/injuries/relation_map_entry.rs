//! A relation map names a file that does not exist.

use pgclinic_format::build::put_u32;
use pgclinic_format::relation_map;
use pgclinic_format::{Oid, RelationMap, oid};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{RELATION_MAP, Site};
use crate::way_out;

/// Without the map such catalogs are still found under the numbers they were born with.
fn unmoved(bytes: &[u8]) -> Option<RelationMap> {
    let map = RelationMap::parse(bytes)
        .ok()
        .filter(RelationMap::is_right)?;
    map.mappings
        .iter()
        .all(|(oid, filenode)| oid == filenode)
        .then_some(map)
}

/// Indexes of `pg_class`, `pg_attribute` and `pg_proc`, which nothing here reads.
const INDEXES: [Oid; 6] = [oid::PG_ATTRIBUTE_RELID_ATTNAM_INDEX, oid::PG_ATTRIBUTE_RELID_ATTNUM_INDEX, oid::PG_CLASS_OID_INDEX, oid::PG_CLASS_RELNAME_NSP_INDEX, oid::PG_PROC_OID_INDEX, oid::PG_PROC_PRONAME_ARGS_NSP_INDEX];

/// See the module.
pub struct RelationMapEntry;

impl Injury for RelationMapEntry {
    fn name(&self) -> &'static str {
        "relation-map-entry"
    }

    fn summary(&self) -> &'static str {
        "a relation map names a file that does not exist"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(RELATION_MAP)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let map = unmoved(&site.bytes)?;
        let index = map
            .mappings
            .iter()
            .position(|(oid, _)| INDEXES.contains(oid))?;
        let mut after = site.bytes.clone();
        put_u32(&mut after, 12 + index * 8, 999_999_999);
        relation_map::seal(&mut after).then_some(())?;
        let wound = Wound::bytes(
            site,
            &after,
            "the file of an index set to 999999999, with a right checksum",
        )?;
        Some(
            wound
                .must(&["relation-map-sense", "orphan-file"])
                .may(&[followers::LOST_CATALOGS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::MAP
    }
}
