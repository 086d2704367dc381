//! Primary, unique, exclusion and foreign keys, and checks that not all rows fulfil; truth:
//! `pg_get_constraintdef`.

use super::super::catalog::{Catalogs, Row};
use super::super::expression;
use super::super::refusal::{Refusal, Written};
use super::containers::named;
use super::indexes;
use super::item::{Item, Items, Rank, class, is_own};
use super::partitions;
use super::relations;
use super::relations::{option, tablespace};
use super::table_parts::is_temporary;

pub(super) fn collect(catalogs: &Catalogs<'_>, out: &mut Items) {
    for row in catalogs.table("pg_constraint").iter() {
        let table = row.oid("conrelid");
        if table == 0 || !is_own(catalogs, class::RELATION, table) || is_temporary(catalogs, table)
        {
            continue;
        }
        let is_inherited = row.oid("conparentid") != 0 && !is_alone(catalogs, row);
        let rank = match row.letter("contype") {
            'p' | 'u' | 'x' => Rank::Constraint,
            'f' if !is_inherited => Rank::ForeignKey,
            'c' if relations::is_circular(catalogs, row) => Rank::Constraint,
            'c' | 'n' if !row.flag("convalidated") && row.flag("conislocal") => Rank::Constraint,
            _ => continue,
        };
        out.push(constraint(catalogs, row, rank));
    }
}

/// It came from a table that was partitioned, and comes no more.
fn is_alone(catalogs: &Catalogs<'_>, row: Row<'_>) -> bool {
    let parent = catalogs.row("pg_constraint", row.oid("conparentid"));
    let table = parent.map_or(0, |parent| parent.oid("conrelid"));
    table != row.oid("conrelid") && partitions::is_parent_alone(catalogs, table)
}

fn constraint(catalogs: &Catalogs<'_>, row: Row<'_>, rank: Rank) -> Item {
    let table = catalogs.relation_name(row.oid("conrelid"));
    let name = catalogs.quoted(&row.name("conname"));
    let spoken = table.clone().map(|table| format!("{name} ON {table}"));
    let text = table.and_then(|table| {
        let definition = definition(catalogs, row)?;
        // Keys of a partitioned table are made alone; those of its partitions are put in their
        // place.
        let relation = catalogs.row("pg_class", row.oid("conrelid"));
        let is_parent = relation.is_some_and(|row| row.letter("relkind") == 'p');
        // Checks hold for children too.
        let reaches_down = matches!(row.letter("contype"), 'c' | 'n');
        let only = if rank == Rank::ForeignKey && is_parent || reaches_down {
            ""
        } else {
            "ONLY "
        };
        let mut text = format!("ALTER TABLE {only}{table} ADD CONSTRAINT {name} {definition};");
        if let Some(index) = catalogs.one("pg_index", "indexrelid", row.oid("conindid"))
            && rank == Rank::Constraint
        {
            if index.flag("indisclustered") {
                text += &format!("\nALTER TABLE {table} CLUSTER ON {name};");
            }
            if index.flag("indisreplident") {
                text += &format!("\nALTER TABLE ONLY {table} REPLICA IDENTITY USING INDEX {name};");
            }
        }
        Ok(text)
    });
    let key = (class::CONSTRAINT, row.id());
    let mut item = Item::new(rank, key, named("CONSTRAINT", &spoken), text);
    item.needs.push((class::RELATION, row.oid("conrelid")));
    if rank == Rank::Constraint {
        item.keys.push((class::RELATION, row.oid("conindid")));
        item.keys.retain(|key| key.1 != 0);
    } else {
        item.needs.extend(referenced_key(catalogs, row));
    }
    item
}

/// The index, or the constraint that made it, that a foreign key refers to.
fn referenced_key(catalogs: &Catalogs<'_>, row: Row<'_>) -> Vec<(u32, u32)> {
    let index = row.oid("conindid");
    let mut keys = vec![(class::RELATION, index)];
    // Where the referenced table is partitioned, the keys of its partitions must be in their place.
    let parts = catalogs.rows("pg_inherits", "inhparent", index);
    keys.extend(
        parts
            .iter()
            .map(|part| (class::INDEX_PART, part.oid("inhrelid"))),
    );
    keys
}

/// What stands behind the name, as `pg_get_constraintdef` prints it, with tablespaces.
pub(in super::super) fn definition(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let mut text = match row.letter("contype") {
        'c' => check(catalogs, row)?,
        'n' => not_null(catalogs, row)?,
        'f' => foreign_key(catalogs, row)?,
        'p' | 'u' => key(catalogs, row)?,
        'x' => exclusion(catalogs, row)?,
        't' => "TRIGGER".into(),
        other => return Err(Refusal(format!("a constraint of kind {other}"))),
    };
    if row.flag("condeferrable") {
        text += " DEFERRABLE";
    }
    if row.flag("condeferred") {
        text += " INITIALLY DEFERRED";
    }
    if row.number("conenforced") == Some(0) {
        text += " NOT ENFORCED";
    } else if row.number("convalidated") == Some(0) {
        text += " NOT VALID";
    }
    Ok(text)
}

fn check(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let tree = expression::needed(row, "conbin")?;
    let text = expression::on_relation(catalogs, &tree, row.oid("conrelid"))?;
    let no_inherit = if row.flag("connoinherit") {
        " NO INHERIT"
    } else {
        ""
    };
    Ok(format!("CHECK ({text}){no_inherit}"))
}

fn not_null(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    if row.oid("conrelid") == 0 {
        return Ok("NOT NULL".into());
    }
    let columns = column_names(catalogs, row.oid("conrelid"), &row.shorts("conkey"))?;
    let no_inherit = if row.flag("connoinherit") {
        " NO INHERIT"
    } else {
        ""
    };
    Ok(format!("NOT NULL {columns}{no_inherit}"))
}

fn column_names(catalogs: &Catalogs<'_>, table: u32, numbers: &[i64]) -> Written<String> {
    let names: Written<Vec<String>> = numbers
        .iter()
        .map(|number| {
            let column = catalogs.attribute(table, *number);
            let column = column.ok_or_else(|| Refusal(format!("column {number} is missing")))?;
            Ok(catalogs.quoted(&column.name("attname")))
        })
        .collect();
    Ok(names?.join(", "))
}

fn foreign_key(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let (table, other) = (row.oid("conrelid"), row.oid("confrelid"));
    if partitions::is_parent_alone(catalogs, other) {
        let other = catalogs.relation_name(other)?;
        return Err(Refusal(format!(
            "{other} is partitioned no more, and its key not that of all rows"
        )));
    }
    // Since 18 the last column of a key may be a period.
    let period = if row.flag("conperiod") { "PERIOD " } else { "" };
    let with_period = |names: String| match (period, names.rsplit_once(", ")) {
        ("", _) => names,
        (_, Some((first, last))) => format!("{first}, {period}{last}"),
        (_, None) => format!("{period}{names}"),
    };
    let own = with_period(column_names(catalogs, table, &row.shorts("conkey"))?);
    let theirs = with_period(column_names(catalogs, other, &row.shorts("confkey"))?);
    let name = catalogs.relation_name(other)?;
    let mut text = format!("FOREIGN KEY ({own}) REFERENCES {name}({theirs})");
    text += match row.letter("confmatchtype") {
        'f' => " MATCH FULL",
        'p' => " MATCH PARTIAL",
        _ => "",
    };
    for (word, column) in [(" ON UPDATE", "confupdtype"), (" ON DELETE", "confdeltype")] {
        let action = match row.letter(column) {
            'r' => " RESTRICT",
            'c' => " CASCADE",
            'n' => " SET NULL",
            'd' => " SET DEFAULT",
            _ => continue,
        };
        text += word;
        text += action;
    }
    let columns = row.shorts("confdelsetcols");
    if !columns.is_empty() {
        text += &format!(" ({})", column_names(catalogs, table, &columns)?);
    }
    Ok(text)
}

fn key(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let (table, oid) = (row.oid("conrelid"), row.oid("conindid"));
    // Where its row is lost, the columns of the key are known all the same.
    let index = catalogs.one("pg_index", "indexrelid", oid);
    let mut text = match row.letter("contype") {
        'p' => "PRIMARY KEY ".to_owned(),
        _ => "UNIQUE ".to_owned(),
    };
    if index.is_some_and(|index| index.flag("indnullsnotdistinct")) {
        text += "NULLS NOT DISTINCT ";
    }
    let mut own = column_names(catalogs, table, &row.shorts("conkey"))?;
    own += if row.flag("conperiod") {
        " WITHOUT OVERLAPS"
    } else {
        ""
    };
    text += &format!("({own})");
    let all = index
        .map(|index| index.shorts("indkey"))
        .unwrap_or_default();
    let keys = index.map_or(0, |index| index.int("indnkeyatts"));
    let keys = usize::try_from(keys).unwrap_or(0);
    let included = all.get(keys..).unwrap_or_default();
    if !included.is_empty() {
        text += &format!(" INCLUDE ({})", column_names(catalogs, table, included)?);
    }
    if let Some(relation) = catalogs.row("pg_class", oid) {
        let options: Vec<String> = relation
            .texts("reloptions")
            .iter()
            .map(|text| option(catalogs, text))
            .collect();
        if !options.is_empty() {
            text += &format!(" WITH ({})", options.join(", "));
        }
        if let Some(space) = tablespace(catalogs, relation) {
            text += &format!(" USING INDEX TABLESPACE {space}");
        }
    }
    Ok(text)
}

fn exclusion(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let operators = row.oids("conexclop");
    indexes::exclusion(catalogs, row.oid("conindid"), &operators)
}
