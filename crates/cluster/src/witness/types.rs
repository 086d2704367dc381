//! Types whose rows in `pg_type` are lost: its two indexes still have number, name and schema. What
//! they are made of stands elsewhere, and what stands nowhere stays unknown.
//!
//! ```text
//! pg_enum.enumtypid                          an enumeration, with its labels
//! pg_range.rngtypid, rngmultitypid           a range, a multirange, with its subtype
//! pg_class of the same name and schema       a row type, with its columns
//! the same name after an underscore          an array of that type
//! ```
//!
//! Truth: `src/include/catalog/pg_type.h`, `makeArrayTypeName`.

use std::collections::BTreeMap;

use pgclinic_format::Oid;
use pgclinic_format::oid::{
    PG_ENUM_OID_INDEX, PG_ENUM_TYPID_LABEL_INDEX, PG_ENUM_TYPID_SORTORDER_INDEX, PG_TYPE_OID_INDEX,
    PG_TYPE_TYPNAME_NSP_INDEX,
};
use pgclinic_format::types::Tid;

use super::entries::{NAME, WORD, each_entry, each_entry_of};
use crate::catalog_encoding::CatalogEncoding;
use crate::cluster::Cluster;
use crate::files::DatabaseDirectory;
use crate::relation::Relation;
use crate::row_places::{PlaceState, RowPlaces};
use crate::types::LabelRow;

/// A type whose row in `pg_type` is lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostType {
    /// OID.
    pub oid: Oid,
    /// Its name.
    pub name: String,
    /// OID of its schema.
    pub namespace: Oid,
}

/// What the indexes of `pg_type` name, where no row is. `is_known` are types that have a row.
pub(crate) fn lost_types(
    cluster: &Cluster,
    home: &DatabaseDirectory,
    words: CatalogEncoding,
    places: &RowPlaces,
    is_known: &dyn Fn(Oid) -> bool,
) -> Vec<LostType> {
    let mut oids: BTreeMap<Tid, Oid> = BTreeMap::new();
    let take_oid = &mut |tid: Tid, oid: Option<Oid>| {
        let is_without_row = places.state(tid) != PlaceState::Row;
        let lost = oid.filter(|oid| is_without_row && !is_known(*oid));
        oids.extend(lost.map(|oid| (tid, oid)));
    };
    each_entry(
        cluster,
        home,
        PG_TYPE_OID_INDEX,
        &[WORD],
        &mut |tid, keys| {
            take_oid(tid, keys.oid(0));
        },
    );
    if oids.is_empty() {
        return Vec::new();
    }
    let mut lost = BTreeMap::new();
    let columns = [NAME, WORD];
    each_entry(
        cluster,
        home,
        PG_TYPE_TYPNAME_NSP_INDEX,
        &columns,
        &mut |tid, keys| {
            let (Some(oid), Some(namespace)) = (oids.get(&tid), keys.oid(1)) else {
                return;
            };
            let name = words.readable(keys.name(0));
            // The later row of a type that was renamed has its name.
            lost.insert(
                *oid,
                LostType {
                    oid: *oid,
                    name,
                    namespace,
                },
            );
        },
    );
    lost.into_values().collect()
}

/// The type that a domain's check is written for: that of the value before it is one of the domain.
pub(crate) fn base_of_domain(tree: &[u8]) -> Option<Oid> {
    const VALUE: &str = "{COERCETODOMAINVALUE :typeId ";
    let tree = String::from_utf8_lossy(tree);
    let (_, rest) = tree.split_once(VALUE)?;
    let number = rest.split([' ', '}']).next()?;
    number.parse().ok()
}

/// Labels of enumerations whose rows in `pg_enum` are lost: its three indexes, joined by TID, have
/// all that stood in them. `is_known` are labels that have a row.
pub(crate) fn lost_labels(
    cluster: &Cluster,
    home: &DatabaseDirectory,
    relations: &BTreeMap<Oid, Relation>,
    places: &RowPlaces,
    is_known: &dyn Fn(Oid) -> bool,
) -> Vec<LabelRow> {
    let mut oids: BTreeMap<Tid, Oid> = BTreeMap::new();
    let mut positions: BTreeMap<Tid, f32> = BTreeMap::new();
    let mut labels = Vec::new();
    let index = |oid: Oid| relations.get(&oid);
    let (Some(by_oid), Some(by_label), Some(by_order)) = (
        index(PG_ENUM_OID_INDEX),
        index(PG_ENUM_TYPID_LABEL_INDEX),
        index(PG_ENUM_TYPID_SORTORDER_INDEX),
    ) else {
        return labels;
    };
    each_entry_of(cluster, home, by_oid, &[WORD], &mut |tid, keys| {
        let is_without_row = places.state(tid) != PlaceState::Row;
        let oid = keys.oid(0).filter(|oid| is_without_row && !is_known(*oid));
        oids.extend(oid.map(|oid| (tid, oid)));
    });
    if oids.is_empty() {
        return labels;
    }
    each_entry_of(cluster, home, by_order, &[WORD, WORD], &mut |tid, keys| {
        positions.extend(keys.oid(1).map(|bits| (tid, f32::from_bits(bits))));
    });
    each_entry_of(cluster, home, by_label, &[WORD, NAME], &mut |tid, keys| {
        if let (Some(oid), Some(of)) = (oids.get(&tid), keys.oid(0)) {
            labels.push(LabelRow {
                of,
                position: positions.get(&tid).copied().unwrap_or(f32::MAX),
                oid: *oid,
                label: keys.name(1).to_vec(),
            });
        }
    });
    labels
}
