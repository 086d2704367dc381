//! Enums, domains, composite types, ranges and base types.

use pgclinic_format::datum::TypeKind;

use super::super::catalog::{Catalogs, Row};
use super::super::expression;
use super::super::identifier::literal;
use super::super::refusal::{Refusal, Written};
use super::containers::named;
use super::grants::GrantObject;
use super::item::{Item, Items, Rank, class, is_own};

pub(super) fn collect(catalogs: &Catalogs<'_>, out: &mut Items) {
    for row in catalogs.table("pg_type").iter() {
        if is_own(catalogs, class::TYPE, row.id()) {
            write(catalogs, row, out);
        }
    }
}

fn write(catalogs: &Catalogs<'_>, row: Row<'_>, out: &mut Items) {
    let name = catalogs.with_schema(row.oid("typnamespace"), &row.name("typname"));
    let is_domain = row.letter("typtype") == 'd';
    let what = named(if is_domain { "DOMAIN" } else { "TYPE" }, &name);
    let mut losses = Vec::new();
    let text = match row.letter("typtype") {
        'e' => name.map(|name| enumeration(catalogs, row, &name)),
        'd' => name.and_then(|name| domain(catalogs, row, &name, &mut losses)),
        'r' => name.and_then(|name| range(catalogs, row, &name)),
        'c' if is_free_standing(catalogs, row) => {
            name.and_then(|name| composite(catalogs, row, &name))
        }
        'p' => name.map(|name| format!("CREATE TYPE {name};")),
        // The server makes arrays of every type by itself.
        'b' if row.letter("typcategory") != 'A' => {
            let shell = name.clone().map(|name| format!("CREATE TYPE {name};"));
            let key = (class::SHELL, row.id());
            let mut shell = Item::new(Rank::ShellType, key, what.clone(), shell);
            shell.spoken.clear();
            out.push(shell);
            name.and_then(|name| base(catalogs, row, &name))
        }
        _ => return,
    };
    let mut item = Item::new(Rank::Type, (class::TYPE, row.id()), what, text);
    if row.letter("typtype") == 'b' {
        item.needs = support_functions(row)
            .map(|oid| (class::FUNCTION, oid))
            .into();
        item.needs.push((class::SHELL, row.id()));
    }
    add_parts(catalogs, row, &mut item);
    item.details.extend(losses.into_iter().map(Err));
    let item = item.owned_by(row.oid("typowner"));
    out.push(item.with_rights(GrantObject::Type, row, "typacl"));
}

/// The functions that a base type is made of; they need its shell only.
pub(super) fn support_functions(row: Row<'_>) -> [u32; 8] {
    FUNCTIONS.map(|(_, column)| row.oid(column))
}

const FUNCTIONS: [(&str, &str); 8] = [
    ("INPUT", "typinput"),
    ("OUTPUT", "typoutput"),
    ("RECEIVE", "typreceive"),
    ("SEND", "typsend"),
    ("TYPMOD_IN", "typmodin"),
    ("TYPMOD_OUT", "typmodout"),
    ("ANALYZE", "typanalyze"),
    ("SUBSCRIPT", "typsubscript"),
];

/// What is made along with a type, and what it is seen as by those who need it.
fn add_parts(catalogs: &Catalogs<'_>, row: Row<'_>, item: &mut Item) {
    let array = row.oid("typarray");
    item.keys.push((class::TYPE, array));
    item.keys.push((class::RELATION, row.oid("typrelid")));
    let range = catalogs.one("pg_range", "rngtypid", row.id());
    let multirange = range.map_or(0, |range| range.oid("rngmultitypid"));
    item.keys.push((class::TYPE, multirange));
    for check in catalogs.rows("pg_constraint", "contypid", row.id()) {
        item.keys.push((class::CONSTRAINT, check.id()));
    }
    item.keys.retain(|key| key.1 != 0);
}

fn is_free_standing(catalogs: &Catalogs<'_>, row: Row<'_>) -> bool {
    let relation = catalogs.row("pg_class", row.oid("typrelid"));
    relation.is_some_and(|relation| relation.letter("relkind") == 'c')
}

/// Its labels come in their order, those too that the indexes of `pg_enum` alone still have.
fn enumeration(catalogs: &Catalogs<'_>, row: Row<'_>, name: &str) -> String {
    let info = catalogs.catalog.type_info(row.id());
    let labels = match &info.kind {
        TypeKind::Enum(labels) => labels.as_slice(),
        _ => &[],
    };
    let labels: Vec<String> = labels
        .iter()
        .map(|(_, label)| format!("\n    {}", literal(&catalogs.words.readable(label))))
        .collect();
    format!("CREATE TYPE {name} AS ENUM ({}\n);", labels.join(","))
}

/// Columns are of it, so that it is written without what is lost of it.
fn domain(
    catalogs: &Catalogs<'_>,
    row: Row<'_>,
    name: &str,
    losses: &mut Vec<Refusal>,
) -> Written<String> {
    let base = row.oid("typbasetype");
    let ty = catalogs.type_with(base, row.int("typtypmod"))?;
    let mut text = format!("CREATE DOMAIN {name} AS {ty}");
    text += &collate(catalogs, row.oid("typcollation"), base);
    match domain_default(catalogs, row) {
        Ok(default) => text += &default,
        Err(why) => losses.push(Refusal(format!("its default: {why}"))),
    }
    let mut constraints = catalogs.rows("pg_constraint", "contypid", row.id());
    constraints.sort_by_key(|row| row.name("conname"));
    let has_not_null = constraints.iter().any(|row| row.letter("contype") == 'n');
    if row.flag("typnotnull") && !has_not_null {
        text += " NOT NULL";
    }
    let (valid, later): (Vec<Row<'_>>, Vec<Row<'_>>) = constraints
        .into_iter()
        .partition(|row| row.flag("convalidated"));
    let mut write = |text: &mut String, before: &str, constraint: Row<'_>, end: &str| {
        let own = catalogs.quoted(&constraint.name("conname"));
        match super::constraints::definition(catalogs, constraint) {
            Ok(definition) => *text += &format!("{before} CONSTRAINT {own} {definition}{end}"),
            Err(why) => losses.push(Refusal(format!("CONSTRAINT {own}: {why}"))),
        }
    };
    for constraint in valid {
        write(&mut text, "\n   ", constraint, "");
    }
    text.push(';');
    let alter = format!("\nALTER DOMAIN {name} ADD");
    for constraint in later {
        write(&mut text, &alter, constraint, ";");
    }
    Ok(text)
}

/// ` DEFAULT …`, where there is one.
fn domain_default(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    if let Some(tree) = expression::stored(row, "typdefaultbin")? {
        let default = expression::on_relation(catalogs, &tree, 0)?;
        return Ok(format!(" DEFAULT {default}"));
    }
    let default = row.text("typdefault");
    Ok(default.map_or_else(String::new, |default| {
        format!(" DEFAULT {}", literal(&default))
    }))
}

/// ` COLLATE …` where a collation is not that of the type.
pub(super) fn collate(catalogs: &Catalogs<'_>, collation: u32, ty: u32) -> String {
    let usual = catalogs
        .row("pg_type", ty)
        .map_or(0, |row| row.oid("typcollation"));
    if collation == 0 || collation == usual {
        return String::new();
    }
    catalogs.collate(collation)
}

fn composite(catalogs: &Catalogs<'_>, row: Row<'_>, name: &str) -> Written<String> {
    let relation = row.oid("typrelid");
    let relation = catalogs
        .row("pg_class", relation)
        .ok_or_else(|| Refusal::absent("relation", relation))?;
    let mut fields = Vec::new();
    for attribute in catalogs.all_attributes(relation)? {
        if attribute.flag("attisdropped") {
            continue;
        }
        let oid = attribute.oid("atttypid");
        let field = catalogs.quoted(&attribute.name("attname"));
        let ty = catalogs.type_with(oid, attribute.int("atttypmod"))?;
        let collate = collate(catalogs, attribute.oid("attcollation"), oid);
        fields.push(format!("\n    {field} {ty}{collate}"));
    }
    Ok(format!("CREATE TYPE {name} AS ({}\n);", fields.join(",")))
}

fn range(catalogs: &Catalogs<'_>, row: Row<'_>, name: &str) -> Written<String> {
    let range = catalogs
        .one("pg_range", "rngtypid", row.id())
        .ok_or_else(|| Refusal::absent("range", row.id()))?;
    let subtype = range.oid("rngsubtype");
    let mut parts = vec![format!("subtype = {}", catalogs.type_name(subtype)?)];
    let multirange = range.oid("rngmultitypid");
    if multirange != 0 {
        let row = catalogs
            .row("pg_type", multirange)
            .ok_or_else(|| Refusal::absent("type", multirange))?;
        let name = catalogs.with_schema(row.oid("typnamespace"), &row.name("typname"))?;
        parts.push(format!("multirange_type_name = {name}"));
    }
    let class = catalogs.class_if_needed(range.oid("rngsubopc"), subtype)?;
    if !class.is_empty() {
        parts.push(format!("subtype_opclass ={class}"));
    }
    let collation = collate(catalogs, range.oid("rngcollation"), subtype);
    if let Some(collation) = collation.strip_prefix(" COLLATE ") {
        parts.push(format!("collation = {collation}"));
    }
    for (word, column) in [
        ("canonical", "rngcanonical"),
        ("subtype_diff", "rngsubdiff"),
    ] {
        if range.oid(column) != 0 {
            let function = catalogs.function_name(range.oid(column))?;
            parts.push(format!("{word} = {function}"));
        }
    }
    let parts = parts.join(",\n    ");
    Ok(format!("CREATE TYPE {name} AS RANGE (\n    {parts}\n);"))
}

fn base(catalogs: &Catalogs<'_>, row: Row<'_>, name: &str) -> Written<String> {
    let len = match row.int("typlen") {
        -1 => "variable".into(),
        len => len.to_string(),
    };
    let mut parts = vec![format!("INTERNALLENGTH = {len}")];
    for (word, column) in FUNCTIONS {
        if row.oid(column) != 0 {
            parts.push(format!(
                "{word} = {}",
                catalogs.function_name(row.oid(column))?
            ));
        }
    }
    let align = match row.letter("typalign") {
        'c' => "char",
        's' => "int2",
        'd' => "double",
        _ => "int4",
    };
    let storage = match row.letter("typstorage") {
        'e' => "external",
        'x' => "extended",
        'm' => "main",
        _ => "plain",
    };
    parts.push(format!("ALIGNMENT = {align}"));
    parts.push(format!("STORAGE = {storage}"));
    if row.letter("typcategory") != 'U' {
        parts.push(format!("CATEGORY = '{}'", row.letter("typcategory")));
    }
    for (word, column) in [
        ("PREFERRED = true", "typispreferred"),
        ("PASSEDBYVALUE", "typbyval"),
        ("COLLATABLE = true", "typcollation"),
    ] {
        if row.int(column) != 0 {
            parts.push(word.into());
        }
    }
    if row.oid("typelem") != 0 {
        parts.push(format!(
            "ELEMENT = {}",
            catalogs.type_name(row.oid("typelem"))?
        ));
    }
    if row.letter("typdelim") != ',' {
        parts.push(format!("DELIMITER = '{}'", row.letter("typdelim")));
    }
    if let Some(default) = row.text("typdefault") {
        parts.push(format!("DEFAULT = {}", literal(&default)));
    }
    Ok(format!(
        "CREATE TYPE {name} (\n    {}\n);",
        parts.join(",\n    ")
    ))
}
