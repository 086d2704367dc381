//! A byte of a relation map is wrong.

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
pub struct RelationMapByte;

impl Injury for RelationMapByte {
    fn name(&self) -> &'static str {
        "relation-map-byte"
    }

    fn summary(&self) -> &'static str {
        "a byte of a relation map is wrong"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(RELATION_MAP)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let map = unmoved(&site.bytes)?;
        let room = u64::try_from(map.mappings.len() * 8).ok()?;
        let at = usize::try_from(8 + seed.checked_rem(room)?).ok()?;
        let wound = Wound::edit(site, format!("byte {at} changed"), |file| {
            file.iter_mut()
                .skip(at)
                .take(1)
                .for_each(|byte| *byte ^= 0x10);
        })?;
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
