//! Tables, partitioned and foreign ones too, with their columns and checks; truth:
//! `dumpTableSchema`.

use pgclinic_format::types::FIRST_NORMAL_OID;

use super::super::catalog::{Catalogs, Row};
use super::super::identifier::literal;
use super::super::refusal::{Refusal, Written};
use super::containers::named;
use super::grants::GrantObject;
use super::item::{Item, Items, Key, Rank, class, is_own};
use super::{generation, partitions};

pub(super) fn collect(catalogs: &Catalogs<'_>, out: &mut Items) {
    for row in catalogs.table("pg_class").iter() {
        let is_table = matches!(row.letter("relkind"), 'r' | 'p' | 'f');
        let is_temporary = row.letter("relpersistence") == 't';
        if is_table && !is_temporary && is_own(catalogs, class::RELATION, row.id()) {
            out.push(table(catalogs, row));
        }
    }
}

fn table(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = catalogs.qualified_relation(row);
    let is_foreign = row.letter("relkind") == 'f';
    let word = if is_foreign { "FOREIGN TABLE" } else { "TABLE" };
    let text = name
        .clone()
        .and_then(|name| create(catalogs, row, word, &name));
    let text = row.whole().and(text);
    let key = (class::RELATION, row.id());
    let mut item = Item::new(Rank::Relation, key, named(word, &name), text);
    item.keys.extend(row_types(catalogs, row));
    for check in inline_constraints(catalogs, row) {
        item.keys.push((class::CONSTRAINT, check.id()));
    }
    for default in catalogs.rows("pg_attrdef", "adrelid", row.id()) {
        if is_generated(catalogs, row.id(), default.int("adnum")) {
            item.keys.push((class::DEFAULT, default.id()));
        }
    }
    item.needs = parents(catalogs, row)
        .iter()
        .map(|oid| (class::RELATION, *oid))
        .collect();
    item.holds_rows = true;
    let losses = losses(catalogs, row).into_iter();
    item.details.extend(losses.map(|why| Err(Refusal(why))));
    let item = item.owned_by(row.oid("relowner"));
    item.with_rights(GrantObject::Table, row, "relacl")
}

/// What of a table is left out, so that the table and its rows are written all the same.
fn losses(catalogs: &Catalogs<'_>, row: Row<'_>) -> Vec<String> {
    let mut losses = Vec::new();
    for attribute in catalogs.attributes(row.id()) {
        let is_repeated = catalogs.major < 16 && parent_generates(catalogs, row, attribute);
        if let (Err(why), false) = (
            generation::expression(catalogs, row, attribute),
            is_repeated,
        ) {
            let name = catalogs.quoted(&attribute.name("attname"));
            losses.push(format!(
                "the generation expression of column {name} is lost: it is a plain column ({why})"
            ));
        }
    }
    for constraint in inline_constraints(catalogs, row) {
        if constraint.letter("contype") == 'c'
            && let Err(why) = super::constraints::definition(catalogs, constraint)
        {
            let name = catalogs.quoted(&constraint.name("conname"));
            losses.push(format!("CONSTRAINT {name}: {why}"));
        }
    }
    if row.letter("relkind") == 'p' {
        losses.extend(partitions::losses(catalogs, row));
    }
    if matches!(row.letter("relkind"), 'r' | 'm') && row.oid("relam") != 0 {
        let is_known = catalogs.row("pg_am", row.oid("relam")).is_some();
        let loss = "its access method is lost: it is a heap";
        losses.extend((!is_known).then(|| loss.to_owned()));
    }
    losses
}

/// The row type of a relation and its array.
pub(super) fn row_types(catalogs: &Catalogs<'_>, row: Row<'_>) -> Vec<Key> {
    let ty = row.oid("reltype");
    let array = catalogs
        .row("pg_type", ty)
        .map_or(0, |row| row.oid("typarray"));
    let both = [ty, array].into_iter().filter(|oid| *oid != 0);
    both.map(|oid| (class::TYPE, oid)).collect()
}

/// Parents in the order of their numbers.
fn parents(catalogs: &Catalogs<'_>, row: Row<'_>) -> Vec<u32> {
    let mut parents = catalogs.rows("pg_inherits", "inhrelid", row.id());
    parents.sort_by_key(|row| row.int("inhseqno"));
    parents.iter().map(|row| row.oid("inhparent")).collect()
}

fn create(catalogs: &Catalogs<'_>, row: Row<'_>, word: &str, name: &str) -> Written<String> {
    let unlogged = if row.letter("relpersistence") == 'u' {
        "UNLOGGED "
    } else {
        ""
    };
    let is_partition = row.flag("relispartition");
    let parents = parents(catalogs, row);
    // A partition is made alone, and put in its place with all that its parent gives it.
    let gets_from_parents = !parents.is_empty() && !is_partition;
    let of_type = row.oid("reloftype");
    let mut parts = Vec::new();
    for attribute in catalogs.all_attributes(row)? {
        let is_inherited = !attribute.flag("attislocal") && gets_from_parents;
        if attribute.flag("attisdropped") || is_inherited {
            continue;
        }
        parts.extend(column(catalogs, row, attribute)?);
    }
    for constraint in inline_constraints(catalogs, row) {
        let is_own = constraint.flag("conislocal") || !gets_from_parents;
        let definition = super::constraints::definition(catalogs, constraint);
        if let (Ok(definition), 'c', true) = (definition, constraint.letter("contype"), is_own) {
            let name = catalogs.quoted(&constraint.name("conname"));
            parts.push(format!("CONSTRAINT {name} {definition}"));
        }
    }
    let body = parts.join(",\n    ");
    let mut text = format!("CREATE {unlogged}{word} {name}");
    if of_type != 0 {
        text += &format!(" OF {}", catalogs.type_name(of_type)?);
        text += &if parts.is_empty() {
            String::new()
        } else {
            format!(" (\n    {body}\n)")
        };
    } else {
        text += &if parts.is_empty() {
            " (\n)".into()
        } else {
            format!(" (\n    {body}\n)")
        };
    }
    if gets_from_parents {
        let names: Written<Vec<String>> = parents
            .iter()
            .map(|oid| catalogs.relation_name(*oid))
            .collect();
        text += &format!("\nINHERITS ({})", names?.join(", "));
    }
    if partitions::is_partitioned(catalogs, row) {
        text += &format!("\nPARTITION BY {}", partitions::key(catalogs, row)?);
    }
    text += &storage(catalogs, row)?;
    text.push(';');
    text += &after(catalogs, row, name)?;
    Ok(text)
}

/// Access method, options, tablespace; for a foreign table its server.
pub(super) fn storage(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let mut text = String::new();
    if row.letter("relkind") == 'f' {
        let foreign = catalogs.one("pg_foreign_table", "ftrelid", row.id());
        let foreign = foreign.ok_or_else(|| Refusal::absent("foreign table", row.id()))?;
        let server = catalogs.row("pg_foreign_server", foreign.oid("ftserver"));
        let server = server.ok_or_else(|| Refusal::absent("server", foreign.oid("ftserver")))?;
        let server = catalogs.quoted(&server.name("srvname"));
        return Ok(format!(
            "\nSERVER {server}{}",
            options(catalogs, foreign, "ftoptions")
        ));
    }
    let method = catalogs
        .row("pg_am", row.oid("relam"))
        .map(|row| row.name("amname"));
    if let Some(method) = method.filter(|method| method != "heap") {
        text += &format!("\nUSING {}", catalogs.quoted(&method));
    }
    let options = reloptions(catalogs, row);
    if !options.is_empty() {
        text += &format!("\nWITH ({})", options.join(", "));
    }
    if let Some(tablespace) = tablespace(catalogs, row) {
        text += &format!("\nTABLESPACE {tablespace}");
    }
    Ok(text)
}

/// The tablespace of a relation, where it is not that of the database.
pub(super) fn tablespace(catalogs: &Catalogs<'_>, row: Row<'_>) -> Option<String> {
    let space = catalogs.row("pg_tablespace", row.oid("reltablespace"))?;
    (space.id() >= FIRST_NORMAL_OID).then(|| catalogs.quoted(&space.name("spcname")))
}

/// `fillfactor=70` of the relation, `toast.…` of its TOAST relation.
pub(super) fn reloptions(catalogs: &Catalogs<'_>, row: Row<'_>) -> Vec<String> {
    let mut options: Vec<String> = row
        .texts("reloptions")
        .iter()
        .map(|text| option(catalogs, text))
        .collect();
    let toast = catalogs.row("pg_class", row.oid("reltoastrelid"));
    let toast = toast
        .map(|toast| toast.texts("reloptions"))
        .unwrap_or_default();
    options.extend(
        toast
            .iter()
            .map(|text| format!("toast.{}", option(catalogs, text))),
    );
    options.retain(|option| !option.starts_with("check_option="));
    options
}

/// `name=value`, the value between quotes unless it is a number or plain word.
pub(super) fn option(catalogs: &Catalogs<'_>, text: &str) -> String {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let plain = !value.is_empty() && catalogs.quoted(value) == value;
    let value = if plain {
        value.to_owned()
    } else {
        literal(value)
    };
    format!("{}={value}", catalogs.quoted(name))
}

/// `name=value, …` of a column, without the version that newer servers keep there for themselves
/// and that older ones refuse. `pg_dump` leaves it out too.
pub(super) fn options_of_attribute(catalogs: &Catalogs<'_>, attribute: Row<'_>) -> String {
    let texts = attribute.texts("attoptions");
    let own = texts.iter().filter(|text| !text.starts_with("pg_attver="));
    let options: Vec<String> = own.map(|text| option(catalogs, text)).collect();
    options.join(", ")
}

/// ` OPTIONS (name 'value', …)` from an array of `name=value`.
pub(super) fn options(catalogs: &Catalogs<'_>, row: Row<'_>, column: &str) -> String {
    let texts = row.texts(column);
    if texts.is_empty() {
        return String::new();
    }
    let parts: Vec<String> = texts
        .iter()
        .map(|text| {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            format!("{} {}", catalogs.quoted(name), literal(value))
        })
        .collect();
    format!(" OPTIONS ({})", parts.join(", "))
}

/// `a integer NOT NULL`; of a partition all columns, so that their order stays.
fn column(catalogs: &Catalogs<'_>, row: Row<'_>, attribute: Row<'_>) -> Written<Option<String>> {
    let name = catalogs.quoted(&attribute.name("attname"));
    let oid = attribute.oid("atttypid");
    let has_parent_type = row.oid("reloftype") != 0;
    let mut text = name.clone();
    if !has_parent_type {
        let ty = column_type(catalogs, oid, attribute.int("atttypmod"))?;
        text += &format!(" {ty}");
        text += &super::types::collate(catalogs, attribute.oid("attcollation"), oid);
    }
    let generated = if catalogs.major < 16 && parent_generates(catalogs, row, attribute) {
        // Before 16 a child must not repeat what its parent generates.
        ' '
    } else {
        attribute.letter("attgenerated")
    };
    if generated == 's' || generated == 'v' {
        // Where it is lost, its values are loaded as they stand.
        if let Ok(Some(expression)) = generation::expression(catalogs, row, attribute) {
            let stored = if generated == 's' { " STORED" } else { "" };
            text += &format!(" GENERATED ALWAYS AS ({expression}){stored}");
        }
    }
    text += &not_null(catalogs, row, attribute)?;
    Ok((!has_parent_type || text != name).then(|| {
        if has_parent_type {
            text.replacen(&name, &format!("{name} WITH OPTIONS"), 1)
        } else {
            text
        }
    }))
}

fn parent_generates(catalogs: &Catalogs<'_>, row: Row<'_>, attribute: Row<'_>) -> bool {
    if attribute.int("attinhcount") == 0 || row.flag("relispartition") {
        return false;
    }
    let name = attribute.name("attname");
    let parents = parents(catalogs, row).into_iter();
    let columns = parents.flat_map(|parent| catalogs.attributes(parent));
    columns
        .filter(|column| column.name("attname") == name)
        .any(|column| column.letter("attgenerated") == 's')
}

/// The type of a column; a modifier that only the type's own functions know is left out, and said
/// to be.
fn column_type(catalogs: &Catalogs<'_>, oid: u32, typmod: i64) -> Written<String> {
    catalogs.type_with(oid, typmod).or_else(|refusal| {
        let name = catalogs.type_name(oid)?;
        let why = refusal.0.replace("*/", "* /");
        Ok(format!("{name} /* {why} */"))
    })
}

pub(super) fn is_generated(catalogs: &Catalogs<'_>, relation: u32, number: i64) -> bool {
    let attribute = catalogs.attribute(relation, number);
    attribute.is_some_and(|row| matches!(row.letter("attgenerated"), 's' | 'v'))
}

/// ` NOT NULL`, since 18 a constraint with a name.
fn not_null(catalogs: &Catalogs<'_>, row: Row<'_>, attribute: Row<'_>) -> Written<String> {
    if !attribute.flag("attnotnull") {
        return Ok(String::new());
    }
    let constraints = catalogs.rows("pg_constraint", "conrelid", row.id());
    let own = constraints.iter().find(|constraint| {
        constraint.letter("contype") == 'n'
            && constraint.shorts("conkey").first() == Some(&attribute.int("attnum"))
    });
    let Some(own) = own else {
        // Before 18, or what a primary key brings along.
        return Ok(" NOT NULL".into());
    };
    if !own.flag("conislocal") && !row.flag("relispartition") {
        return Ok(String::new());
    }
    if own.number("convalidated") == Some(0) {
        return Ok(String::new());
    }
    let usual = format!(
        "{}_{}_not_null",
        row.name("relname"),
        attribute.name("attname")
    );
    let mut text = String::new();
    if own.name("conname") != usual {
        text += &format!(" CONSTRAINT {}", catalogs.quoted(&own.name("conname")));
    }
    text += " NOT NULL";
    text += if own.flag("connoinherit") {
        " NO INHERIT"
    } else {
        ""
    };
    Ok(text)
}

/// Constraints that are written with the table: checks that hold for all rows, and not null.
fn inline_constraints<'c>(catalogs: &'c Catalogs<'_>, row: Row<'_>) -> Vec<Row<'c>> {
    let mut constraints = catalogs.rows("pg_constraint", "conrelid", row.id());
    constraints.retain(|row| match row.letter("contype") {
        'c' => row.flag("convalidated") && !is_circular(catalogs, *row),
        'n' => true,
        _ => false,
    });
    constraints.sort_by_key(|row| row.name("conname"));
    constraints
}

/// A check that calls a function which takes rows of the very table: it must wait for both.
pub(super) fn is_circular(catalogs: &Catalogs<'_>, constraint: Row<'_>) -> bool {
    let relation = catalogs.row("pg_class", constraint.oid("conrelid"));
    let own_type = (class::TYPE, relation.map_or(0, |row| row.oid("reltype")));
    let needs = |class: u32, oid: u32| {
        let depends = catalogs.rows("pg_depend", "objid", oid).into_iter();
        depends
            .filter(move |row| row.oid("classid") == class)
            .map(|row| (row.oid("refclassid"), row.oid("refobjid")))
    };
    needs(class::CONSTRAINT, constraint.id())
        .filter(|needed| needed.0 == class::FUNCTION)
        .any(|function| needs(class::FUNCTION, function.1).any(|needed| needed == own_type))
}

/// What cannot be said in CREATE TABLE: storage, statistics, options of columns, REPLICA IDENTITY,
/// row security.
fn after(catalogs: &Catalogs<'_>, row: Row<'_>, name: &str) -> Written<String> {
    let foreign = if row.letter("relkind") == 'f' {
        "FOREIGN "
    } else {
        ""
    };
    let alter = format!("\nALTER {foreign}TABLE ONLY {name}");
    let mut text = String::new();
    for attribute in catalogs.attributes(row.id()) {
        if attribute.flag("attisdropped") {
            continue;
        }
        let column = format!(
            "{alter} ALTER COLUMN {}",
            catalogs.quoted(&attribute.name("attname"))
        );
        for change in column_settings(catalogs, attribute) {
            text += &format!("{column} {change};");
        }
    }
    if row.flag("relrowsecurity") {
        text += &format!("{alter} ENABLE ROW LEVEL SECURITY;").replace(" ONLY", "");
    }
    if row.flag("relforcerowsecurity") {
        text += &format!("{alter} FORCE ROW LEVEL SECURITY;");
    }
    match row.letter("relreplident") {
        'n' if row.letter("relkind") != 'f' => {
            text += &format!("{alter} REPLICA IDENTITY NOTHING;")
        }
        'f' => text += &format!("{alter} REPLICA IDENTITY FULL;"),
        _ => {}
    }
    Ok(text)
}

/// Storage and compression of a materialised view's columns.
pub(super) fn settings_of_columns(catalogs: &Catalogs<'_>, row: Row<'_>, name: &str) -> String {
    let mut text = String::new();
    for attribute in catalogs.attributes(row.id()) {
        let column = catalogs.quoted(&attribute.name("attname"));
        for change in column_settings(catalogs, attribute) {
            text += &format!("\nALTER TABLE ONLY {name} ALTER COLUMN {column} {change};");
        }
    }
    text
}

fn column_settings(catalogs: &Catalogs<'_>, attribute: Row<'_>) -> Vec<String> {
    let mut changes = Vec::new();
    let ty = catalogs.row("pg_type", attribute.oid("atttypid"));
    let storage = attribute.letter("attstorage");
    if ty.is_some_and(|ty| ty.letter("typstorage") != storage) {
        let word = match storage {
            'e' => "EXTERNAL",
            'x' => "EXTENDED",
            'm' => "MAIN",
            _ => "PLAIN",
        };
        changes.push(format!("SET STORAGE {word}"));
    }
    match attribute.letter("attcompression") {
        'p' => changes.push("SET COMPRESSION pglz".into()),
        'l' => changes.push("SET COMPRESSION lz4".into()),
        _ => {}
    }
    if let Some(target) = attribute
        .number("attstattarget")
        .filter(|target| *target >= 0)
    {
        changes.push(format!("SET STATISTICS {target}"));
    }
    let options = options_of_attribute(catalogs, attribute);
    if !options.is_empty() {
        changes.push(format!("SET ({options})"));
    }
    let foreign = options_of_column(catalogs, attribute);
    if !foreign.is_empty() {
        changes.push(foreign);
    }
    changes
}

fn options_of_column(catalogs: &Catalogs<'_>, attribute: Row<'_>) -> String {
    options(catalogs, attribute, "attfdwoptions")
        .trim_start()
        .to_owned()
}
