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
    for row in catalogs.table("pg_class").iter() {
        if is_own(catalogs, class::RELATION, row.id()) {
            continue;
        }
        let kind = match row.letter("relkind") {
            'r' | 'v' | 'm' | 'p' | 'f' => GrantObject::Table,
            'S' => GrantObject::Sequence,
            _ => continue,
        };
        let name = || catalogs.relation_name(row.id());
        let found = Changed {
            class: class::RELATION,
            kind,
            owner: row.oid("relowner"),
            now: Rights::of(kind, row, "relacl"),
        };
        out.extend(found.item(catalogs, row.id(), &initial, &name));
    }
    for row in catalogs.table("pg_proc").iter() {
        if is_own(catalogs, class::FUNCTION, row.id()) {
            continue;
        }
        let kind = match row.letter("prokind") {
            'p' => GrantObject::Procedure,
            _ => GrantObject::Function,
        };
        let name = || catalogs.function_signature(row.id());
        let found = Changed {
            class: class::FUNCTION,
            kind,
            owner: row.oid("proowner"),
            now: Rights::of(kind, row, "proacl"),
        };
        out.extend(found.item(catalogs, row.id(), &initial, &name));
    }
}

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

/// What `initdb` or an extension's script left, by class and number.
type Initial<'c> = BTreeMap<(Oid, Oid), Row<'c>>;

fn initial_rights<'c>(catalogs: &'c Catalogs<'_>) -> Initial<'c> {
    let rows = catalogs.table("pg_init_privs").iter();
    let whole = rows.filter(|row| row.int("objsubid") == 0);
    whole
        .map(|row| ((row.oid("classoid"), row.oid("objoid")), row))
        .collect()
}

/// Something that nobody's script made, with its rights.
struct Changed {
    class: Oid,
    kind: GrantObject,
    owner: Oid,
    now: Option<Rights>,
}

impl Changed {
    fn item(
        &self,
        catalogs: &Catalogs<'_>,
        oid: Oid,
        initial: &Initial<'_>,
        name: &dyn Fn() -> Written<String>,
    ) -> Option<Item> {
        let first = initial.get(&(self.class, oid));
        let first = first.and_then(|row| Rights::of(self.kind, *row, "initprivs"));
        let change = Change {
            kind: self.kind,
            owner: self.owner,
            before: first.as_ref(),
            after: self.now.as_ref(),
        };
        let statements = change.statements(catalogs, name)?;
        let what = match name() {
            Ok(name) => format!("rights on {name}"),
            Err(refusal) => format!("rights ({refusal})"),
        };
        let key = (class::RIGHTS, oid);
        let mut item = Item::new(Rank::DefaultRights, key, what, statements);
        item.spoken.clear();
        Some(item)
    }
}
