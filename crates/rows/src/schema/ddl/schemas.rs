//! Schemas that hold something which somebody made: what belongs to an extension does not count, and neither does what comes
//! with another thing (the array type of a type, the row type of a table).

use std::collections::BTreeSet;

use pgclinic_format::Oid;
use pgclinic_format::types::FIRST_NORMAL_OID;

use super::super::catalog::Catalogs;

/// Catalogs of things that stand in a schema: the catalog, its OID, and its column that says in which. Truth:
/// `src/include/catalog/pg_*.h`.
const IN_SCHEMAS: [(&str, Oid, &str); 12] = [
    ("pg_class", 1259, "relnamespace"),
    ("pg_proc", 1255, "pronamespace"),
    ("pg_type", 1247, "typnamespace"),
    ("pg_operator", 2617, "oprnamespace"),
    ("pg_opclass", 2616, "opcnamespace"),
    ("pg_opfamily", 2753, "opfnamespace"),
    ("pg_collation", 3456, "collnamespace"),
    ("pg_conversion", 2607, "connamespace"),
    ("pg_ts_config", 3602, "cfgnamespace"),
    ("pg_ts_dict", 3600, "dictnamespace"),
    ("pg_ts_parser", 3601, "prsnamespace"),
    ("pg_ts_template", 3764, "tmplnamespace"),
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
