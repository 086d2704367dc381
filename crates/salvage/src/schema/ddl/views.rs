//! Views, materialised views and rules; truth: `make_viewdef`, `make_ruledef` in `ruleutils.c`.

use std::collections::BTreeSet;

use pgclinic_format::Oid;

use super::super::catalog::{Catalogs, Row};
use super::super::expression;
use super::super::expression::tree::{Node, Value};
use super::super::refusal::{Refusal, Written};
use super::containers::named;
use super::grants::GrantObject;
use super::item::{Item, Items, Key, Rank, class, is_own};
use super::relations::{reloptions, row_types, settings_of_columns, storage};
use super::types::collate;

pub(super) fn collect(catalogs: &Catalogs<'_>, out: &mut Items) {
    for row in catalogs.table("pg_class").iter() {
        let is_permanent = row.letter("relpersistence") != 't';
        let is_view = matches!(row.letter("relkind"), 'v' | 'm');
        if is_view && is_permanent && is_own(catalogs, class::RELATION, row.id()) {
            view(catalogs, row, out);
        }
    }
    for row in catalogs.table("pg_rewrite").iter() {
        if row.name("rulename") != "_RETURN"
            && is_own(catalogs, class::RELATION, row.oid("ev_class"))
        {
            out.push(rule(catalogs, row));
        }
    }
}

fn view(catalogs: &Catalogs<'_>, row: Row<'_>, out: &mut Items) {
    let name = catalogs.qualified_relation(row);
    let is_kept = row.letter("relkind") == 'm';
    let word = if is_kept { "MATERIALIZED VIEW" } else { "VIEW" };
    let text = name
        .clone()
        .and_then(|name| create(catalogs, row, word, &name));
    let is_table = is_made_a_table(catalogs, row);
    let mut losses = Vec::new();
    let (text, word) = match (is_table, text, &name) {
        (true, Err(why), Ok(name)) => {
            losses.push(Err(Refusal(format!(
                "{why}: it is a table with the rows that it had"
            ))));
            (plain_table(catalogs, row, name), "TABLE")
        }
        (_, text, _) => (text, word),
    };
    let is_written = text.is_ok() && !is_table;
    let key = (class::RELATION, row.id());
    let what = named(word, &name);
    let rank = if is_table { Rank::Relation } else { Rank::View };
    let mut item = Item::new(rank, key, what.clone(), text);
    item.keys.extend(row_types(catalogs, row));
    let rules = catalogs.rows("pg_rewrite", "ev_class", row.id());
    let rules = rules
        .into_iter()
        .filter(|rule| rule.name("rulename") == "_RETURN");
    if !is_table {
        item.keys.extend(rules.map(|rule| (class::RULE, rule.id())));
    }
    item.holds_rows = is_table;
    item.details.extend(losses);
    let item = item.owned_by(row.oid("relowner"));
    out.push(item.with_rights(GrantObject::Table, row, "relacl"));
    if is_kept && is_written && row.flag("relispopulated") {
        let text = name.map(|name| format!("REFRESH MATERIALIZED VIEW {name};"));
        let mut refresh = Item::new(Rank::Refresh, (class::FOLLOWER, row.id()), what, text);
        refresh.needs.push(key);
        refresh.needs.extend(filled_before(catalogs, row.id()));
        refresh.spoken.clear();
        out.push(refresh);
    }
}

/// Materialised views whose queries are lost, and which are tables with the rows that they had.
pub(super) fn made_tables(catalogs: &Catalogs<'_>) -> BTreeSet<Oid> {
    let views = catalogs.table("pg_class").iter();
    let tables = views.filter(|row| is_made_a_table(catalogs, *row));
    tables.map(|row| row.id()).collect()
}

fn is_made_a_table(catalogs: &Catalogs<'_>, row: Row<'_>) -> bool {
    row.letter("relkind") == 'm'
        && is_own(catalogs, class::RELATION, row.id())
        && definition(catalogs, row).is_err()
}

fn plain_table(catalogs: &Catalogs<'_>, row: Row<'_>, name: &str) -> Written<String> {
    let mut columns = Vec::new();
    for attribute in catalogs.all_attributes(row)? {
        let oid = attribute.oid("atttypid");
        let ty = catalogs.type_with(oid, attribute.int("atttypmod"))?;
        let collate = collate(catalogs, attribute.oid("attcollation"), oid);
        let column = catalogs.quoted(&attribute.name("attname"));
        columns.push(format!("{column} {ty}{collate}"));
    }
    let storage = storage(catalogs, row)?;
    Ok(format!(
        "CREATE TABLE {name} (\n    {}\n){storage};",
        columns.join(",\n    ")
    ))
}

/// The materialised views that a query reads, through other views too: they are filled first.
fn filled_before(catalogs: &Catalogs<'_>, view: u32) -> Vec<Key> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::from([view]);
    let mut waiting = vec![view];
    while let Some(view) = waiting.pop() {
        let rules = catalogs.rows("pg_rewrite", "ev_class", view);
        let depends = rules
            .iter()
            .flat_map(|rule| catalogs.rows("pg_depend", "objid", rule.id()));
        for depend in depends.filter(|row| row.oid("refclassid") == class::RELATION) {
            let oid = depend.oid("refobjid");
            let kind = catalogs
                .row("pg_class", oid)
                .map(|row| row.letter("relkind"));
            if !seen.insert(oid) {
                continue;
            }
            match kind {
                Some('m') => found.push((class::FOLLOWER, oid)),
                Some('v') => waiting.push(oid),
                _ => {}
            }
        }
    }
    found
}

/// The text of a view's query, as `pg_get_viewdef` prints it without its semicolon.
pub(in super::super) fn definition(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let rules = catalogs.rows("pg_rewrite", "ev_class", row.id());
    let rule = rules
        .into_iter()
        .find(|rule| rule.name("rulename") == "_RETURN");
    let rule = rule.ok_or_else(|| Refusal("its query is not in the catalogs".into()))?;
    let tree = expression::needed(rule, "ev_action")?;
    let query = tree.list().first().and_then(Value::node);
    let query = query.ok_or_else(|| Refusal("its rule holds no query".into()))?;
    let columns = catalogs.attributes(row.id());
    let names: Vec<String> = columns
        .iter()
        .map(|column| column.name("attname"))
        .collect();
    expression::query(catalogs, query, &names)
}

fn create(catalogs: &Catalogs<'_>, row: Row<'_>, word: &str, name: &str) -> Written<String> {
    let query = definition(catalogs, row)?;
    let mut text = format!("CREATE {word} {name}");
    if word == "VIEW" {
        let options = reloptions(catalogs, row);
        if !options.is_empty() {
            text += &format!(" WITH ({})", options.join(", "));
        }
        text += &format!(" AS\n{query}");
        let check = row.texts("reloptions");
        let check = check
            .iter()
            .find_map(|text| text.strip_prefix("check_option="));
        if let Some(check) = check {
            text += &format!("\n  WITH {} CHECK OPTION", check.to_uppercase());
        }
        text.push(';');
        return Ok(text);
    }
    text += &storage(catalogs, row)?;
    text += &format!(" AS\n{query}\n  WITH NO DATA;");
    text += &settings_of_columns(catalogs, row, name);
    Ok(text)
}

fn qualified(catalogs: &Catalogs<'_>, relation: u32) -> Written<String> {
    let row = catalogs.row("pg_class", relation);
    let row = row.ok_or_else(|| Refusal::absent("relation", relation))?;
    catalogs.qualified_relation(row)
}

fn rule(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let table = qualified(catalogs, row.oid("ev_class"));
    let name = catalogs.quoted(&row.name("rulename"));
    let spoken = table.clone().map(|table| format!("{name} ON {table}"));
    let mut text = rule_text(catalogs, row);
    if let (Ok(text), Ok(table)) = (&mut text, &table) {
        let word = match row.letter("ev_enabled") {
            'D' => "DISABLE",
            'A' => "ENABLE ALWAYS",
            'R' => "ENABLE REPLICA",
            _ => "",
        };
        if !word.is_empty() {
            *text += &format!("\nALTER TABLE {table} {word} RULE {name};");
        }
    }
    let key = (class::RULE, row.id());
    Item::new(Rank::Rule, key, named("RULE", &spoken), text)
}

/// The statement, as `pg_get_ruledef` prints it.
pub(in super::super) fn rule_text(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let table = qualified(catalogs, row.oid("ev_class"))?;
    let name = catalogs.quoted(&row.name("rulename"));
    let event = match row.letter("ev_type") {
        '1' => "SELECT",
        '2' => "UPDATE",
        '3' => "INSERT",
        '4' => "DELETE",
        _ => return Err(Refusal("a rule on an unknown event".into())),
    };
    let tree = expression::needed(row, "ev_action")?;
    let mut text = format!("CREATE RULE {name} AS\n    ON {event} TO {table}");
    let actions: Vec<&Node> = tree.list().iter().filter_map(Value::node).collect();
    let condition = expression::stored(row, "ev_qual")?;
    if let Some(condition) = condition.filter(|condition| *condition != Value::Nothing) {
        let action = actions
            .first()
            .ok_or_else(|| Refusal("it has no action".into()))?;
        let condition = expression::rule_condition(catalogs, &condition, action)?;
        text += &format!("\n   WHERE {condition}");
    }
    text += if row.flag("is_instead") {
        " DO INSTEAD "
    } else {
        " DO "
    };
    match actions.as_slice() {
        [] => text += "NOTHING",
        [action] => {
            let action = expression::rule_action(catalogs, action)?;
            if action.starts_with('\n') {
                text.truncate(text.trim_end().len());
            }
            text += &action;
        }
        actions => {
            text.push('(');
            for action in actions {
                text += &expression::rule_action(catalogs, action)?;
                text += ";\n";
            }
            text.push(')');
        }
    }
    Ok(text + ";")
}
