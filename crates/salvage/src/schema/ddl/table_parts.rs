//! Defaults, partitions put in their place, rights on columns, statistics.

use super::super::catalog::{Catalogs, Row};
use super::super::expression;
use super::super::refusal::{Refusal, Written};
use super::containers::named;
use super::grants::{GrantObject, Rights, write_column};
use super::item::{Item, Items, Rank, class, is_own};
use super::relations::is_generated;

pub(super) fn collect(catalogs: &Catalogs<'_>, out: &mut Items) {
    for row in catalogs.table("pg_attrdef").iter() {
        let table = row.oid("adrelid");
        let is_wanted = is_own(catalogs, class::RELATION, table) && !is_temporary(catalogs, table);
        if is_wanted && !is_generated(catalogs, table, row.int("adnum")) {
            out.push(default(catalogs, row));
        }
    }
    for row in catalogs.table("pg_class").iter() {
        if row.letter("relpersistence") == 't' || !is_own(catalogs, class::RELATION, row.id()) {
            continue;
        }
        if row.flag("relispartition") && matches!(row.letter("relkind"), 'r' | 'p' | 'f') {
            out.push(attach(catalogs, row));
        }
        if matches!(row.letter("relkind"), 'r' | 'p' | 'f' | 'v' | 'm') {
            out.extend(column_rights(catalogs, row));
        }
    }
    for row in catalogs.table("pg_statistic_ext").iter() {
        if is_own(catalogs, class::STATISTICS, row.id()) {
            out.push(statistics(catalogs, row));
        }
    }
}

pub(super) fn is_temporary(catalogs: &Catalogs<'_>, relation: u32) -> bool {
    let row = catalogs.row("pg_class", relation);
    row.is_some_and(|row| row.letter("relpersistence") == 't')
}

/// The expression of a default, as `pg_get_expr` prints it.
pub(in super::super) fn default_text(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let tree = expression::needed(row, "adbin")?;
    expression::on_relation(catalogs, &tree, row.oid("adrelid"))
}

fn default(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let (table, number) = (row.oid("adrelid"), row.int("adnum"));
    let name = || -> Written<(String, String)> {
        let column = catalogs.attribute(table, number);
        let column = column.ok_or_else(|| Refusal(format!("column {number} is missing")))?;
        Ok((
            catalogs.relation_name(table)?,
            catalogs.quoted(&column.name("attname")),
        ))
    };
    let is_view = catalogs
        .row("pg_class", table)
        .is_some_and(|row| row.letter("relkind") == 'v');
    let word = if is_view { "VIEW" } else { "TABLE ONLY" };
    let text = name().and_then(|(table, column)| {
        let default = default_text(catalogs, row)?;
        Ok(format!(
            "ALTER {word} {table} ALTER COLUMN {column} SET DEFAULT {default};"
        ))
    });
    let what = named(
        "DEFAULT",
        &name().map(|(table, column)| format!("{table}.{column}")),
    );
    let mut item = Item::new(Rank::Default, (class::DEFAULT, row.id()), what, text);
    item.spoken.clear();
    item.needs.push((class::RELATION, table));
    item
}

/// Partitions are made as tables of their own and put in their place, so that the order of their
/// columns stays.
fn attach(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let parent = catalogs.one("pg_inherits", "inhrelid", row.id());
    let parent = parent.map_or(0, |row| row.oid("inhparent"));
    let text = || -> Written<String> {
        let bound = expression::needed(row, "relpartbound")?;
        let bound = expression::on_relation(catalogs, &bound, 0)?;
        let (parent, name) = (
            catalogs.relation_name(parent)?,
            catalogs.qualified_relation(row)?,
        );
        Ok(format!(
            "ALTER TABLE ONLY {parent} ATTACH PARTITION {name} {bound};"
        ))
    };
    let what = named("PARTITION", &catalogs.qualified_relation(row));
    let mut item = Item::new(Rank::Attach, (class::FOLLOWER, row.id()), what, text());
    item.spoken.clear();
    item.needs = vec![(class::RELATION, row.id()), (class::RELATION, parent)];
    item
}

fn column_rights(catalogs: &Catalogs<'_>, row: Row<'_>) -> Option<Item> {
    let name = catalogs.qualified_relation(row);
    let mut statements = Vec::new();
    for attribute in catalogs.attributes(row.id()) {
        let rights = Rights::of(GrantObject::Column, attribute, "attacl");
        if let (Some(rights), Ok(name)) = (rights, &name)
            && !attribute.flag("attisdropped")
        {
            let column = catalogs.quoted(&attribute.name("attname"));
            write_column(
                catalogs,
                &rights,
                (name, &column),
                row.oid("relowner"),
                &mut statements,
            );
        }
    }
    if statements.is_empty() {
        return None;
    }
    let text: Written<Vec<String>> = statements.into_iter().collect();
    let text = text.map(|statements| statements.join("\n"));
    let what = named("RIGHTS ON COLUMNS OF", &name);
    let mut item = Item::new(Rank::OwnedBy, (class::RIGHTS, row.id()), what, text);
    item.spoken.clear();
    item.needs.push((class::RELATION, row.id()));
    Some(item)
}

/// Truth: `pg_get_statisticsobjdef`.
fn statistics(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = catalogs.with_schema(row.oid("stxnamespace"), &row.name("stxname"));
    let what = named("STATISTICS", &name);
    let text = name.and_then(|name| {
        let table = row.oid("stxrelid");
        let kinds = row.letters("stxkind");
        let mut columns = Vec::new();
        for number in row.shorts("stxkeys") {
            let column = catalogs.attribute(table, number);
            let column = column.ok_or_else(|| Refusal(format!("column {number} is missing")))?;
            columns.push(catalogs.quoted(&column.name("attname")));
        }
        let tree = expression::stored(row, "stxexprs")?;
        for value in tree.iter().flat_map(|tree| tree.list()) {
            let text = expression::on_relation(catalogs, value, table)?;
            let is_call = value.node().is_some_and(expression::looks_like_call);
            columns.push(if is_call { text } else { format!("({text})") });
        }
        let words = [('d', "ndistinct"), ('f', "dependencies"), ('m', "mcv")];
        let words: Vec<&str> = words
            .iter()
            .filter(|(kind, _)| kinds.contains(kind))
            .map(|(_, word)| *word)
            .collect();
        let list = if words.len() == 3 || columns.len() == 1 {
            String::new()
        } else {
            format!(" ({})", words.join(", "))
        };
        let columns = columns.join(", ");
        let mut text = format!(
            "CREATE STATISTICS {name}{list} ON {columns} FROM {};",
            catalogs.relation_name(table)?
        );
        if let Some(target) = row.number("stxstattarget").filter(|target| *target >= 0) {
            text += &format!("\nALTER STATISTICS {name} SET STATISTICS {target};");
        }
        Ok(text)
    });
    let key = (class::STATISTICS, row.id());
    Item::new(Rank::Statistics, key, what, text).owned_by(row.oid("stxowner"))
}
