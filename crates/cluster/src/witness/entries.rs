//! The entries of a catalog's btree that are in use: row and key columns.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_format::attribute::Attribute;
use pgclinic_format::oid::{self, PG_NAMESPACE_NSPNAME_INDEX, PG_NAMESPACE_OID_INDEX};
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, ColumnLayout, Fork, LpFlags, Oid};

use crate::btree_leaves::{Leaves, each_leaf};
use crate::catalog::Catalog;
use crate::catalog_encoding::CatalogEncoding;
use crate::cluster::Cluster;
use crate::files::{DatabaseDirectory, ForkFiles};
use crate::relation::Relation;
use crate::row_places::{PlaceState, RowPlaces};

/// `oid`, `int4`.
pub(super) const WORD: ColumnLayout = ColumnLayout {
    attlen: 4,
    attalign: 4,
};
/// `int2`.
pub(super) const SHORT: ColumnLayout = ColumnLayout {
    attlen: 2,
    attalign: 2,
};
/// A `name`: `name_ops` keeps it as a C string.
pub(super) const NAME: ColumnLayout = ColumnLayout {
    attlen: -2,
    attalign: 1,
};
/// Columns of the widest index read here.
const COLUMNS_MAX: usize = 4;

/// The key columns of an entry.
pub(super) struct Keys<'a>([&'a [u8]; COLUMNS_MAX]);

impl<'a> Keys<'a> {
    pub(super) fn bytes(&self, column: usize) -> &'a [u8] {
        self.0.get(column).copied().unwrap_or_default()
    }

    pub(super) fn oid(&self, column: usize) -> Option<Oid> {
        Some(u32::from_le_bytes(*self.bytes(column).first_chunk()?))
    }

    pub(super) fn i16(&self, column: usize) -> Option<i16> {
        Some(i16::from_le_bytes(*self.bytes(column).first_chunk()?))
    }

    /// Up to its closing zero.
    pub(super) fn name(&self, column: usize) -> &'a [u8] {
        let bytes = self.bytes(column);
        let end = bytes.iter().position(|byte| *byte == 0);
        bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default()
    }
}

/// The smallest index on all rows of a catalog, by the catalog's OID. `pg_index` would tell, if it
/// were not one of them.
pub(crate) fn index_of_rows(catalog: Oid) -> Option<Oid> {
    Some(match catalog {
        oid::PG_TYPE => oid::PG_TYPE_OID_INDEX,
        oid::PG_DATABASE => oid::PG_DATABASE_OID_INDEX,
        oid::PG_SEQUENCE => oid::PG_SEQUENCE_SEQRELID_INDEX,
        oid::PG_AMPROC => oid::PG_AMPROC_OID_INDEX,
        oid::PG_INDEX => oid::PG_INDEX_INDEXRELID_INDEX,
        oid::PG_NAMESPACE => PG_NAMESPACE_OID_INDEX,
        oid::PG_OPCLASS => oid::PG_OPCLASS_OID_INDEX,
        oid::PG_COLLATION => oid::PG_COLLATION_OID_INDEX,
        oid::PG_ENUM => oid::PG_ENUM_OID_INDEX,
        oid::PG_RANGE => oid::PG_RANGE_RNGTYPID_INDEX,
        _ => return None,
    })
}

/// Pages of a catalog that are lost, and the entries of its indexes that lead to them.
#[derive(Default)]
pub(crate) struct PagesLost {
    pub(crate) blocks: BTreeSet<BlockNo>,
    pub(crate) entries: u64,
}

impl PagesLost {
    pub(super) fn take(&mut self, tid: Tid, state: PlaceState) {
        if state == PlaceState::PageLost {
            self.entries += 1;
            self.blocks.insert(tid.block);
        }
    }
}

/// The pages to which entries of this index lead and which are lost.
pub(crate) fn pages_lost(
    cluster: &Cluster,
    home: &DatabaseDirectory,
    index: &Relation,
    places: &RowPlaces,
) -> PagesLost {
    let mut lost = PagesLost::default();
    each_entry_of(cluster, home, index, &[], &mut |tid, _| {
        lost.take(tid, places.state(tid));
    });
    lost
}

/// What the two indexes of `pg_namespace`, joined by TID, call the schemas. Entries of dropped ones
/// are among them, which name no relation.
pub(crate) fn schema_names(
    cluster: &Cluster,
    home: &DatabaseDirectory,
    words: CatalogEncoding,
    relations: &BTreeMap<Oid, Relation>,
) -> BTreeMap<Oid, String> {
    let indexes = (PG_NAMESPACE_OID_INDEX, PG_NAMESPACE_NSPNAME_INDEX);
    names_by_indexes(cluster, home, words, relations, indexes)
}

/// What two indexes of a catalog, one by OID and one that begins with a name, call its rows, also
/// those that are gone.
pub(crate) fn names_by_indexes(
    cluster: &Cluster,
    home: &DatabaseDirectory,
    words: CatalogEncoding,
    relations: &BTreeMap<Oid, Relation>,
    (by_oid, by_name): (Oid, Oid),
) -> BTreeMap<Oid, String> {
    let (Some(by_oid), Some(by_name)) = (relations.get(&by_oid), relations.get(&by_name)) else {
        return BTreeMap::new();
    };
    let mut oids = BTreeMap::new();
    each_entry_of(cluster, home, by_oid, &[WORD], &mut |tid, keys| {
        oids.extend(keys.oid(0).map(|oid| (tid, oid)));
    });
    let mut names = BTreeMap::new();
    each_entry_of(cluster, home, by_name, &[NAME], &mut |tid, keys| {
        let name = words.readable(keys.name(0));
        names.extend(oids.get(&tid).map(|oid| (*oid, name)));
    });
    names
}

impl Cluster {
    /// What the indexes of `pg_namespace` call the schemas of a database, dropped ones too.
    pub fn schemas_by_indexes(&self, catalog: &Catalog) -> BTreeMap<Oid, String> {
        let Some(home) = self.catalog_home(catalog.database) else {
            return BTreeMap::new();
        };
        schema_names(self, home, self.words(catalog.database), &catalog.relations)
    }

    /// What the indexes of `pg_authid` call the roles, dropped ones too; `shared` are the relations
    /// of all databases.
    pub fn roles_by_indexes(&self, shared: &Catalog) -> BTreeMap<Oid, String> {
        let mut homes = self.homes.iter();
        let Some(global) = homes.find(|home| home.database == 0) else {
            return BTreeMap::new();
        };
        let words = CatalogEncoding::default().shared();
        let indexes = (oid::PG_AUTHID_OID_INDEX, oid::PG_AUTHID_ROLNAME_INDEX);
        names_by_indexes(self, global, words, &shared.relations, indexes)
    }
}

/// Gives every row that an entry of this btree names, with the key.
pub(super) fn each_entry_of(
    cluster: &Cluster,
    home: &DatabaseDirectory,
    index: &Relation,
    columns: &[ColumnLayout],
    each: &mut dyn FnMut(Tid, &Keys<'_>),
) -> bool {
    let global = cluster.homes.iter().find(|home| home.database == 0);
    let home = if index.shared {
        global.unwrap_or(home)
    } else {
        home
    };
    let files = cluster.fork_files(home, index.filenode, Fork::Main);
    each_entry_in(cluster, &files, columns, each)
}

/// Gives every row that an entry of the mapped index names, with the key.
pub(super) fn each_entry(
    cluster: &Cluster,
    home: &DatabaseDirectory,
    index: Oid,
    columns: &[ColumnLayout],
    each: &mut dyn FnMut(Tid, &Keys<'_>),
) -> bool {
    let filenode = cluster.mapped_file(home, index);
    let files = cluster.fork_files(home, filenode, Fork::Main);
    each_entry_in(cluster, &files, columns, each)
}

/// Gives every row that an entry of the btree in these files names.
pub(crate) fn each_row_in(cluster: &Cluster, files: &ForkFiles, each: &mut dyn FnMut(Tid)) {
    each_entry_in(cluster, files, &[], &mut |tid, _| each(tid));
}

/// The same of the index in these files, leaf by leaf along them. Entries that are marked dead are
/// left out: the server knows that nobody sees their rows. Whether every leaf was there and sound.
pub(super) fn each_entry_in(
    cluster: &Cluster,
    files: &ForkFiles,
    columns: &[ColumnLayout],
    each: &mut dyn FnMut(Tid, &Keys<'_>),
) -> bool {
    let mut broken = 0u64;
    let mut leaves = 0u64;
    let walk = each_leaf(cluster, files, Leaves::Sound, &mut |_, leaf| {
        leaves += 1;
        let first = leaf.first_data();
        let pointers = leaf.page().line_pointers();
        let in_use =
            pointers.filter(|(item, pointer)| *item >= first && pointer.flags() == LpFlags::Normal);
        for (_, pointer) in in_use {
            let Some(tuple) = leaf.tuple_of(pointer) else {
                broken += 1;
                continue;
            };
            let mut keys = Keys([&[]; COLUMNS_MAX]);
            for (attribute, key) in tuple.0.attributes(columns).zip(&mut keys.0) {
                if let Ok(Attribute::Value(range)) = attribute {
                    *key = tuple.0.bytes().get(range).unwrap_or_default();
                }
            }
            tuple.rows().for_each(|tid| each(tid, &keys));
        }
        true
    });
    leaves > 0 && broken == 0 && walk.is_whole()
}
