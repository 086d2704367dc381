//! Schemas, extensions, languages and collations.

use pgclinic_format::types::FIRST_NORMAL_OID;

use super::super::catalog::{Catalogs, Row};
use super::super::identifier::literal;
use super::super::refusal::Written;
use super::grants::GrantObject;
use super::item::{Item, Items, Rank, class, is_own};

pub(super) fn collect(catalogs: &Catalogs<'_>, out: &mut Items) {
    for row in catalogs.table("pg_namespace").iter() {
        out.extend(schema(catalogs, row));
    }
    for row in catalogs.table("pg_extension").iter() {
        if row.id() >= FIRST_NORMAL_OID {
            out.push(extension(catalogs, row));
        }
    }
    for row in catalogs.table("pg_language").iter() {
        if is_own(catalogs, class::LANGUAGE, row.id()) {
            out.push(language(catalogs, row));
        }
    }
    for row in catalogs.table("pg_am").iter() {
        if is_own(catalogs, class::ACCESS_METHOD, row.id()) {
            out.push(access_method(catalogs, row));
        }
    }
    for row in catalogs.table("pg_collation").iter() {
        if is_own(catalogs, class::COLLATION, row.id()) {
            out.push(collation(catalogs, row));
        }
    }
}

/// Every schema that a user made, and the owner of `public`.
fn schema(catalogs: &Catalogs<'_>, row: Row<'_>) -> Option<Item> {
    let name = row.name("nspname");
    let key = (class::SCHEMA, row.id());
    let quoted = catalogs.quoted(&name);
    let what = format!("SCHEMA {quoted}");
    let owner = row.oid("nspowner");
    if name == "public" && row.id() < FIRST_NORMAL_OID {
        let text = Ok(format!("CREATE SCHEMA IF NOT EXISTS {quoted};"));
        return Some(Item::new(Rank::Schema, key, what, text).owned_by(owner));
    }
    if !is_own(catalogs, class::SCHEMA, row.id()) || name.starts_with("pg_") {
        return None;
    }
    let text = Ok(format!("CREATE SCHEMA {quoted};"));
    let item = Item::new(Rank::Schema, key, what, text).owned_by(owner);
    Some(item.with_rights(GrantObject::Schema, row, "nspacl"))
}

fn extension(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = catalogs.quoted(&row.name("extname"));
    let text = match row.oid("extnamespace") {
        // It is lost.
        0 => Ok(format!("CREATE EXTENSION IF NOT EXISTS {name};")),
        oid => catalogs.schema_name(oid).map(|schema| {
            let schema = catalogs.quoted(&schema);
            format!("CREATE EXTENSION IF NOT EXISTS {name} WITH SCHEMA {schema};")
        }),
    };
    let key = (class::EXTENSION, row.id());
    Item::new(Rank::Extension, key, format!("EXTENSION {name}"), text)
}

fn language(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = catalogs.quoted(&row.name("lanname"));
    let text = || -> Written<String> {
        let handler = row.oid("lanplcallfoid");
        if handler == 0 {
            return Ok(format!("CREATE LANGUAGE {name};"));
        }
        let trusted = if row.flag("lanpltrusted") {
            "TRUSTED "
        } else {
            ""
        };
        let mut text = format!(
            "CREATE {trusted}LANGUAGE {name} HANDLER {}",
            catalogs.function_name(handler)?
        );
        for (word, column) in [("INLINE", "laninline"), ("VALIDATOR", "lanvalidator")] {
            if row.oid(column) != 0 {
                text += &format!(" {word} {}", catalogs.function_name(row.oid(column))?);
            }
        }
        Ok(text + ";")
    };
    let key = (class::LANGUAGE, row.id());
    let item = Item::new(Rank::Language, key, format!("LANGUAGE {name}"), text());
    let item = item.owned_by(row.oid("lanowner"));
    item.with_rights(GrantObject::Language, row, "lanacl")
}

fn access_method(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = catalogs.quoted(&row.name("amname"));
    let word = if row.letter("amtype") == 't' {
        "TABLE"
    } else {
        "INDEX"
    };
    let handler = catalogs.function_name(row.oid("amhandler"));
    let text = handler
        .map(|handler| format!("CREATE ACCESS METHOD {name} TYPE {word} HANDLER {handler};"));
    let key = (class::ACCESS_METHOD, row.id());
    Item::new(
        Rank::AccessMethod,
        key,
        format!("ACCESS METHOD {name}"),
        text,
    )
}

fn collation(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = catalogs.with_schema(row.oid("collnamespace"), &row.name("collname"));
    let what = named("COLLATION", &name);
    let text = name.map(|name| {
        let mut parts = Vec::new();
        let provider = match row.letter("collprovider") {
            'i' => "icu",
            'b' => "builtin",
            'c' => "libc",
            _ => "default",
        };
        parts.push(format!("provider = {provider}"));
        if row.number("collisdeterministic") == Some(0) {
            parts.push("deterministic = false".into());
        }
        // `colliculocale` (15) became `colllocale` (17).
        let locale = row.text("colllocale").or_else(|| row.text("colliculocale"));
        let (collate, ctype) = (row.text("collcollate"), row.text("collctype"));
        match (locale, collate, ctype) {
            (Some(locale), _, _) => parts.push(format!("locale = {}", literal(&locale))),
            (None, Some(collate), Some(ctype)) if collate == ctype => {
                parts.push(format!("locale = {}", literal(&collate)));
            }
            (None, collate, ctype) => {
                let collate = literal(&collate.unwrap_or_default());
                let ctype = literal(&ctype.unwrap_or_default());
                parts.push(format!("lc_collate = {collate}, lc_ctype = {ctype}"));
            }
        }
        if let Some(rules) = row.text("collicurules") {
            parts.push(format!("rules = {}", literal(&rules)));
        }
        format!("CREATE COLLATION {name} ({});", parts.join(", "))
    });
    let key = (class::COLLATION, row.id());
    Item::new(Rank::Collation, key, what, text).owned_by(row.oid("collowner"))
}

/// `KIND name`, for headings, whatever became of the name.
pub(super) fn named(kind: &str, name: &Written<String>) -> String {
    match name {
        Ok(name) => format!("{kind} {name}"),
        Err(refusal) => format!("{kind} ({refusal})"),
    }
}
