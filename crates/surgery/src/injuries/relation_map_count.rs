//! A relation map claims more entries than it has room for.

use pgclinic_format::RelationMap;
use pgclinic_format::build::put_u32;
use pgclinic_format::relation_map;

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

/// See the module.
pub struct RelationMapCount;

impl Injury for RelationMapCount {
    fn name(&self) -> &'static str {
        "relation-map-count"
    }

    fn summary(&self) -> &'static str {
        "a relation map claims more entries than it has room for"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(RELATION_MAP)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        unmoved(&site.bytes)?;
        let mut after = site.bytes.clone();
        put_u32(&mut after, 4, 1000);
        relation_map::seal(&mut after).then_some(())?;
        let wound = Wound::bytes(site, &after, "the count set to 1000, with a right checksum")?;
        Some(
            wound
                .must(&["relation-map-sense"])
                .may(&[followers::LOST_CATALOGS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::MAP
    }
}
