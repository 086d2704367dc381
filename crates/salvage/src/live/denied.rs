//! Tables that the role has no right to read: nothing of them is lost, and a grant brings them.

use std::collections::BTreeSet;

use pgclinic_model::document::{NotChecked, TableAccount};
use pgclinic_model::plural;

use crate::salvage::not_salvaged;
use crate::schema::Quoting;

/// `insufficient_privilege`.
pub(super) const DENIED: &str = "42501";
/// Schemas that are named.
const SCHEMAS_MAX: usize = 5;

/// One line for all of them, with the statements that give the right.
pub(super) fn gap(tables: &[TableAccount], role: &str, quoting: Quoting) -> Option<NotChecked> {
    let denied = tables.iter().filter(|table| is_denied(table));
    let denied: Vec<&TableAccount> = denied.collect();
    (!denied.is_empty()).then_some(())?;
    let role = quoting.name(role);
    let grants: Vec<String> = match denied.as_slice() {
        [one] => {
            let schema = quoting.name(&one.schema);
            let table = quoting.qualified(&one.schema, &one.table);
            vec![format!(
                "GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT SELECT ON {table} TO {role}"
            )]
        }
        more => {
            let schemas: BTreeSet<&str> = more.iter().map(|own| own.schema.as_str()).collect();
            let named = schemas.into_iter().take(SCHEMAS_MAX);
            let named = named.map(|schema| quoting.name(schema));
            let grant = |schema: String| {
                format!(
                    "GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
                )
            };
            named.map(grant).collect()
        }
    };
    let what = format!("rows of {}", plural(denied.len(), "table"));
    let why = format!(
        "the role {role} has no right to read them. {} gives it, and so does GRANT pg_read_all_data TO {role}",
        grants.join("; ")
    );
    Some(not_salvaged(&what, &why))
}

/// The server gave nothing of the table, and its files were not given either.
fn is_denied(table: &TableAccount) -> bool {
    table.out_of_reach && table.pages_not_read > 0 && table.rows.found == 0
}
