//! Which keys a database's tables have, from its catalogs: primary, unique and foreign ones.
//!
//! Truth: `pg_constraint.h`. Columns are named, because the partitions of a table may number them
//! otherwise.

use pgclinic_cluster::{Catalog, Cluster};
use pgclinic_format::Oid;

use super::catalog::{Catalogs, Row};
use super::long_text::CatalogRoom;

/// A key of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    pub(crate) table: Oid,
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) kind: KeyKind,
    /// Why rows may break it, though the server knows it.
    pub(crate) excuse: Option<&'static str>,
}

/// What a key demands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum KeyKind {
    /// No two rows have the same values.
    Unique {
        /// It is the primary key.
        is_primary: bool,
        /// Rows with a null differ from all others.
        nulls_distinct: bool,
    },
    /// Some row of another table has these values.
    Foreign {
        /// The table that is named.
        parent: Oid,
        /// Where its rows stand: itself, or its partitions.
        tables: Vec<Oid>,
        /// The columns there.
        columns: Vec<String>,
        /// Rows with a null and a value break it, too: `MATCH FULL`.
        is_full: bool,
    },
}

/// All keys, by table and name.
pub(crate) fn keys_of(cluster: &Cluster, catalog: &Catalog) -> Vec<Key> {
    let shared = cluster.catalog(0);
    let catalogs = Catalogs::read(cluster, catalog, &shared, &CatalogRoom::brief());
    let rows = catalogs.table("pg_constraint").iter();
    let mut keys: Vec<Key> = rows.filter_map(|row| key(&catalogs, row)).collect();
    keys.sort_by(|a, b| (a.table, &a.name).cmp(&(b.table, &b.name)));
    keys
}

fn key(catalogs: &Catalogs<'_>, row: Row<'_>) -> Option<Key> {
    let table = row.oid("conrelid");
    let kind = match row.letter("contype") {
        'p' | 'u' => unique(catalogs, row),
        'f' if is_of_a_partition_above(catalogs, row) => return None,
        'f' => foreign(catalogs, row)?,
        _ => return None,
    };
    let excuse = if row.flag("conperiod") {
        Some("it is one of periods that must not overlap, which is not examined here")
    } else if row.number("conenforced") == Some(0) {
        Some("it is not enforced")
    } else if row.number("convalidated") == Some(0) {
        Some("it was never validated: rows could break it before")
    } else {
        None
    };
    Some(Key {
        table,
        name: row.name("conname"),
        columns: names(catalogs, table, &row.shorts("conkey"))?,
        kind,
        excuse,
    })
}

fn unique(catalogs: &Catalogs<'_>, row: Row<'_>) -> KeyKind {
    let index = catalogs.one("pg_index", "indexrelid", row.oid("conindid"));
    KeyKind::Unique {
        is_primary: row.letter("contype") == 'p',
        nulls_distinct: !index.is_some_and(|index| index.flag("indnullsnotdistinct")),
    }
}

/// A key to a partitioned table has a row for each of its partitions, too, which demands less.
fn is_of_a_partition_above(catalogs: &Catalogs<'_>, row: Row<'_>) -> bool {
    let above = catalogs.row("pg_constraint", row.oid("conparentid"));
    above.is_some_and(|above| above.oid("conrelid") == row.oid("conrelid"))
}

fn foreign(catalogs: &Catalogs<'_>, row: Row<'_>) -> Option<KeyKind> {
    let parent = row.oid("confrelid");
    Some(KeyKind::Foreign {
        parent,
        tables: leaves(catalogs, parent),
        columns: names(catalogs, parent, &row.shorts("confkey"))?,
        is_full: row.letter("confmatchtype") == 'f',
    })
}

fn names(catalogs: &Catalogs<'_>, table: Oid, numbers: &[i64]) -> Option<Vec<String>> {
    let name = |number: &i64| {
        let attribute = catalogs.attribute(table, *number)?;
        Some(attribute.name("attname"))
    };
    numbers.iter().map(name).collect()
}

/// The tables that hold the rows of one.
fn leaves(catalogs: &Catalogs<'_>, table: Oid) -> Vec<Oid> {
    let (mut open, mut found) = (vec![table], Vec::new());
    // A circle, which only damage makes, ends where every relation was met.
    let mut left = catalogs.table("pg_class").len();
    while let Some(oid) = open.pop().filter(|_| left > 0) {
        left -= 1;
        let relation = catalogs.row("pg_class", oid);
        if relation.is_some_and(|relation| relation.letter("relkind") == 'p') {
            let parts = catalogs.rows("pg_inherits", "inhparent", oid);
            open.extend(parts.iter().map(|part| part.oid("inhrelid")));
        } else {
            found.push(oid);
        }
    }
    found.sort_unstable();
    found
}
