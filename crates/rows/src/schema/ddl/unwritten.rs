//! What a schema holds that is not written here: counted, and named.

use super::super::catalog::Catalogs;
use super::Refused;
use super::item::is_own;

/// Catalogs whose rows are not written: their OID, their column with a name, and what they are.
const KINDS: &[(&str, u32, &str, &str)] = &[
    ("pg_conversion", 2607, "conname", "CONVERSION"),
    ("pg_transform", 3576, "", "TRANSFORM"),
    ("pg_publication", 6104, "pubname", "PUBLICATION"),
    ("pg_subscription", 6100, "subname", "SUBSCRIPTION"),
    ("pg_default_acl", 826, "", "DEFAULT PRIVILEGES"),
    ("pg_ts_parser", 3601, "prsname", "TEXT SEARCH PARSER"),
    ("pg_ts_template", 3764, "tmplname", "TEXT SEARCH TEMPLATE"),
];

pub(super) fn refused(catalogs: &Catalogs<'_>) -> Vec<Refused> {
    let mut refused = Vec::new();
    for (table, class, name, what) in KINDS {
        for row in catalogs.table(table).iter() {
            if is_own(catalogs, *class, row.id()) {
                refused.push(Refused {
                    what: format!("{what} {}", row.name(name)).trim_end().to_owned(),
                    why: "things of this kind are not written".into(),
                });
            }
        }
    }
    refused
}
