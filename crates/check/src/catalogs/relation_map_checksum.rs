//! A `pg_filenode.map` whose magic word or checksum is wrong.

use pgclinic_cluster::Cluster;
use pgclinic_format::relation_map::MAGIC;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::catalogs::relation_map_unreadable::{homes_with_maps, map_place, readable_map};
use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static RELATION_MAP_CHECKSUM: Rule =
    Rule::from_page(include_str!("../../rules/relation-map-checksum.md"));

/// See [`RELATION_MAP_CHECKSUM`].
pub struct RelationMapChecksum;

impl ClusterCheck for RelationMapChecksum {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&RELATION_MAP_CHECKSUM] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        for home in homes_with_maps(cluster) {
            let Some(map) = readable_map(cluster, home) else {
                continue;
            };
            let room = cluster.layout.relation_map_bytes.saturating_sub(8) / 8;
            let too_many = usize::try_from(map.num_mappings).is_ok_and(|count| count > room);
            let place = map_place(cluster, home);
            let invalid = map.magic != MAGIC || too_many;
            let words = if invalid {
                "contains invalid data"
            } else {
                "contains incorrect checksum"
            };
            let words = format!("FATAL:  relation mapping file \"{}\" {words}", place.path);
            let draft = if map.magic != MAGIC {
                let message = format!(
                    "magic word {:#010x} of the relation map is not {MAGIC:#010x}",
                    map.magic
                );
                Draft::new(&RELATION_MAP_CHECKSUM, message).bytes(0, 4)
            } else if map.crc_stored != map.crc_computed {
                let (stored, computed) = (map.crc_stored, map.crc_computed);
                let message = format!(
                    "stored checksum {stored:#010x} of the map does not match computed checksum {computed:#010x}"
                );
                let draft = Draft::new(&RELATION_MAP_CHECKSUM, message);
                draft.fact("stored", stored).fact("computed", computed)
            } else {
                continue;
            };
            out.add(draft.server_says(words).place(place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_trial::{ClusterTrial, sound_map};

    #[test]
    fn the_server_looks_at_magic_and_count_before_the_checksum() {
        let said = |at: usize| {
            let mut map = sound_map();
            map[at] ^= 0x80;
            let draft = ClusterTrial::with_shared_map(Some(map))
                .drafts(&RelationMapChecksum)
                .pop();
            draft
                .and_then(|draft| draft.server_says)
                .unwrap_or_default()
        };
        assert!(
            ClusterTrial::with_shared_map(Some(sound_map()))
                .drafts(&RelationMapChecksum)
                .is_empty()
        );
        let (invalid, wrong) = ("contains invalid data", "contains incorrect checksum");
        assert!(said(0).ends_with(invalid) && said(4).ends_with(invalid));
        assert!(said(12).ends_with(wrong) && said(520).ends_with(wrong));
    }
}
