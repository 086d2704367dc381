//! What catalogs lost and nothing puts together again, by the names that their indexes still have.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_format::Oid;
use pgclinic_format::types::FIRST_NORMAL_OID;

use super::super::catalog::{Catalogs, Row, named_some};
use super::item::{Item, Items, class, is_own};

/// A catalog whose lost rows are named.
struct Kind {
    catalog: &'static str,
    /// Whose OIDs are in it; extensions make their members again.
    class: Oid,
    word: &'static str,
    /// How a row is called; nothing where it needs no word.
    name: fn(&Catalogs<'_>, Row<'_>) -> Option<String>,
}

const KINDS: &[Kind] = &[
    kind("pg_policy", class::POLICY, "POLICY", |catalogs, row| {
        on_table(catalogs, row, "polname", "polrelid")
    }),
    kind("pg_trigger", class::TRIGGER, "TRIGGER", |catalogs, row| {
        let is_internal = row.name("tgname").contains("_ConstraintTrigger_");
        on_table(catalogs, row, "tgname", "tgrelid").filter(|_| !is_internal)
    }),
    kind("pg_rewrite", class::RULE, "RULE", |catalogs, row| {
        let is_view = row.name("rulename") == "_RETURN";
        on_table(catalogs, row, "rulename", "ev_class").filter(|_| !is_view)
    }),
    kind("pg_constraint", class::CONSTRAINT, "CONSTRAINT", constraint),
    kind(
        "pg_publication",
        class::PUBLICATION,
        "PUBLICATION",
        |catalogs, row| Some(catalogs.quoted(&row.name("pubname"))),
    ),
    kind(
        "pg_publication_rel",
        class::LOST,
        "TABLE OF PUBLICATION",
        published,
    ),
    kind(
        "pg_subscription",
        class::SUBSCRIPTION,
        "SUBSCRIPTION",
        |catalogs, row| {
            let is_own = row.oid("subdbid") == catalogs.catalog.database;
            is_own.then(|| catalogs.quoted(&row.name("subname")))
        },
    ),
    kind(
        "pg_opclass",
        class::CLASS,
        "OPERATOR CLASS",
        |catalogs, row| in_schema(catalogs, row, "opcname", "opcnamespace"),
    ),
    kind(
        "pg_opfamily",
        class::FAMILY,
        "OPERATOR FAMILY",
        |catalogs, row| in_schema(catalogs, row, "opfname", "opfnamespace"),
    ),
    kind("pg_operator", class::OPERATOR, "OPERATOR", operator),
    kind("pg_cast", class::CAST, "CAST", |catalogs, row| {
        let source = catalogs.type_name(row.oid("castsource")).ok()?;
        let target = catalogs.type_name(row.oid("casttarget")).ok()?;
        Some(format!("({source} AS {target})"))
    }),
    kind("pg_proc", class::FUNCTION, "FUNCTION", function),
    kind(
        "pg_conversion",
        class::CONVERSION,
        "CONVERSION",
        |catalogs, row| in_schema(catalogs, row, "conname", "connamespace"),
    ),
    kind(
        "pg_statistic_ext",
        class::STATISTICS,
        "STATISTICS",
        |catalogs, row| in_schema(catalogs, row, "stxname", "stxnamespace"),
    ),
    kind(
        "pg_ts_config",
        class::CONFIGURATION,
        "TEXT SEARCH CONFIGURATION",
        |catalogs, row| in_schema(catalogs, row, "cfgname", "cfgnamespace"),
    ),
    kind(
        "pg_ts_dict",
        class::DICTIONARY,
        "TEXT SEARCH DICTIONARY",
        |catalogs, row| in_schema(catalogs, row, "dictname", "dictnamespace"),
    ),
    kind(
        "pg_ts_parser",
        class::PARSER,
        "TEXT SEARCH PARSER",
        |catalogs, row| in_schema(catalogs, row, "prsname", "prsnamespace"),
    ),
    kind(
        "pg_ts_template",
        class::TEMPLATE,
        "TEXT SEARCH TEMPLATE",
        |catalogs, row| in_schema(catalogs, row, "tmplname", "tmplnamespace"),
    ),
    kind(
        "pg_event_trigger",
        class::EVENT_TRIGGER,
        "EVENT TRIGGER",
        |catalogs, row| Some(catalogs.quoted(&row.name("evtname"))),
    ),
    kind(
        "pg_language",
        class::LANGUAGE,
        "LANGUAGE",
        |catalogs, row| Some(catalogs.quoted(&row.name("lanname"))),
    ),
    kind(
        "pg_am",
        class::ACCESS_METHOD,
        "ACCESS METHOD",
        |catalogs, row| Some(catalogs.quoted(&row.name("amname"))),
    ),
    kind(
        "pg_foreign_server",
        class::SERVER,
        "SERVER",
        |catalogs, row| Some(catalogs.quoted(&row.name("srvname"))),
    ),
    kind(
        "pg_foreign_data_wrapper",
        class::WRAPPER,
        "FOREIGN DATA WRAPPER",
        |catalogs, row| Some(catalogs.quoted(&row.name("fdwname"))),
    ),
    kind(
        "pg_user_mapping",
        class::USER_MAPPING,
        "USER MAPPING",
        user_mapping,
    ),
    kind(
        "pg_default_acl",
        class::DEFAULT_RIGHTS,
        "DEFAULT PRIVILEGES",
        default_rights,
    ),
    kind("pg_description", class::LOST, "COMMENT ON", comment),
];

const fn kind(
    catalog: &'static str,
    class: Oid,
    word: &'static str,
    name: fn(&Catalogs<'_>, Row<'_>) -> Option<String>,
) -> Kind {
    Kind {
        catalog,
        class,
        word,
        name,
    }
}

pub(super) fn collect(catalogs: &Catalogs<'_>, out: &mut Items) {
    for kind in KINDS {
        // A row that was changed has an entry for each of its versions.
        let mut named: BTreeMap<String, Oid> = BTreeMap::new();
        for row in catalogs.lost_rows(kind.catalog) {
            let is_named = row.id() == 0 || is_own(catalogs, kind.class, row.id());
            let name = is_named.then(|| (kind.name)(catalogs, row)).flatten();
            named.extend(name.map(|name| (name, row.id())));
        }
        out.extend(named.into_iter().map(|(name, oid)| {
            let why = format!("its row in {} is lost", kind.catalog);
            Item::lost(oid, format!("{} {name}", kind.word), why)
        }));
    }
    collations(catalogs, out);
}

fn in_schema(catalogs: &Catalogs<'_>, row: Row<'_>, name: &str, schema: &str) -> Option<String> {
    let name = row.name(name);
    let known = catalogs.with_schema(row.oid(schema), &name);
    (!name.is_empty()).then(|| known.unwrap_or_else(|_| catalogs.quoted(&name)))
}

/// Nothing of a table that is not there, or that an extension makes.
fn on_table(catalogs: &Catalogs<'_>, row: Row<'_>, name: &str, table: &str) -> Option<String> {
    let table = row.oid(table);
    if !is_own(catalogs, class::RELATION, table) || row.name(name).is_empty() {
        return None;
    }
    let table = catalogs.relation_name(table).ok()?;
    Some(format!("{} ON {table}", catalogs.quoted(&row.name(name))))
}

fn constraint(catalogs: &Catalogs<'_>, row: Row<'_>) -> Option<String> {
    let domain = row.oid("contypid");
    if domain != 0 {
        if !is_own(catalogs, class::TYPE, domain) {
            return None;
        }
        let domain = catalogs.type_name(domain).ok()?;
        let name = catalogs.quoted(&row.name("conname"));
        return Some(format!("{name} ON DOMAIN {domain}"));
    }
    let is_said = is_not_null_of_column(catalogs, row);
    on_table(catalogs, row, "conname", "conrelid").filter(|_| !is_said)
}

/// Since 18 NOT NULL is a constraint, and the column says it too.
fn is_not_null_of_column(catalogs: &Catalogs<'_>, row: Row<'_>) -> bool {
    let Some(name) = row.text("conname").filter(|_| catalogs.major >= 18) else {
        return false;
    };
    let columns = catalogs.attributes(row.oid("conrelid"));
    let mut not_null = columns.iter().filter(|column| column.flag("attnotnull"));
    not_null.any(|column| name.ends_with(&format!("_{}_not_null", column.name("attname"))))
}

fn published(catalogs: &Catalogs<'_>, row: Row<'_>) -> Option<String> {
    let publication = catalogs.row("pg_publication", row.oid("prpubid"))?;
    let table = catalogs.relation_name(row.oid("prrelid")).ok()?;
    let publication = catalogs.quoted(&publication.name("pubname"));
    Some(format!("{publication}: {table}"))
}

fn operator(catalogs: &Catalogs<'_>, row: Row<'_>) -> Option<String> {
    let schema = catalogs.schema_name(row.oid("oprnamespace")).ok()?;
    let schema = catalogs.quoted(&schema);
    let side = |column| match row.oid(column) {
        0 => Some("NONE".to_owned()),
        oid => catalogs.type_name(oid).ok(),
    };
    let (left, right) = (side("oprleft")?, side("oprright")?);
    Some(format!(
        "{schema}.{} ({left}, {right})",
        row.name("oprname")
    ))
}

fn function(catalogs: &Catalogs<'_>, row: Row<'_>) -> Option<String> {
    let name = in_schema(catalogs, row, "proname", "pronamespace")?;
    let types = row.oids("proargtypes").into_iter();
    let types: Option<Vec<String>> = types.map(|oid| catalogs.type_name(oid).ok()).collect();
    Some(format!("{name}({})", types?.join(", ")))
}

fn user_mapping(catalogs: &Catalogs<'_>, row: Row<'_>) -> Option<String> {
    let user = match row.oid("umuser") {
        0 => "PUBLIC".to_owned(),
        oid => catalogs.role_name(oid).ok()?,
    };
    let server = catalogs.row("pg_foreign_server", row.oid("umserver"))?;
    let server = catalogs.quoted(&server.name("srvname"));
    Some(format!("FOR {user} SERVER {server}"))
}

fn default_rights(catalogs: &Catalogs<'_>, row: Row<'_>) -> Option<String> {
    let role = catalogs.role_name(row.oid("defaclrole")).ok()?;
    let schema = match row.oid("defaclnamespace") {
        0 => String::new(),
        oid => format!(
            " IN SCHEMA {}",
            catalogs.quoted(&catalogs.schema_name(oid).ok()?)
        ),
    };
    let things = match row.letter("defaclobjtype") {
        'r' => "TABLES",
        'S' => "SEQUENCES",
        'f' => "FUNCTIONS",
        'T' => "TYPES",
        'n' => "SCHEMAS",
        'L' => "LARGE OBJECTS",
        _ => return None,
    };
    Some(format!("FOR ROLE {role}{schema} ON {things}"))
}

fn comment(catalogs: &Catalogs<'_>, row: Row<'_>) -> Option<String> {
    let (of, oid) = (row.oid("classoid"), row.oid("objoid"));
    if !is_own(catalogs, of, oid) {
        return None;
    }
    let on = |table: &str, name: &str, relation: &str| {
        on_table(catalogs, catalogs.row(table, oid)?, name, relation)
    };
    let number = row.int("objsubid");
    match of {
        class::RELATION if number != 0 => {
            let column = catalogs.attribute(oid, number)?.name("attname");
            let table = catalogs.relation_name(oid).ok()?;
            Some(format!("COLUMN {table}.{}", catalogs.quoted(&column)))
        }
        class::RELATION => Some(format!("RELATION {}", catalogs.relation_name(oid).ok()?)),
        class::FUNCTION => Some(format!(
            "FUNCTION {}",
            catalogs.function_signature(oid).ok()?
        )),
        class::TYPE => Some(format!("TYPE {}", catalogs.type_name(oid).ok()?)),
        class::SCHEMA => {
            let schema = catalogs.schema_name(oid).ok()?;
            Some(format!("SCHEMA {}", catalogs.quoted(&schema)))
        }
        class::CONSTRAINT => {
            on("pg_constraint", "conname", "conrelid").map(|name| format!("CONSTRAINT {name}"))
        }
        class::TRIGGER => {
            on("pg_trigger", "tgname", "tgrelid").map(|name| format!("TRIGGER {name}"))
        }
        class::POLICY => {
            on("pg_policy", "polname", "polrelid").map(|name| format!("POLICY {name}"))
        }
        class::RULE => on("pg_rewrite", "rulename", "ev_class").map(|name| format!("RULE {name}")),
        _ => Some(format!("object {oid}")),
    }
}

/// Collations that are lost, with what took them and takes the default one now.
fn collations(catalogs: &Catalogs<'_>, out: &mut Items) {
    let mut users: BTreeMap<Oid, BTreeSet<String>> = BTreeMap::new();
    for row in catalogs.lost_rows("pg_collation") {
        users.entry(row.id()).or_default();
    }
    for column in catalogs.table("pg_attribute").iter() {
        let relation = catalogs.row("pg_class", column.oid("attrelid"));
        let is_lost = is_lost_collation(catalogs, column.oid("attcollation"));
        if let (Some(relation), true) = (relation, is_lost && column.int("attnum") > 0) {
            let name = catalogs.qualified_relation(relation).unwrap_or_default();
            let what = match relation.letter("relkind") {
                'i' | 'I' => name,
                _ => format!("{name}.{}", catalogs.quoted(&column.name("attname"))),
            };
            users
                .entry(column.oid("attcollation"))
                .or_default()
                .insert(what);
        }
    }
    let lost = users.into_iter();
    let lost = lost
        .filter(|(oid, _)| *oid >= FIRST_NORMAL_OID && is_own(catalogs, class::COLLATION, *oid));
    out.extend(lost.map(|(oid, users)| {
        let mut rows = catalogs.lost_rows("pg_collation");
        let row = rows.find(|row| row.id() == oid);
        let name = row.and_then(|row| in_schema(catalogs, row, "collname", "collnamespace"));
        let what = format!("COLLATION {}", name.unwrap_or_else(|| oid.to_string()));
        let mut why = "its row in pg_collation is lost".to_owned();
        if !users.is_empty() {
            let users: Vec<String> = users.into_iter().collect();
            why += &format!(
                ": the default one is in its place in {}",
                named_some(&users)
            );
        }
        Item::lost(oid, what, why)
    }));
}

fn is_lost_collation(catalogs: &Catalogs<'_>, oid: Oid) -> bool {
    oid != 0 && catalogs.known_collation(oid).is_none()
}
