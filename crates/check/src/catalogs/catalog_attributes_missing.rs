//! `pg_class` and `pg_attribute` do not agree on the columns of a relation, or `pg_class` and
//! `pg_index` on its indexes.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_cluster::{DatabaseContext, Relation, RowState};
use pgclinic_format::Oid;
use pgclinic_format::oid::{PG_ATTRIBUTE, PG_CLASS};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;
use pgclinic_model::{plural, verb_of};

use crate::catalogs::rows::{CatalogTables, catalogs_are_comparable};
use crate::check::DatabaseCheck;
use crate::findings::Findings;

/// Columns.
pub static CATALOG_ATTRIBUTES_MISSING: Rule =
    Rule::from_page(include_str!("../../rules/catalog-attributes-missing.md"));

/// Indexes.
pub static RELHASINDEX_FALSE_WITH_INDEX: Rule =
    Rule::from_page(include_str!("../../rules/relhasindex-false-with-index.md"));

/// See [`CATALOG_ATTRIBUTES_MISSING`] and [`RELHASINDEX_FALSE_WITH_INDEX`].
pub struct CatalogAttributesMissing;

/// Missing numbers that are told of one relation.
const NUMBERS_TOLD: usize = 10;

impl DatabaseCheck for CatalogAttributesMissing {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&CATALOG_ATTRIBUTES_MISSING, &RELHASINDEX_FALSE_WITH_INDEX] }
    }

    fn level(&self) -> Level {
        Level::Full
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
        let shared = database.catalog.database == 0;
        if shared || !catalogs_are_comparable(database, out) {
            return;
        }
        let tables = CatalogTables::new(database, None);
        let missing = missing_numbers(database, &tables, out);
        tell_relations(database, &tables, &missing, out);
    }
}

/// The numbers without a row, by relation; rows with a number that is too high are told at once.
fn missing_numbers(
    database: &DatabaseContext<'_>,
    tables: &CatalogTables<'_>,
    out: &mut Findings,
) -> BTreeMap<Oid, BTreeSet<u16>> {
    let relations = &database.catalog.relations;
    let mut missing: BTreeMap<Oid, BTreeSet<u16>> = BTreeMap::new();
    let Some(table) = tables.table(PG_ATTRIBUTE) else {
        return missing;
    };
    let columns = table.column("attrelid").zip(table.column("attnum"));
    let Some((relation, number)) = columns else {
        return missing;
    };
    let incomplete = |relation: &&Relation| relation.columns.is_none() && relation.relnatts > 0;
    for relation in relations.values().filter(incomplete) {
        missing.insert(relation.oid, (1..=relation.relnatts).collect());
    }
    let whole = tables.each_row(table, |row| {
        let found = row.u32(relation).zip(row.i16(number));
        let Some((oid, number)) =
            found.and_then(|(oid, number)| Some((oid, u16::try_from(number).ok()?)))
        else {
            return;
        };
        if let Some(numbers) = missing.get_mut(&oid) {
            numbers.remove(&number);
        }
        let Some(own) = relations
            .get(&oid)
            .filter(|_| row.state == RowState::Visible)
        else {
            return;
        };
        if number > own.relnatts || number == 0 {
            let name = own.qualified_name();
            let words = format!(
                "attnum {number} of {name}, which has {}",
                plural(own.relnatts, "column")
            );
            let here = (row.block, row.item);
            let draft = tables.draft(&CATALOG_ATTRIBUTES_MISSING, table, here, words);
            let draft = draft.fact("relation", oid).fact("relnatts", own.relnatts);
            out.add(tables.explained_by(draft, PG_CLASS));
        }
    });
    if !whole {
        let why = "not all rows of pg_attribute can be read";
        tables.not_checked(out, "missing columns", why);
        missing.clear();
    }
    missing.retain(|_, numbers| !numbers.is_empty());
    missing
}

/// One pass over `pg_class`, where the places are.
fn tell_relations(
    database: &DatabaseContext<'_>,
    tables: &CatalogTables<'_>,
    missing: &BTreeMap<Oid, BTreeSet<u16>>,
    out: &mut Findings,
) {
    let relations = &database.catalog.relations;
    let indexed: BTreeMap<Oid, &Relation> = relations
        .values()
        .filter_map(|relation| {
            // ANALYZE and VACUUM clear the flag where the only index never became ready, because
            // CREATE INDEX CONCURRENTLY failed.
            let index = relation.index.as_ref();
            let index = index.filter(|index| index.live && index.ready)?;
            Some((index.table, relation))
        })
        .collect();
    let Some(table) = tables.table(PG_CLASS) else {
        return;
    };
    let columns = table.column("oid").zip(table.column("relhasindex"));
    let Some((oid, has_index)) = columns else {
        return;
    };
    tables.each_row(table, |row| {
        let Some(oid) = row.u32(oid).filter(|_| row.state == RowState::Visible) else {
            return;
        };
        let Some(relation) = relations.get(&oid) else {
            return;
        };
        let (name, here) = (relation.qualified_name(), (row.block, row.item));
        if let Some(numbers) = missing.get(&oid) {
            let told: Vec<String> = numbers
                .iter()
                .take(NUMBERS_TOLD)
                .map(u16::to_string)
                .collect();
            let words = format!(
                "{} of {} of {name} {} not in pg_attribute: {}",
                numbers.len(),
                plural(relation.relnatts, "column"),
                verb_of(numbers.len(), "are"),
                told.join(", ")
            );
            let draft = tables.draft(&CATALOG_ATTRIBUTES_MISSING, table, here, words);
            let draft = draft.fact("relation", oid).fact("missing", numbers.len());
            out.add(tables.explained_by(draft, PG_ATTRIBUTE));
        }
        if let Some(index) = indexed
            .get(&oid)
            .filter(|_| row.bool(has_index) == Some(false))
        {
            let words = format!(
                "relhasindex of {name} is false, and {} is its index",
                index.name
            );
            let draft = tables.draft(&RELHASINDEX_FALSE_WITH_INDEX, table, here, words);
            out.add(draft.fact("index", index.oid));
        }
    });
}
