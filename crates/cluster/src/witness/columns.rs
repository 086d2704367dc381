//! Columns whose rows in `pg_attribute` are lost: its two indexes still have their numbers and
//! names, and an index on such a column its type (other catalogs too: `column_types`).
//!
//! ```text
//! pg_attribute_relid_attnum_index   attrelid, attnum   ─┐ joined by TID
//! pg_attribute_relid_attnam_index   attrelid, attname  ─┴───────────────► number and name
//! pg_attribute of an index whose indkey has that number ────────────────► type, typmod, collation
//! ```
//!
//! Truth: `src/include/catalog/pg_attribute.h`.

use std::collections::BTreeMap;

use pgclinic_format::datum::TypeInfo;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::oid::{PG_ATTRIBUTE_RELID_ATTNAM_INDEX, PG_ATTRIBUTE_RELID_ATTNUM_INDEX};
use pgclinic_format::types::Tid;
use pgclinic_format::{ColumnLayout, Oid};

use super::column_types::KnownType;
use super::entries::{NAME, PagesLost, SHORT, WORD, each_entry};
use crate::catalog_encoding::CatalogEncoding;
use crate::cluster::Cluster;
use crate::files::DatabaseDirectory;
use crate::relation::{Column, Generated, Relation};
use crate::row_places::{PlaceState, RowPlaces};

/// `cstring`: an index keeps a `name` as one.
const CSTRING: Oid = 2275;

/// A column whose row in `pg_attribute` is lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostColumn {
    /// From 1.
    pub attnum: u16,
    /// Its name, where the index by name still has it.
    pub name: Option<String>,
    /// Which witness has its type, in words, so that rows can be read all the same.
    pub type_by: Option<&'static str>,
}

/// Lost columns by relation, in order of their numbers.
pub(crate) type LostColumns = BTreeMap<Oid, Vec<LostColumn>>;

/// The columns that are known of a relation, and how many there must be; nothing where its row in
/// `pg_class` is lost too.
#[derive(Clone, Copy)]
pub(crate) struct Gap<'a> {
    pub(crate) known: &'a [Column],
    pub(crate) count: Option<u16>,
}

impl Gap<'_> {
    /// A number that is missing.
    fn misses(&self, attnum: u16, state: PlaceState) -> bool {
        let is_known = self.known.iter().any(|column| column.attnum == attnum);
        let is_in_range = match self.count {
            Some(count) => attnum <= count,
            // A column that was never committed has its entry too, and its row.
            None => state != PlaceState::Row,
        };
        attnum > 0 && !is_known && is_in_range
    }
}

/// What the indexes of `pg_attribute` say of columns that are missing, with the pages that are lost
/// and how many entries lead to them.
pub(crate) fn lost_columns(
    cluster: &Cluster,
    home: &DatabaseDirectory,
    words: CatalogEncoding,
    places: &RowPlaces,
    gaps: &BTreeMap<Oid, Gap<'_>>,
) -> (LostColumns, PagesLost) {
    let mut pages_lost = PagesLost::default();
    let mut rows: BTreeMap<Tid, (Oid, u16)> = BTreeMap::new();
    each_entry(
        cluster,
        home,
        PG_ATTRIBUTE_RELID_ATTNUM_INDEX,
        &[WORD, SHORT],
        &mut |tid, keys| {
            let (Some(relation), Some(attnum)) = (keys.oid(0), keys.i16(1)) else {
                return;
            };
            let (attnum, state) = (u16::try_from(attnum).unwrap_or(0), places.state(tid));
            pages_lost.take(tid, state);
            let gap = gaps.get(&relation);
            if gap.is_some_and(|gap| gap.misses(attnum, state)) {
                rows.insert(tid, (relation, attnum));
            }
        },
    );
    let mut names: BTreeMap<Tid, String> = BTreeMap::new();
    if !rows.is_empty() {
        each_entry(
            cluster,
            home,
            PG_ATTRIBUTE_RELID_ATTNAM_INDEX,
            &[WORD, NAME],
            &mut |tid, keys| {
                if rows.contains_key(&tid) {
                    names.insert(tid, words.readable(keys.name(1)));
                }
            },
        );
    }
    (joined(rows, &mut names), pages_lost)
}

/// A column that was renamed may have two rows: the later one is taken, and one on a page that is
/// lost is not preferred to it.
fn joined(rows: BTreeMap<Tid, (Oid, u16)>, names: &mut BTreeMap<Tid, String>) -> LostColumns {
    let mut by_number: BTreeMap<(Oid, u16), Option<String>> = BTreeMap::new();
    for (tid, column) in rows {
        let known = by_number.entry(column).or_default();
        if let Some(name) = names.remove(&tid) {
            *known = Some(name);
        }
    }
    let mut lost = LostColumns::new();
    for ((relation, attnum), name) in by_number {
        lost.entry(relation).or_default().push(LostColumn {
            attnum,
            name,
            type_by: None,
        });
    }
    lost
}

/// The column of a table as a btree on it describes it.
pub(crate) fn column_of_indexes(
    table: Oid,
    lost: &LostColumn,
    relations: &BTreeMap<Oid, Relation>,
    indexes_of: &BTreeMap<Oid, Vec<Oid>>,
) -> Option<(Column, &'static str)> {
    let indexes = indexes_of.get(&table)?.iter();
    let mut indexes = indexes.filter_map(|oid| relations.get(oid));
    let number = i16::try_from(lost.attnum).ok()?;
    indexes.find_map(|relation| {
        let index = relation.index.as_ref()?;
        if relation.access_method != Some(AccessMethod::Btree) {
            return None;
        }
        let at = index.keys.iter().position(|key| *key == number)?;
        let own = relation.columns.as_ref()?.get(at)?;
        let is_same = own.type_oid != 0 && own.type_oid != CSTRING && !own.dropped;
        is_same.then(|| (column_like(own, lost), "an index"))
    })
}

/// A column of the type of another. Whether rows from before it was added have a value of their own
/// stood in its row alone.
pub(crate) fn column_like(other: &Column, lost: &LostColumn) -> Column {
    Column {
        attnum: lost.attnum,
        name: name_of(lost),
        not_null: false,
        dropped: lost.is_dropped(),
        generated: Generated::No,
        missing: None,
        has_missing: true,
        ..other.clone()
    }
}

/// A column of a type that a witness has.
pub(crate) fn column_of_type(
    lost: &LostColumn,
    known: &KnownType,
    ty: &TypeInfo,
) -> (Column, &'static str) {
    let column = Column {
        attnum: lost.attnum,
        name: name_of(lost),
        type_oid: known.oid,
        typmod: known.typmod,
        collation: known.collation,
        not_null: false,
        dropped: lost.is_dropped(),
        generated: Generated::No,
        storage: 0,
        compression: 0,
        layout: ColumnLayout {
            attlen: ty.len,
            attalign: ty.align,
        },
        missing: None,
        has_missing: true,
    };
    (column, known.by)
}

/// Its name, or one made of its number.
fn name_of(lost: &LostColumn) -> String {
    let number = || format!("column_{}", lost.attnum);
    lost.name.clone().unwrap_or_else(number)
}

/// How the name of a dropped column begins and ends, around its number.
const DROPPED: (&str, &str) = ("........pg.dropped.", "........");

impl LostColumn {
    /// It was dropped: such a column is called so, and nobody may call another one so.
    pub fn is_dropped(&self) -> bool {
        let name = self.name.as_deref().unwrap_or_default();
        let number = name.strip_prefix(DROPPED.0);
        number.and_then(|rest| rest.strip_suffix(DROPPED.1)) == Some(&self.attnum.to_string())
    }

    /// Its name, or one made of its number.
    pub fn words(&self) -> String {
        name_of(self)
    }
}
