//! Roles that the file names: they belong to the whole cluster, and may be missing where it is
//! loaded.

use std::collections::BTreeSet;
use std::io;

use pgclinic_format::types::FIRST_NORMAL_OID;

use super::super::catalog::Catalogs;
use super::super::identifier::literal;
use super::item::Item;

/// Makes each role that owns something or has rights, if it is not there.
pub(super) fn missing_roles(catalogs: &Catalogs<'_>, items: &[Item]) -> io::Result<String> {
    let roles = catalogs.table("pg_authid").iter();
    let own = roles.filter(|row| row.id() >= FIRST_NORMAL_OID || row.id() == 10);
    let mut named: BTreeSet<(String, String)> = own
        .map(|row| {
            let name = row.name("rolname");
            let quoted = catalogs.quoted(&name);
            (name, quoted)
        })
        .collect();
    let absent = not_named(
        items,
        named.iter().map(|(_, quoted)| quoted.clone()).collect(),
    )?;
    named.retain(|(_, quoted)| !absent.contains(quoted));
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
    Ok(text)
}

/// Those of the names that no text has. Long texts are read once, and only for what no short one
/// has.
fn not_named(items: &[Item], mut names: Vec<String>) -> io::Result<Vec<String>> {
    for item in items {
        for text in item.kept_details.iter().flatten() {
            text.find(&mut names)?;
        }
    }
    for text in items.iter().filter_map(|item| item.text.as_ref().ok()) {
        if names.is_empty() {
            break;
        }
        text.find(&mut names)?;
    }
    Ok(names)
}
