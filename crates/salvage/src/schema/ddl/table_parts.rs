//! Defaults, partitions put in their place, rights on columns, statistics.

use super::super::catalog::{Catalogs, Row};
use super::super::expression;
use super::super::identifier::literal;
use super::super::refusal::{Refusal, Written};
use super::containers::named;
use super::grants::{GrantObject, Rights, write_column};
use super::item::{Item, Items, Rank, Stage, class, is_own};
use super::partitions;
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
            out.extend(lost_defaults(catalogs, row));
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

/// A default never reads a column: the expression is that of a generated column, of which the rest
/// is lost.
fn reads_columns(row: Row<'_>) -> bool {
    let tree = row.text("adbin").unwrap_or_default();
    tree.contains("{VAR ")
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
        if reads_columns(row) {
            let why = "it is the expression of a generated column, which is a plain one";
            return Err(Refusal(why.into()));
        }
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

/// Defaults whose rows are lost. That of a column with a sequence of its own is known.
fn lost_defaults(catalogs: &Catalogs<'_>, row: Row<'_>) -> Vec<Item> {
    let table = row.id();
    let has_row = |number: i64| {
        let mut defaults = catalogs.rows("pg_attrdef", "adrelid", table).into_iter();
        defaults.any(|default| default.int("adnum") == number)
    };
    let mut lost = catalogs.attributes(table);
    lost.retain(|column| {
        let number = column.int("attnum");
        let is_default = column.flag("atthasdef") && !column.flag("attisdropped");
        is_default && !is_generated(catalogs, table, number) && !has_row(number)
    });
    let items = lost.into_iter().filter_map(|column| {
        let table = catalogs.qualified_relation(row).ok()?;
        Some(lost_default(catalogs, (row.id(), &table), column))
    });
    items.collect()
}

fn lost_default(catalogs: &Catalogs<'_>, (oid, table): (u32, &str), column: Row<'_>) -> Item {
    const LOST: &str = "its row in pg_attrdef is lost";
    let name = catalogs.quoted(&column.name("attname"));
    let what = format!("DEFAULT {table}.{name}");
    let sequence = own_sequence(catalogs, oid, column.int("attnum"))
        .or_else(|| needed_sequence(catalogs, oid, column));
    let sequence = sequence.and_then(|oid| Some((oid, catalogs.relation_name(oid).ok()?)));
    let Some((sequence, spoken)) = sequence else {
        return Item::lost(oid, what, LOST.into());
    };
    let text = Ok(format!(
        "ALTER TABLE ONLY {table} ALTER COLUMN {name} SET DEFAULT nextval({});",
        literal(&spoken)
    ));
    let mut item = Item::new(Rank::Default, (class::LOST, oid), what, text);
    item.spoken.clear();
    item.needs = vec![(class::RELATION, oid), (class::RELATION, sequence)];
    let why = format!("{LOST}: it is the next value of the sequence that it belongs with");
    item.details.push(Err(Refusal(why)));
    item
}

/// The sequence that a column owns.
fn own_sequence(catalogs: &Catalogs<'_>, table: u32, number: i64) -> Option<u32> {
    let depends = catalogs.rows("pg_depend", "refobjid", table).into_iter();
    let mut owned = depends.filter(|row| {
        row.oid("classid") == class::RELATION
            && row.oid("refclassid") == class::RELATION
            && row.int("refobjsubid") == number
            && row.letter("deptype") == 'a'
    });
    owned.find_map(|row| Some(row.oid("objid")).filter(|oid| is_sequence(catalogs, *oid)))
}

/// The sequence that the default of a column of whole numbers needs.
fn needed_sequence(catalogs: &Catalogs<'_>, table: u32, column: Row<'_>) -> Option<u32> {
    const WHOLE_NUMBERS: [u32; 3] = [20, 21, 23];
    if !WHOLE_NUMBERS.contains(&column.oid("atttypid")) {
        return None;
    }
    let mut lost = catalogs.lost_rows("pg_attrdef");
    let default = lost.find(|row| {
        row.oid("adrelid") == table && row.int("adnum") == column.int("attnum") && row.id() != 0
    })?;
    let depends = catalogs.rows("pg_depend", "objid", default.id());
    let depends = depends.iter().filter(|row| {
        row.oid("classid") == class::DEFAULT && row.oid("refclassid") == class::RELATION
    });
    let mut needed = depends.map(|row| row.oid("refobjid"));
    needed.find(|oid| is_sequence(catalogs, *oid))
}

fn is_sequence(catalogs: &Catalogs<'_>, relation: u32) -> bool {
    let relation = catalogs.row("pg_class", relation);
    relation.is_some_and(|row| row.letter("relkind") == 'S')
}

/// Partitions are made as tables of their own and put in their place, so that the order of their
/// columns stays.
fn attach(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let parent = catalogs.one("pg_inherits", "inhrelid", row.id());
    let parent = parent.map_or(0, |row| row.oid("inhparent"));
    let is_child = partitions::is_parent_alone(catalogs, parent);
    let text = || -> Written<String> {
        if parent == 0 {
            return Err(Refusal("nothing says of which table it is one".into()));
        }
        let (parent, name) = (
            catalogs.relation_name(parent)?,
            catalogs.qualified_relation(row)?,
        );
        if is_child {
            return Ok(format!("ALTER TABLE {name} INHERIT {parent};"));
        }
        let bound = partitions::bound(catalogs, row)?;
        Ok(format!(
            "ALTER TABLE ONLY {parent} ATTACH PARTITION {name} {bound};"
        ))
    };
    let what = named("PARTITION", &catalogs.qualified_relation(row));
    let mut item = Item::new(Rank::Attach, (class::FOLLOWER, row.id()), what, text());
    if !is_child && partitions::is_doubtful(catalogs, parent) {
        item.stage = Stage::AfterData;
    }
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
