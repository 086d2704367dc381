//! ALTER DEFAULT PRIVILEGES, and rights on what every database has, as far as they are no longer
//! those of `initdb` or of an extension's script; truth: `dumpDefaultACL` and `buildACLCommands` in
//! `src/bin/pg_dump`.

use std::collections::BTreeMap;

use pgclinic_format::Oid;

use super::super::catalog::{Catalogs, Row};
use super::super::refusal::Written;
use super::grants::{self, Change, GrantObject, Rights};
use super::item::{Item, Items, Rank, class, is_own};

pub(super) fn collect(catalogs: &Catalogs<'_>, out: &mut Items) {
    for row in catalogs.table("pg_default_acl").iter() {
        out.push(default_rights(catalogs, row));
    }
    let initial = initial_rights(catalogs);
    for place in PLACES {
        for row in catalogs.table(place.catalog).iter() {
            let is_relation = place.class == class::RELATION;
            if is_own(catalogs, place.class, row.id()) || (is_relation && is_lost(catalogs, row)) {
                continue;
            }
            if let Some(kind) = (place.kind)(row) {
                out.extend(changed(catalogs, (place, kind, row), &initial));
            }
            if is_relation {
                out.extend(changed_columns(catalogs, row, &initial));
            }
        }
    }
}

/// Its row, or one of its columns, is put together from elsewhere: nothing is known of its rights.
fn is_lost(catalogs: &Catalogs<'_>, row: Row<'_>) -> bool {
    let mut lost = catalogs.catalog.lost_relations.iter();
    lost.any(|lost| lost.oid == Some(row.id()))
        || catalogs.catalog.lost_columns.contains_key(&row.id())
}

/// A catalog whose rows have rights.
struct Place {
    catalog: &'static str,
    class: Oid,
    owner: &'static str,
    rights: &'static str,
    /// Nothing for rows that no GRANT names.
    kind: fn(Row<'_>) -> Option<GrantObject>,
    name: fn(&Catalogs<'_>, Row<'_>) -> Written<String>,
}

const PLACES: &[Place] = &[
    Place {
        catalog: "pg_namespace",
        class: class::SCHEMA,
        owner: "nspowner",
        rights: "nspacl",
        kind: |_| Some(GrantObject::Schema),
        name: |catalogs, row| Ok(catalogs.quoted(&row.name("nspname"))),
    },
    Place {
        catalog: "pg_language",
        class: class::LANGUAGE,
        owner: "lanowner",
        rights: "lanacl",
        kind: |_| Some(GrantObject::Language),
        name: |catalogs, row| Ok(catalogs.quoted(&row.name("lanname"))),
    },
    Place {
        catalog: "pg_type",
        class: class::TYPE,
        owner: "typowner",
        rights: "typacl",
        kind: |_| Some(GrantObject::Type),
        name: |catalogs, row| catalogs.type_name(row.id()),
    },
    Place {
        catalog: "pg_foreign_data_wrapper",
        class: class::WRAPPER,
        owner: "fdwowner",
        rights: "fdwacl",
        kind: |_| Some(GrantObject::Wrapper),
        name: |catalogs, row| Ok(catalogs.quoted(&row.name("fdwname"))),
    },
    Place {
        catalog: "pg_foreign_server",
        class: class::SERVER,
        owner: "srvowner",
        rights: "srvacl",
        kind: |_| Some(GrantObject::Server),
        name: |catalogs, row| Ok(catalogs.quoted(&row.name("srvname"))),
    },
    Place {
        catalog: "pg_class",
        class: class::RELATION,
        owner: "relowner",
        rights: "relacl",
        kind: |row| match row.letter("relkind") {
            'r' | 'v' | 'm' | 'p' | 'f' => Some(GrantObject::Table),
            'S' => Some(GrantObject::Sequence),
            _ => None,
        },
        name: |catalogs, row| catalogs.relation_name(row.id()),
    },
    Place {
        catalog: "pg_proc",
        class: class::FUNCTION,
        owner: "proowner",
        rights: "proacl",
        kind: |row| match row.letter("prokind") {
            'p' => Some(GrantObject::Procedure),
            _ => Some(GrantObject::Function),
        },
        name: |catalogs, row| catalogs.function_signature(row.id()),
    },
];

fn default_rights(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let key = (class::DEFAULT_RIGHTS, row.id());
    let text = default_rights_text(catalogs, row);
    let role = catalogs.role_name(row.oid("defaclrole"));
    let what = match role {
        Ok(role) => format!("DEFAULT PRIVILEGES FOR ROLE {role}"),
        Err(refusal) => format!("DEFAULT PRIVILEGES ({refusal})"),
    };
    let mut item = Item::new(Rank::DefaultRights, key, what, text);
    item.spoken.clear();
    item
}

fn default_rights_text(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    row.whole()?;
    let (kind, on) = match row.letter("defaclobjtype") {
        'S' => (GrantObject::Sequence, "SEQUENCES"),
        'f' => (GrantObject::Function, "FUNCTIONS"),
        'T' => (GrantObject::Type, "TYPES"),
        'n' => (GrantObject::Schema, "SCHEMAS"),
        'L' => (GrantObject::LargeObject, "LARGE OBJECTS"),
        _ => (GrantObject::Table, "TABLES"),
    };
    let owner = row.oid("defaclrole");
    let mut head = format!(
        "ALTER DEFAULT PRIVILEGES FOR ROLE {}",
        catalogs.role_name(owner)?
    );
    let schema = row.oid("defaclnamespace");
    if schema != 0 {
        let schema = catalogs.schema_name(schema)?;
        head += &format!(" IN SCHEMA {}", catalogs.quoted(&schema));
    }
    let mut statements = Vec::new();
    if let Some(rights) = Rights::of(kind, row, "defaclacl") {
        // Those of a schema are added to what there is, the others stand in its place.
        let base = if schema == 0 {
            grants::Base::Usual
        } else {
            grants::Base::Nothing
        };
        grants::write_on(catalogs, &rights, on, (owner, base), &mut statements);
    }
    let statements: Written<Vec<String>> = statements.into_iter().collect();
    let lines = statements?.into_iter();
    let lines: Vec<String> = lines.map(|line| format!("{head} {line}")).collect();
    Ok(lines.join("\n"))
}

/// What `initdb` or an extension's script left, by class, number and column, 0 for the whole.
type Initial<'c> = BTreeMap<(Oid, Oid, i64), Row<'c>>;

fn initial_rights<'c>(catalogs: &'c Catalogs<'_>) -> Initial<'c> {
    let rows = catalogs.table("pg_init_privs").iter();
    rows.map(|row| {
        let key = (row.oid("classoid"), row.oid("objoid"), row.int("objsubid"));
        (key, row)
    })
    .collect()
}

/// `initdb` makes this schema after it has written down what rights there are first.
///
/// Truth: `setup_privileges` and `setup_schema` in `src/bin/initdb/initdb.c`, and
/// `src/backend/catalog/information_schema.sql`, which gives everybody the same on all of it.
fn of_information_schema(
    catalogs: &Catalogs<'_>,
    (place, kind, row): (&Place, GrantObject, Row<'_>),
) -> Option<Rights> {
    let (schema, everybody) = match place.class {
        class::SCHEMA => (row.id(), "USAGE"),
        class::RELATION => (row.oid("relnamespace"), "SELECT"),
        _ => return None,
    };
    let is_its = catalogs.schema_name(schema).ok()? == "information_schema";
    let owner = row.oid(place.owner);
    is_its.then(|| Rights::with_everybody(kind, owner, everybody, catalogs.major))
}

/// What no statement of ours makes, where its rights are no longer those that it began with.
fn changed(
    catalogs: &Catalogs<'_>,
    (place, kind, row): (&Place, GrantObject, Row<'_>),
    initial: &Initial<'_>,
) -> Option<Item> {
    let first = initial.get(&(place.class, row.id(), 0));
    let first = first.and_then(|first| Rights::of(kind, *first, "initprivs"));
    let now = Rights::of(kind, row, place.rights);
    let first = first.or_else(|| {
        now.as_ref()?;
        of_information_schema(catalogs, (place, kind, row))
    });
    let change = Change {
        kind,
        column: None,
        owner: row.oid(place.owner),
        before: first.as_ref(),
        after: now.as_ref(),
    };
    let name = || (place.name)(catalogs, row);
    let statements = change.statements(catalogs, &name)?;
    Some(item_of("rights on", name(), row, statements))
}

/// The same of the columns of a relation.
fn changed_columns(catalogs: &Catalogs<'_>, row: Row<'_>, initial: &Initial<'_>) -> Option<Item> {
    let name = || catalogs.relation_name(row.id());
    let kind = GrantObject::Column;
    let attributes = catalogs.attributes(row.id()).into_iter();
    let statements = attributes.filter_map(|attribute| {
        let first = initial.get(&(class::RELATION, row.id(), attribute.int("attnum")));
        let first = first.and_then(|first| Rights::of(kind, *first, "initprivs"));
        let now = Rights::of(kind, attribute, "attacl");
        let change = Change {
            kind,
            column: Some(catalogs.quoted(&attribute.name("attname"))),
            owner: row.oid("relowner"),
            before: first.as_ref(),
            after: now.as_ref(),
        };
        change.statements(catalogs, &name)
    });
    let statements: Vec<Written<String>> = statements.collect();
    if statements.is_empty() {
        return None;
    }
    let statements: Written<Vec<String>> = statements.into_iter().collect();
    let text = statements.map(|statements| statements.join("\n"));
    Some(item_of("rights on columns of", name(), row, text))
}

fn item_of(what: &str, name: Written<String>, row: Row<'_>, text: Written<String>) -> Item {
    let what = match name {
        Ok(name) => format!("{what} {name}"),
        Err(refusal) => format!("{what} ({refusal})"),
    };
    let mut item = Item::new(Rank::DefaultRights, (class::RIGHTS, row.id()), what, text);
    item.spoken.clear();
    item
}
