//! A relation map was cut.

use pgclinic_format::RelationMap;

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
pub struct RelationMapCut;

impl Injury for RelationMapCut {
    fn name(&self) -> &'static str {
        "relation-map-cut"
    }

    fn summary(&self) -> &'static str {
        "a relation map was cut"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(RELATION_MAP)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        unmoved(&site.bytes)?;
        let len = 8 + seed % 400;
        Some(
            Wound::cut(site, len, format!("the file cut to {len} bytes"))
                .must(&["relation-map-unreadable"])
                .may(&[followers::LOST_CATALOGS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::MAP
    }
}
