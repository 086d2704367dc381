//! What is said of the database itself: its owner and rights, its settings, those of roles in it,
//! and its comment. It has the name that it has where this is loaded. Truth: `dumpDatabaseConfig`
//! in `src/bin/pg_dump/pg_dump.c`, `makeAlterConfigCommand` in `dumputils.c`.

use pgclinic_format::types::FIRST_NORMAL_OID;

use super::super::catalog::{Catalogs, Row};
use super::super::identifier::literal;
use super::super::refusal::Written;
use super::grants::{Change, GrantObject, Rights};
use super::item::{Item, Items, Rank, class};

/// Settings that are lists of names, each quoted by itself; truth: `GUC_LIST_QUOTE` in
/// `src/backend/utils/misc/guc_tables.c`.
const LISTS: [&str; 6] = [
    "local_preload_libraries",
    "search_path",
    "session_preload_libraries",
    "shared_preload_libraries",
    "temp_tablespaces",
    "unix_socket_directories",
];

/// Comments that `initdb` gives: truth in `make_template0`, `make_postgres` and
/// `src/include/catalog/pg_database.dat`.
const COMMENTS: [(&str, &str); 3] = [
    ("postgres", "default administrative connection database"),
    ("template0", "unmodifiable empty database"),
    ("template1", "default template for new databases"),
];
/// Databases of which it takes everybody's right to temporary tables.
const TEMPLATES: [&str; 2] = ["template0", "template1"];

/// Numbers that no role has stand for what is of no role.
const OWNER: u32 = 1;
const RIGHTS: u32 = 2;

pub(super) fn collect(catalogs: &Catalogs<'_>, out: &mut Items) {
    let database = catalogs.catalog.database;
    let row = catalogs.row("pg_database", database);
    let name = row.map_or_else(String::new, |row| row.name("datname"));
    if let Some(row) = row {
        owner_and_rights(catalogs, row, &name, out);
    }
    for row in catalogs.rows("pg_db_role_setting", "setdatabase", database) {
        let role = row.oid("setrole");
        let (what, of) = match role {
            0 => ("settings of the database".to_owned(), Ok(None)),
            role => {
                let name = catalogs.role_name(role);
                let shown = name.clone().unwrap_or_else(|refusal| refusal.to_string());
                (
                    format!("settings of role {shown} in the database"),
                    name.map(Some),
                )
            }
        };
        let settings = row.texts("setconfig");
        let text = row.whole().and(of).map(|role| {
            let lines = settings
                .iter()
                .map(|setting| statement(role.as_deref(), setting));
            lines.collect::<Vec<_>>().join("\n")
        });
        push(what, text, role, out);
    }
    for row in catalogs.rows("pg_shdescription", "objoid", database) {
        let comment = row.name("description");
        let is_of_initdb = COMMENTS.contains(&(&name, &comment));
        if row.oid("classoid") == class::DATABASE && !is_of_initdb {
            let comment = literal(&comment);
            let text = row.whole().map(|()| {
                format!(
                    "DO $do$BEGIN\n  EXECUTE pg_catalog.format('COMMENT ON DATABASE %I IS %L', pg_catalog.current_database(), {});\nEND$do$;",
                    safe(&comment)
                )
            });
            push("the comment of the database".into(), text, 0, out);
        }
    }
}

/// A database that was just made belongs to who made it, and everybody may connect; those that
/// `initdb` makes are there.
fn owner_and_rights(catalogs: &Catalogs<'_>, row: Row<'_>, name: &str, out: &mut Items) {
    let owner = row.oid("datdba");
    if owner >= FIRST_NORMAL_OID {
        let statement = catalogs.role_name(owner).map(|role| {
            on_the_database(&format!("ALTER DATABASE %I OWNER TO {}", as_format(&role)))
        });
        push("the owner of the database".into(), statement, OWNER, out);
    }
    let kind = GrantObject::Database;
    let now = Rights::of(kind, row, "datacl");
    let of_template = || Rights::with_everybody(kind, owner, "CONNECT", catalogs.major);
    let first = TEMPLATES.contains(&name).then(of_template);
    let change = Change {
        kind,
        column: None,
        owner,
        before: first.as_ref(),
        after: now.as_ref(),
    };
    // Roles may have signs that `format` knows, the name of the database comes by itself.
    const NAME: &str = "\u{1}";
    if let Some(statements) = change.statements(catalogs, &|| Ok(NAME.to_owned())) {
        let text = statements.map(|statements| {
            let lines = statements.split(";\n").map(|line| {
                let line = line.strip_suffix(';').unwrap_or(line);
                on_the_database(&as_format(line).replace(NAME, "%I"))
            });
            lines.collect::<Vec<_>>().join("\n")
        });
        push("rights on the database".into(), text, RIGHTS, out);
    }
}

fn as_format(text: &str) -> String {
    text.replace('%', "%%")
}

/// Runs what `format` makes of this and of the name that the database has here.
fn on_the_database(statement: &str) -> String {
    format!(
        "DO $do$BEGIN\n  EXECUTE pg_catalog.format({}, pg_catalog.current_database());\nEND$do$;",
        safe(&literal(statement))
    )
}

fn push(what: String, text: Written<String>, role: u32, out: &mut Items) {
    let key = (class::DATABASE_PROPERTY, role);
    let mut item = Item::new(Rank::Database, key, what, text);
    item.spoken.clear();
    out.push(item);
}

/// Nothing in a literal ends the text between the dollars.
fn safe(literal: &str) -> String {
    literal.replace("$do$", "$'||'do$")
}

fn statement(role: Option<&str>, setting: &str) -> String {
    let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
    let values = if LISTS.contains(&name) {
        list(value)
            .iter()
            .map(|part| literal(part))
            .collect::<Vec<_>>()
            .join(", ")
    } else {
        literal(value)
    };
    let quoted = format!("\"{}\"", name.replace('"', "\"\"").replace('.', "\".\""));
    let tail = literal(&format!("SET {quoted} TO {values}"));
    let tail = safe(&tail);
    // `format` takes only what it is given: signs of the values are none of its own.
    match role {
        None => format!(
            "DO $do$BEGIN\n  EXECUTE pg_catalog.format('ALTER DATABASE %I ', pg_catalog.current_database()) || {tail};\nEND$do$;"
        ),
        Some(role) => format!(
            "DO $do$BEGIN\n  EXECUTE pg_catalog.format('ALTER ROLE %s IN DATABASE %I ', {}, pg_catalog.current_database()) || {tail};\nEND$do$;",
            safe(&literal(role))
        ),
    }
}

/// Names between commas, with double quotes around some.
fn list(value: &str) -> Vec<String> {
    let (mut parts, mut open, mut is_quoted) = (Vec::new(), String::new(), false);
    for sign in value.chars() {
        match sign {
            '"' => {
                // Two of them inside are one.
                if !is_quoted && open.ends_with('\u{1}') {
                    open.pop();
                    open.push('"');
                } else if is_quoted {
                    open.push('\u{1}');
                }
                is_quoted = !is_quoted;
            }
            ',' if !is_quoted => parts.push(std::mem::take(&mut open)),
            other => open.push(other),
        }
    }
    parts.push(open);
    let clean = parts
        .iter()
        .map(|part| part.replace('\u{1}', "").trim().to_owned());
    clean.filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_set_where_they_are_loaded() {
        assert_eq!(
            list(r#""$user", public, "a, ""b""""#),
            ["$user", "public", "a, \"b\""]
        );
        let text = statement(None, "search_path=\"$user\", public");
        assert!(
            text.contains(r#"'SET "search_path" TO ''$user'', ''public'''"#),
            "{text}"
        );
        let text = statement(Some("r"), "my.own=it's $do$");
        assert!(
            text.contains("'SET \"my\".\"own\" TO ''it''''s $'||'do$''"),
            "{text}"
        );
    }
}
