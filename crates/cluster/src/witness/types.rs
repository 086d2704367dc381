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
use pgclinic_format::oid::{PG_TYPE_OID_INDEX, PG_TYPE_TYPNAME_NSP_INDEX};
use pgclinic_format::types::Tid;

use super::entries::{NAME, WORD, each_entry};
use crate::catalog_encoding::CatalogEncoding;
use crate::cluster::Cluster;
use crate::files::DatabaseDirectory;
use crate::row_places::{PlaceState, RowPlaces};

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
