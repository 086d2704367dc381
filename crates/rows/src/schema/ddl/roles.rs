//! Roles that the file names: they belong to the whole cluster, and may be missing where it is loaded.

use std::collections::BTreeSet;

use pgclinic_format::types::FIRST_NORMAL_OID;

use super::super::catalog::Catalogs;
use super::super::identifier::literal;
use super::item::Item;

/// Makes each role that owns something or has rights, if it is not there.
pub(super) fn missing_roles(catalogs: &Catalogs<'_>, items: &[Item]) -> String {
    let mut named = BTreeSet::new();
    let details = items.iter().flat_map(|item| item.details.iter().flatten());
    let texts: Vec<&String> = details
        .chain(items.iter().filter_map(|item| item.text.as_ref().ok()))
        .collect();
    for row in catalogs.table("pg_authid").iter() {
        let (name, quoted) = (row.name("rolname"), catalogs.quoted(&row.name("rolname")));
        let is_own = row.id() >= FIRST_NORMAL_OID || row.id() == 10;
        if is_own && texts.iter().any(|text| text.contains(&quoted)) {
            named.insert((name, quoted));
        }
    }
    let mut text = String::new();
    if !named.is_empty() {
        let names: Vec<String> = named
            .iter()
            .map(|(name, _)| name.escape_default().to_string())
            .collect();
        text = format!(
            "\n-- Roles that own things or have rights here; where they are missing they are made without a login: {}\n",
            names.join(", ")
        );
    }
    for (name, quoted) in named {
        let test = literal(&name);
        text += &format!(
            "\nDO $do$BEGIN\n  IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = {test}) THEN\n    \
             CREATE ROLE {quoted} NOLOGIN;\n  END IF;\nEND$do$;\n"
        );
    }
    text
}
