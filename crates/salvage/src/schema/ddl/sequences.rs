//! Sequences and identity columns; truth: `dumpSequence` in `src/bin/pg_dump/pg_dump.c`.

use super::super::catalog::{Catalogs, Row};
use super::super::refusal::{Refusal, Written};
use super::containers::named;
use super::grants::GrantObject;
use super::item::{Item, Items, Rank, class, is_own};

const BIGINT: u32 = 20;

pub(super) fn collect(catalogs: &Catalogs<'_>, out: &mut Items) {
    for row in catalogs.table("pg_class").iter() {
        let is_sequence = row.letter("relkind") == 'S' && row.letter("relpersistence") != 't';
        if is_sequence && is_own(catalogs, class::RELATION, row.id()) {
            sequence(catalogs, row, out);
        }
    }
}

/// The column that owns a sequence: table, number, and whether it is an identity column.
fn owner(catalogs: &Catalogs<'_>, sequence: u32) -> Option<(u32, i64, bool)> {
    let depends = catalogs.rows("pg_depend", "objid", sequence);
    let owner = depends.into_iter().find(|depend| {
        depend.oid("classid") == class::RELATION
            && depend.oid("refclassid") == class::RELATION
            && depend.int("refobjsubid") > 0
            && matches!(depend.letter("deptype"), 'a' | 'i')
    })?;
    let is_identity = owner.letter("deptype") == 'i';
    Some((owner.oid("refobjid"), owner.int("refobjsubid"), is_identity))
}

/// The columns that take their values from a sequence: its owner, and those whose defaults name it.
pub(in super::super) fn columns_filled_by(
    catalogs: &Catalogs<'_>,
    sequence: u32,
) -> impl Iterator<Item = (u32, i64)> {
    let owner = owner(catalogs, sequence).map(|(table, number, _)| (table, number));
    let depends = catalogs.rows("pg_depend", "refobjid", sequence).into_iter();
    let defaults = depends.filter(|depend| {
        depend.oid("classid") == class::DEFAULT && depend.oid("refclassid") == class::RELATION
    });
    let defaults = defaults.filter_map(|depend| catalogs.row("pg_attrdef", depend.oid("objid")));
    let defaults = defaults.map(|row| (row.oid("adrelid"), row.int("adnum")));
    owner.into_iter().chain(defaults)
}

fn sequence(catalogs: &Catalogs<'_>, row: Row<'_>, out: &mut Items) {
    let name = catalogs.qualified_relation(row);
    let what = named("SEQUENCE", &name);
    let key = (class::RELATION, row.id());
    let owner = owner(catalogs, row.id());
    let identity = owner.filter(|(_, _, is_identity)| *is_identity);
    let text = name.clone().and_then(|name| match identity {
        Some((table, number, _)) => identity_column(catalogs, row, &name, (table, number)),
        None => create(catalogs, row, &name),
    });
    let rank = if identity.is_some() {
        Rank::Default
    } else {
        Rank::Relation
    };
    let mut item = Item::new(rank, key, what.clone(), text);
    item.keys.extend(super::relations::row_types(catalogs, row));
    if let Some((table, _, _)) = identity {
        item.needs.push((class::RELATION, table));
    } else {
        item.owner = row.oid("relowner");
    }
    item.owner_in_rights = row.oid("relowner");
    item.rights = super::grants::Rights::of(GrantObject::Sequence, row, "relacl");
    out.push(item);
    if let Some((table, number, false)) = owner {
        let text = name.and_then(|name| {
            let column = column_name(catalogs, table, number)?;
            Ok(format!("ALTER SEQUENCE {name} OWNED BY {column};"))
        });
        let mut owned = Item::new(
            Rank::OwnedBy,
            (class::FOLLOWER, row.id()),
            format!("{what} OWNED BY"),
            text,
        );
        owned.needs = vec![key, (class::RELATION, table)];
        owned.spoken.clear();
        out.push(owned);
    }
}

fn column_name(catalogs: &Catalogs<'_>, table: u32, number: i64) -> Written<String> {
    let column = catalogs.attribute(table, number);
    let column = column.ok_or_else(|| Refusal(format!("column {number} is missing")))?;
    let table = catalogs.relation_name(table)?;
    Ok(format!(
        "{table}.{}",
        catalogs.quoted(&column.name("attname"))
    ))
}

fn parameters<'c>(catalogs: &'c Catalogs<'_>, row: Row<'_>) -> Written<(Row<'c>, String)> {
    let own = catalogs.one("pg_sequence", "seqrelid", row.id());
    let own = own.ok_or_else(|| Refusal::absent("sequence", row.id()))?;
    let (start, step) = (own.int("seqstart"), own.int("seqincrement"));
    let (min, max, cache) = (own.int("seqmin"), own.int("seqmax"), own.int("seqcache"));
    let cycle = if own.flag("seqcycle") {
        "\n    CYCLE"
    } else {
        ""
    };
    let text = format!(
        "\n    START WITH {start}\n    INCREMENT BY {step}\n    MINVALUE {min}\n    MAXVALUE {max}\n    CACHE {cache}{cycle}"
    );
    Ok((own, text))
}

fn create(catalogs: &Catalogs<'_>, row: Row<'_>, name: &str) -> Written<String> {
    let (own, parameters) = parameters(catalogs, row)?;
    let unlogged = if row.letter("relpersistence") == 'u' {
        "UNLOGGED "
    } else {
        ""
    };
    let ty = match own.oid("seqtypid") {
        BIGINT => String::new(),
        oid => format!("\n    AS {}", catalogs.type_name(oid)?),
    };
    Ok(format!("CREATE {unlogged}SEQUENCE {name}{ty}{parameters};"))
}

fn identity_column(
    catalogs: &Catalogs<'_>,
    row: Row<'_>,
    name: &str,
    (table, number): (u32, i64),
) -> Written<String> {
    let column = catalogs.attribute(table, number);
    let column = column.ok_or_else(|| Refusal(format!("column {number} is missing")))?;
    let always = if column.letter("attidentity") == 'a' {
        "ALWAYS"
    } else {
        "BY DEFAULT"
    };
    let (_, parameters) = parameters(catalogs, row)?;
    let owner = catalogs.row("pg_class", table);
    let table = catalogs.relation_name(table)?;
    let column = catalogs.quoted(&column.name("attname"));
    let mut text = format!(
        "ALTER TABLE {table} ALTER COLUMN {column} ADD GENERATED {always} AS IDENTITY (\n    SEQUENCE NAME {name}{parameters}\n);"
    );
    // Since 15 they may differ; before that a sequence is never unlogged, and there is no word for
    // it.
    let persistence = row.letter("relpersistence");
    if catalogs.major >= 15
        && owner.is_some_and(|owner| owner.letter("relpersistence") != persistence)
    {
        let word = if persistence == 'u' {
            "UNLOGGED"
        } else {
            "LOGGED"
        };
        text += &format!("\nALTER SEQUENCE {name} SET {word};");
    }
    Ok(text)
}
