//! Injuries of relation maps, `RelMapFile` in `src/backend/utils/cache/relmapper.c`.
//!
//! ```text
//! 0 magic  4 num_mappings  8 mappings: OID and file number, 4 bytes each  then the checksum of all before
//! ```

use pgclinic_format::build::put_u32;
use pgclinic_format::{Oid, RelationMap, oid, relation_map};
use pgclinic_model::plural;

use crate::advice;
use crate::byte_edits::flip;
use crate::followers::LOST_CATALOGS;
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{InjuryTarget, RELATION_MAP};

const COUNT_AT: usize = 4;
const MAPPINGS_AT: usize = 8;
const MAPPING_BYTES: usize = 8;
/// Indexes of `pg_class`, `pg_attribute` and `pg_proc`, which nothing here reads.
const INDEXES: [Oid; 6] = [
    oid::PG_ATTRIBUTE_RELID_ATTNAM_INDEX,
    oid::PG_ATTRIBUTE_RELID_ATTNUM_INDEX,
    oid::PG_CLASS_OID_INDEX,
    oid::PG_CLASS_RELNAME_NSP_INDEX,
    oid::PG_PROC_OID_INDEX,
    oid::PG_PROC_PRONAME_ARGS_NSP_INDEX,
];

/// A map in which every catalog has the number that it was born with: it is found under it without
/// the map too.
fn unmoved(target: &InjuryTarget<'_>) -> Option<RelationMap> {
    let map = RelationMap::parse(&target.bytes).ok()?;
    let mut mappings = map.mappings.iter();
    let born = mappings.all(|(oid, filenode)| oid == filenode);
    (map.is_right() && born).then_some(map)
}

/// Replaces a number, and makes the checksum true again.
fn set_sealed(target: &InjuryTarget<'_>, at: usize, value: u32, words: &str) -> Option<Damage> {
    let mut after = target.bytes.clone();
    put_u32(&mut after, at, value);
    relation_map::seal(&mut after).then_some(())?;
    let words = format!("{words}, with a right checksum");
    Some(Damage::bytes(target, &after, words)?.may(&[LOST_CATALOGS]))
}

pub(super) const RELATION_MAP_BYTE: Injury = Injury {
    name: "relation-map-byte",
    summary: "a byte of a relation map is wrong",
    wants: Wants::once(RELATION_MAP),
    recovery_advice: advice::MAP,
    damage: change_byte,
};

fn change_byte(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let bytes = u64::try_from(unmoved(target)?.mappings.len() * MAPPING_BYTES).ok()?;
    let at = MAPPINGS_AT + usize::try_from(seed.checked_rem(bytes)?).ok()?;
    let damage = Damage::edit(target, format!("byte {at} changed"), |file| flip(file, at))?;
    let damage = damage.must(&["relation-map-checksum"]);
    Some(damage.may(&[LOST_CATALOGS]))
}

pub(super) const RELATION_MAP_MAGIC: Injury = Injury {
    name: "relation-map-magic",
    summary: "a relation map lost its magic number",
    wants: Wants::once(RELATION_MAP),
    recovery_advice: advice::MAP,
    damage: replace_magic,
};

fn replace_magic(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    unmoved(target)?;
    let damage = set_sealed(target, 0, 0x1111_1111, "the magic number changed")?;
    Some(damage.must(&["relation-map-checksum"]))
}

pub(super) const RELATION_MAP_CUT: Injury = Injury {
    name: "relation-map-truncated",
    summary: "a relation map was truncated",
    wants: Wants::once(RELATION_MAP),
    recovery_advice: advice::MAP,
    damage: cut_file,
};

fn cut_file(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    unmoved(target)?;
    let len = 8 + seed % 400;
    let damage = Damage::cut(
        target,
        len,
        format!("the file truncated to {}", plural(len, "byte")),
    );
    let damage = damage.must(&["relation-map-unreadable"]);
    Some(damage.may(&[LOST_CATALOGS]))
}

pub(super) const RELATION_MAP_COUNT: Injury = Injury {
    name: "relation-map-count",
    summary: "a relation map claims more entries than it has room for",
    wants: Wants::once(RELATION_MAP),
    recovery_advice: advice::MAP,
    damage: raise_count,
};

fn raise_count(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    unmoved(target)?;
    let damage = set_sealed(target, COUNT_AT, 1000, "the count set to 1000")?;
    Some(damage.must(&["relation-map-inconsistent"]))
}

pub(super) const RELATION_MAP_ENTRY: Injury = Injury {
    name: "relation-map-entry",
    summary: "a relation map names a file that does not exist",
    wants: Wants::once(RELATION_MAP),
    recovery_advice: advice::MAP,
    damage: name_missing_file,
};

fn name_missing_file(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    let map = unmoved(target)?;
    let mut mappings = map.mappings.iter();
    let index = mappings.position(|(own, _)| INDEXES.contains(own))?;
    let at = MAPPINGS_AT + index * MAPPING_BYTES + 4;
    let words = "the file of an index set to 999999999";
    let damage = set_sealed(target, at, 999_999_999, words)?;
    Some(damage.must(&["relation-map-inconsistent", "orphan-file"]))
}
