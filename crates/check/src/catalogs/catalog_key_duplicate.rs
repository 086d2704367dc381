//! Two live rows of a catalog have the same key.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use pgclinic_cluster::{DatabaseContext, RawRow, Relation, RowState};
use pgclinic_format::{BlockNo, Oid};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::catalogs::rows::{CatalogTable, CatalogTables, catalogs_are_comparable};
use crate::check::DatabaseCheck;
use crate::findings::Findings;

/// The rule.
pub static CATALOG_KEY_DUPLICATE: Rule =
    Rule::from_page(include_str!("../../rules/catalog-key-duplicate.md"));

/// See [`CATALOG_KEY_DUPLICATE`].
pub struct CatalogKeyDuplicate;

/// Keys of one catalog that are remembered, 8 bytes each.
const KEYS_MAX: usize = 8 << 20;
/// Doubled keys told of one index.
const TOLD_MAX: usize = 1000;

impl DatabaseCheck for CatalogKeyDuplicate {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&CATALOG_KEY_DUPLICATE] }
    }

    fn level(&self) -> Level {
        Level::Full
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
        if !catalogs_are_comparable(database, out) {
            return;
        }
        let tables = CatalogTables::new(database, None);
        for table in tables.own() {
            for index in unique_indexes(database, table.relation.oid) {
                doubled(&tables, table, index, out);
            }
        }
    }
}

/// Indexes that promise that a key of live rows exists once.
fn unique_indexes<'a>(
    database: &'a DatabaseContext<'_>,
    table: Oid,
) -> impl Iterator<Item = &'a Relation> {
    let relations = database.catalog.relations.values();
    relations.filter(move |relation| {
        let promises = |index: &pgclinic_cluster::Index| {
            index.table == table
                && index.unique
                && index.immediate
                && (index.valid && index.ready && index.live)
                && !(index.has_expressions || index.has_predicate)
        };
        relation.index.as_ref().is_some_and(promises)
    })
}

fn doubled(
    tables: &CatalogTables<'_>,
    table: &CatalogTable<'_>,
    index: &Relation,
    out: &mut Findings,
) {
    let Some(columns) = key_columns(table, index) else {
        return;
    };
    let mut hashes: Vec<u64> = Vec::new();
    tables.each_row(table, |row| {
        let key = (row.state == RowState::Visible && hashes.len() <= KEYS_MAX)
            .then(|| key(table, &columns, row));
        hashes.extend(key.flatten().map(|key| hash(&key)));
    });
    if hashes.len() > KEYS_MAX {
        let why = format!("there are more than {KEYS_MAX} of them");
        return tables.not_checked(out, &format!("duplicate keys of {}", index.name), &why);
    }
    hashes.sort_unstable();
    let twice: Vec<u64> = hashes
        .windows(2)
        .filter_map(|pair| pair.first().filter(|first| pair.last() == Some(first)))
        .copied()
        .take(TOLD_MAX)
        .collect();
    if twice.is_empty() {
        return;
    }
    // Only the keys themselves tell: different ones can share a hash.
    let mut seen: HashMap<Vec<u8>, (BlockNo, u16)> = HashMap::new();
    tables.each_row(table, |row| {
        let key = (row.state == RowState::Visible)
            .then(|| key(table, &columns, row))
            .flatten();
        let Some(key) = key.filter(|key| twice.binary_search(&hash(key)).is_ok()) else {
            return;
        };
        let here = (row.block, row.item);
        if let Some((block, item)) = seen.get(&key) {
            let words = format!(
                "the key of {} is that of row ({block},{item}) too",
                index.name
            );
            let draft = tables.draft(&CATALOG_KEY_DUPLICATE, table, here, words);
            let other = format!("({block},{item})");
            out.add(
                draft
                    .fact("index", index.name.as_str())
                    .fact("other_row", other),
            );
        } else {
            seen.insert(key, here);
        }
    });
}

/// Indexes of the key's columns in a row.
fn key_columns(table: &CatalogTable<'_>, index: &Relation) -> Option<Vec<usize>> {
    let own = index.index.as_ref()?;
    let keys = own.keys.get(..usize::from(own.key_count))?;
    let column = |number: &i16| {
        let index = usize::try_from(*number).ok()?.checked_sub(1)?;
        (index < table.columns.len()).then_some(index)
    };
    keys.iter().map(column).collect()
}

/// The bytes that make two keys the same; nothing when one of them is null or is not in the row
/// itself.
fn key(table: &CatalogTable<'_>, columns: &[usize], row: &RawRow<'_>) -> Option<Vec<u8>> {
    const NAME: Oid = 19;
    let mut key = Vec::new();
    for column in columns {
        let own = table.columns.get(*column)?;
        let bytes = match own.layout.attlen {
            -1 => row.payload(*column)?,
            _ => row.bytes(*column)?,
        };
        let end = match own.type_oid {
            NAME => bytes.iter().position(|byte| *byte == 0),
            _ => None,
        };
        let bytes = bytes.get(..end.unwrap_or(bytes.len()))?;
        key.extend_from_slice(&u32::try_from(bytes.len()).ok()?.to_le_bytes());
        key.extend_from_slice(bytes);
    }
    Some(key)
}

fn hash(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}
