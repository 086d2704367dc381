//! Indexes that are not made by a constraint; truth: `pg_get_indexdef`.

use super::super::catalog::{Catalogs, Row};
use super::super::expression;
use super::super::refusal::{Refusal, Written};
use super::containers::named;
use super::item::{Item, Items, Rank, class, is_own};
use super::partitions;
use super::relations::{option, options_of_attribute, tablespace};
use super::table_parts::is_temporary;

pub(super) fn collect(catalogs: &Catalogs<'_>, out: &mut Items) {
    for row in catalogs.table("pg_index").iter() {
        let (oid, table) = (row.oid("indexrelid"), row.oid("indrelid"));
        let is_wanted = is_own(catalogs, class::RELATION, oid) && !is_temporary(catalogs, table);
        let is_toast = catalogs
            .row("pg_class", table)
            .is_none_or(|row| row.letter("relkind") == 't');
        if !is_wanted || is_toast {
            continue;
        }
        if constraint_of(catalogs, oid).is_none() {
            out.push(index(catalogs, row));
        }
    }
    for row in catalogs.table("pg_class").iter() {
        if matches!(row.letter("relkind"), 'i' | 'I') && is_own(catalogs, class::RELATION, row.id())
        {
            out.extend(attach(catalogs, row.id()));
        }
        if is_without_row(catalogs, row) {
            let name = named("INDEX", &catalogs.qualified_relation(row));
            let text: Written<String> = Err(Refusal("its row in pg_index is lost".into()));
            out.push(Item::new(
                Rank::Index,
                (class::RELATION, row.id()),
                name,
                text,
            ));
        }
    }
}

/// `pg_index` lost it, and no constraint makes it again.
fn is_without_row(catalogs: &Catalogs<'_>, row: Row<'_>) -> bool {
    matches!(row.letter("relkind"), 'i' | 'I')
        && is_own(catalogs, class::RELATION, row.id())
        && row.letter("relpersistence") != 't'
        && catalogs.one("pg_index", "indexrelid", row.id()).is_none()
        && constraint_of(catalogs, row.id()).is_none()
        && catalogs
            .schema_name(row.oid("relnamespace"))
            .is_ok_and(|schema| schema != "pg_toast")
}

/// The table of an index, as far as that is made again.
fn table_of(catalogs: &Catalogs<'_>, index: u32) -> Option<u32> {
    let row = catalogs.one("pg_index", "indexrelid", index);
    let of_constraint = || Some(constraint_of(catalogs, index)?.oid("conrelid"));
    row.map(|row| row.oid("indrelid")).or_else(of_constraint)
}

/// The constraint that an index serves.
fn constraint_of<'c>(catalogs: &'c Catalogs<'_>, index: u32) -> Option<Row<'c>> {
    let constraints = catalogs.rows("pg_constraint", "conindid", index);
    let own = |row: &Row<'_>| matches!(row.letter("contype"), 'p' | 'u' | 'x');
    constraints.into_iter().find(own)
}

fn index(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let oid = row.oid("indexrelid");
    let relation = catalogs.row("pg_class", oid);
    let name = relation
        .ok_or_else(|| Refusal::absent("index", oid))
        .and_then(|relation| catalogs.qualified_relation(relation));
    let mut text = definition(catalogs, row).map(|text| {
        let space = relation.and_then(|relation| tablespace(catalogs, relation));
        let space = space
            .map(|space| format!(" TABLESPACE {space}"))
            .unwrap_or_default();
        // The condition stands last.
        match text.1 {
            Some(condition) => format!("{}{space} WHERE {condition};", text.0),
            None => format!("{}{space};", text.0),
        }
    });
    if let (Ok(text), Some(relation)) = (&mut text, relation) {
        *text += &details(catalogs, row, relation);
    }
    if !row.flag("indisvalid") && relation.is_some_and(|row| row.letter("relkind") == 'i') {
        text = Err(Refusal("it is not valid".into()));
    }
    let key = (class::RELATION, oid);
    let mut item = Item::new(Rank::Index, key, named("INDEX", &name), text);
    item.needs.push((class::RELATION, row.oid("indrelid")));
    item
}

/// CLUSTER, REPLICA IDENTITY, statistics of expressions.
fn details(catalogs: &Catalogs<'_>, row: Row<'_>, relation: Row<'_>) -> String {
    let mut text = String::new();
    let name = catalogs.quoted(&relation.name("relname"));
    let Ok(table) = catalogs.relation_name(row.oid("indrelid")) else {
        return text;
    };
    if row.flag("indisclustered") {
        text += &format!("\nALTER TABLE {table} CLUSTER ON {name};");
    }
    if row.flag("indisreplident") {
        text += &format!("\nALTER TABLE ONLY {table} REPLICA IDENTITY USING INDEX {name};");
    }
    let Ok(index) = catalogs.qualified_relation(relation) else {
        return text;
    };
    for attribute in catalogs.attributes(relation.id()) {
        if let Some(target) = attribute
            .number("attstattarget")
            .filter(|target| *target >= 0)
        {
            let number = attribute.int("attnum");
            text +=
                &format!("\nALTER INDEX {index} ALTER COLUMN {number} SET STATISTICS {target};");
        }
    }
    text
}

/// An index of a partition put in its place.
fn attach(catalogs: &Catalogs<'_>, oid: u32) -> Option<Item> {
    let inherits = catalogs.one("pg_inherits", "inhrelid", oid)?;
    let parent = inherits.oid("inhparent");
    let is_made = |oid| table_of(catalogs, oid).is_some();
    if !is_made(oid) || !partitions::is_made_partitioned(catalogs, table_of(catalogs, parent)?) {
        return None;
    }
    let text = || -> Written<String> {
        let (parent, name) = (
            catalogs.relation_name(parent)?,
            catalogs.relation_name(oid)?,
        );
        Ok(format!("ALTER INDEX {parent} ATTACH PARTITION {name};"))
    };
    let what = named("INDEX OF PARTITION", &catalogs.relation_name(oid));
    let mut item = Item::new(Rank::IndexPart, (class::INDEX_PART, oid), what, text());
    item.spoken.clear();
    item.needs = vec![(class::RELATION, oid), (class::RELATION, parent)];
    Some(item)
}

/// What `pg_get_indexdef` prints.
pub(in super::super) fn statement(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let (text, condition) = definition(catalogs, row)?;
    let condition = condition
        .map(|text| format!(" WHERE {text}"))
        .unwrap_or_default();
    Ok(text + &condition)
}

/// The statement up to its condition, and the condition.
fn definition(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<(String, Option<String>)> {
    let oid = row.oid("indexrelid");
    let relation = catalogs.row("pg_class", oid);
    let relation = relation.ok_or_else(|| Refusal::absent("index", oid))?;
    let unique = if row.flag("indisunique") {
        "UNIQUE "
    } else {
        ""
    };
    let name = catalogs.quoted(&relation.name("relname"));
    let only = if relation.letter("relkind") == 'I' {
        "ONLY "
    } else {
        ""
    };
    let table = catalogs.row("pg_class", row.oid("indrelid"));
    let table = table.ok_or_else(|| Refusal::absent("table", row.oid("indrelid")))?;
    let table = catalogs.qualified_relation(table)?;
    let method = method(catalogs, relation)?;
    let columns = columns(catalogs, row, relation, &[])?;
    let tail = tail(catalogs, row, relation);
    let text =
        format!("CREATE {unique}INDEX {name} ON {only}{table} USING {method} ({columns}){tail}");
    Ok((text, condition(catalogs, row)?))
}

fn method(catalogs: &Catalogs<'_>, relation: Row<'_>) -> Written<String> {
    let row = catalogs.row("pg_am", relation.oid("relam"));
    let row = row.ok_or_else(|| Refusal::absent("access method", relation.oid("relam")))?;
    Ok(catalogs.quoted(&row.name("amname")))
}

/// ` NULLS NOT DISTINCT WITH (…)`
fn tail(catalogs: &Catalogs<'_>, row: Row<'_>, relation: Row<'_>) -> String {
    let nulls = if row.flag("indnullsnotdistinct") {
        " NULLS NOT DISTINCT"
    } else {
        ""
    };
    let options: Vec<String> = relation
        .texts("reloptions")
        .iter()
        .map(|text| option(catalogs, text))
        .collect();
    match options.as_slice() {
        [] => nulls.to_owned(),
        options => format!("{nulls} WITH ({})", options.join(", ")),
    }
}

fn condition(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<Option<String>> {
    let Some(tree) = expression::stored(row, "indpred")? else {
        return Ok(None);
    };
    expression::on_relation(catalogs, &tree, row.oid("indrelid")).map(Some)
}

/// `a, lower(b) COLLATE "C" text_pattern_ops DESC) INCLUDE (c`, each with an operator where a
/// constraint excludes.
fn columns(
    catalogs: &Catalogs<'_>,
    row: Row<'_>,
    relation: Row<'_>,
    operators: &[u32],
) -> Written<String> {
    let table = row.oid("indrelid");
    let tree = expression::stored(row, "indexprs")?;
    let mut expressions = tree.iter().flat_map(|tree| tree.list());
    let keys = usize::try_from(row.int("indnkeyatts")).unwrap_or(0);
    let mut text = String::new();
    for (at, number) in row.shorts("indkey").into_iter().enumerate() {
        text += match at {
            0 => "",
            at if at == keys => ") INCLUDE (",
            _ => ", ",
        };
        let column = if number != 0 {
            let column = catalogs.attribute(table, number);
            let column = column.ok_or_else(|| Refusal(format!("column {number} is missing")))?;
            Column {
                text: catalogs.quoted(&column.name("attname")),
                ty: column.oid("atttypid"),
                collation: column.oid("attcollation"),
            }
        } else {
            let value = expressions.next();
            let pair = value.and_then(|value| Some((value, value.node()?)));
            let (value, node) = pair.ok_or_else(|| Refusal("an expression is missing".into()))?;
            let text = expression::on_relation(catalogs, value, table)?;
            Column {
                text: if expression::looks_like_call(node) {
                    text
                } else {
                    format!("({text})")
                },
                ty: expression::type_of(catalogs, node)?,
                collation: expression::collation_of(node),
            }
        };
        text += &column.text;
        if at < keys {
            text += &key_details(catalogs, row, relation, at, &column)?;
        }
        if let Some(operator) = operators.get(at) {
            text += &format!(" WITH {}", catalogs.operator_name(*operator)?);
        }
    }
    Ok(text)
}

struct Column {
    text: String,
    ty: u32,
    collation: u32,
}

fn key_details(
    catalogs: &Catalogs<'_>,
    row: Row<'_>,
    relation: Row<'_>,
    at: usize,
    column: &Column,
) -> Written<String> {
    const BTREE: u32 = 403;
    let mut text = String::new();
    let collation = row.oids("indcollation").get(at).copied().unwrap_or(0);
    if collation != column.collation {
        text += &catalogs.collate(collation);
    }
    let class = row.oids("indclass").get(at).copied().unwrap_or(0);
    let attribute = catalogs.attribute(relation.id(), i64::try_from(at).unwrap_or(0) + 1);
    let options = attribute
        .map(|row| options_of_attribute(catalogs, row))
        .unwrap_or_default();
    let input = if options.is_empty() { column.ty } else { 0 };
    text += &catalogs.class_if_needed(class, input)?;
    if !options.is_empty() {
        text += &format!(" ({options})");
    }
    if relation.oid("relam") == BTREE {
        let bits = row.shorts("indoption").get(at).copied().unwrap_or(0);
        text += match bits & 3 {
            1 => " DESC NULLS LAST",
            2 => " NULLS FIRST",
            3 => " DESC",
            _ => "",
        };
    }
    Ok(text)
}

/// `EXCLUDE USING gist (…) WITH (…) WHERE (…)` of a constraint; truth: `pg_get_constraintdef`.
pub(super) fn exclusion(catalogs: &Catalogs<'_>, index: u32, operators: &[u32]) -> Written<String> {
    let row = catalogs.one("pg_index", "indexrelid", index);
    let relation = catalogs.row("pg_class", index);
    let both = row
        .zip(relation)
        .ok_or_else(|| Refusal::absent("index", index))?;
    let (row, relation) = both;
    let columns = columns(catalogs, row, relation, operators)?;
    let method = method(catalogs, relation)?;
    let condition = condition(catalogs, row)?;
    let condition = condition
        .map(|text| format!(" WHERE ({text})"))
        .unwrap_or_default();
    Ok(format!(
        "EXCLUDE USING {method} ({columns}){}{condition}",
        tail(catalogs, row, relation)
    ))
}
