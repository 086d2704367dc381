//! Schemas that hold something which somebody made: what belongs to an extension does not count,
//! and neither does what comes with another thing (the array type of a type, the row type of a
//! table).

use std::collections::BTreeSet;

use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{Oid, oid};

use super::super::catalog::Catalogs;

/// Catalogs of things that stand in a schema: the catalog, its OID, and its column that says in
/// which. Truth: `src/include/catalog/pg_*.h`.
const IN_SCHEMAS: [(&str, Oid, &str); 12] = [
    ("pg_class", oid::PG_CLASS, "relnamespace"),
    ("pg_proc", oid::PG_PROC, "pronamespace"),
    ("pg_type", oid::PG_TYPE, "typnamespace"),
    ("pg_operator", oid::PG_OPERATOR, "oprnamespace"),
    ("pg_opclass", oid::PG_OPCLASS, "opcnamespace"),
    ("pg_opfamily", oid::PG_OPFAMILY, "opfnamespace"),
    ("pg_collation", oid::PG_COLLATION, "collnamespace"),
    ("pg_conversion", oid::PG_CONVERSION, "connamespace"),
    ("pg_ts_config", oid::PG_TS_CONFIG, "cfgnamespace"),
    ("pg_ts_dict", oid::PG_TS_DICT, "dictnamespace"),
    ("pg_ts_parser", oid::PG_TS_PARSER, "prsnamespace"),
    ("pg_ts_template", oid::PG_TS_TEMPLATE, "tmplnamespace"),
];

/// By name.
pub(super) fn that_hold_something(catalogs: &Catalogs<'_>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (table, class, column) in IN_SCHEMAS {
        for row in catalogs.table(table).iter() {
            if row.id() >= FIRST_NORMAL_OID && stands_alone(catalogs, class, row.id()) {
                found.extend(catalogs.schema_name(row.oid(column)));
            }
        }
    }
    found.retain(|name| !name.starts_with("pg_") && name != "information_schema");
    found
}

fn stands_alone(catalogs: &Catalogs<'_>, class: Oid, oid: Oid) -> bool {
    let depends = catalogs.rows("pg_depend", "objid", oid);
    let mut comes_with = depends
        .iter()
        .map(|row| (row.oid("classid"), row.letter("deptype")));
    !comes_with.any(|(of, kind)| of == class && matches!(kind, 'e' | 'i'))
}

/// A question for a server: which of its schemas hold something, in the same sense.
pub(crate) fn question_for_full_schemas() -> String {
    let things = IN_SCHEMAS.map(|(catalog, _, schema)| {
        format!("SELECT tableoid AS c, oid AS o, {schema} AS s FROM pg_catalog.{catalog}")
    });
    format!(
        "SELECT DISTINCT n.nspname FROM pg_catalog.pg_namespace n JOIN ({}) thing ON thing.s = n.oid \
         WHERE thing.o >= {FIRST_NORMAL_OID} AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d \
           WHERE d.classid = thing.c AND d.objid = thing.o AND d.deptype IN ('e', 'i')) ORDER BY 1",
        things.join(" UNION ALL ")
    )
}
