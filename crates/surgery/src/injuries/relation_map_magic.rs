//! A relation map lost its magic number.

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
pub struct RelationMapMagic;

impl Injury for RelationMapMagic {
    fn name(&self) -> &'static str {
        "relation-map-magic"
    }

    fn summary(&self) -> &'static str {
        "a relation map lost its magic number"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(RELATION_MAP)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        unmoved(&site.bytes)?;
        let mut after = site.bytes.clone();
        put_u32(&mut after, 0, 0x1111_1111);
        relation_map::seal(&mut after).then_some(())?;
        let wound = Wound::bytes(
            site,
            &after,
            "the magic number changed, with a right checksum",
        )?;
        Some(
            wound
                .must(&["relation-map-checksum"])
                .may(&[followers::LOST_CATALOGS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::MAP
    }
}
