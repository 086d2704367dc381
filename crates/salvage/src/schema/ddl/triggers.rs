//! Triggers, policies and event triggers; truth: `pg_get_triggerdef`, `dumpPolicy`,
//! `dumpEventTrigger`.

use super::super::catalog::{Catalogs, Row};
use super::super::expression;
use super::super::identifier::literal;
use super::super::refusal::{Refusal, Written};
use super::containers::named;
use super::item::{Item, Items, Rank, class, is_own};
use super::partitions;
use super::table_parts::is_temporary;

pub(super) fn collect(catalogs: &Catalogs<'_>, out: &mut Items) {
    for row in catalogs.table("pg_trigger").iter() {
        let table = row.oid("tgrelid");
        let is_wanted = is_own(catalogs, class::RELATION, table) && !is_temporary(catalogs, table);
        let parent = catalogs.row("pg_trigger", row.oid("tgparentid"));
        let parent = parent.map_or(0, |parent| parent.oid("tgrelid"));
        let is_inherited =
            row.oid("tgparentid") != 0 && !partitions::is_parent_alone(catalogs, parent);
        if !is_wanted || row.flag("tgisinternal") {
            continue;
        }
        if is_inherited {
            out.extend(switch(catalogs, row));
        } else {
            out.push(trigger(catalogs, row));
        }
    }
    for row in catalogs.table("pg_policy").iter() {
        if is_own(catalogs, class::RELATION, row.oid("polrelid")) {
            out.push(policy(catalogs, row));
        }
    }
    for row in catalogs.table("pg_event_trigger").iter() {
        if is_own(catalogs, class::EVENT_TRIGGER, row.id()) {
            out.push(event_trigger(catalogs, row));
        }
    }
}

/// A trigger that a partition has from its parent, where it is switched in another way.
fn switch(catalogs: &Catalogs<'_>, row: Row<'_>) -> Option<Item> {
    let parent = catalogs.row("pg_trigger", row.oid("tgparentid"))?;
    if parent.letter("tgenabled") == row.letter("tgenabled") {
        return None;
    }
    let word = match row.letter("tgenabled") {
        'D' => "DISABLE",
        'A' => "ENABLE ALWAYS",
        'R' => "ENABLE REPLICA",
        _ => "ENABLE",
    };
    let name = catalogs.quoted(&row.name("tgname"));
    let table = catalogs.relation_name(row.oid("tgrelid"));
    let text = table
        .clone()
        .map(|table| format!("ALTER TABLE {table} {word} TRIGGER {name};"));
    let what = named("TRIGGER", &table.map(|table| format!("{name} ON {table}")));
    let mut item = Item::new(Rank::Policy, (class::TRIGGER, row.id()), what, text);
    item.spoken.clear();
    item.needs.push((class::TRIGGER, parent.id()));
    Some(item)
}

fn trigger(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let table = catalogs.relation_name(row.oid("tgrelid"));
    let name = catalogs.quoted(&row.name("tgname"));
    let spoken = table.clone().map(|table| format!("{name} ON {table}"));
    let text = definition(catalogs, row).and_then(|text| {
        let word = match row.letter("tgenabled") {
            'D' => "DISABLE",
            'A' => "ENABLE ALWAYS",
            'R' => "ENABLE REPLICA",
            _ => return Ok(text + ";"),
        };
        Ok(format!(
            "{text};\nALTER TABLE {} {word} TRIGGER {name};",
            table?
        ))
    });
    let key = (class::TRIGGER, row.id());
    let mut item = Item::new(Rank::Trigger, key, named("TRIGGER", &spoken), text);
    item.needs.push((class::RELATION, row.oid("tgrelid")));
    item
}

/// The statement without its semicolon.
pub(in super::super) fn definition(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let table = catalogs.row("pg_class", row.oid("tgrelid"));
    let table = table.ok_or_else(|| Refusal::absent("table", row.oid("tgrelid")))?;
    let table = catalogs.qualified_relation(table)?;
    let is_constraint = row.oid("tgconstraint") != 0;
    let word = if is_constraint {
        "CONSTRAINT TRIGGER"
    } else {
        "TRIGGER"
    };
    let name = catalogs.quoted(&row.name("tgname"));
    let (moment, events) = (moment(row), events(catalogs, row)?);
    let mut text = format!("CREATE {word} {name} {moment} {events} ON {table} ");
    if is_constraint {
        if row.oid("tgconstrrelid") != 0 {
            text += &format!(
                "FROM {} ",
                catalogs.relation_name(row.oid("tgconstrrelid"))?
            );
        }
        text += if row.flag("tgdeferrable") { "" } else { "NOT " };
        text += "DEFERRABLE INITIALLY ";
        text += if row.flag("tginitdeferred") {
            "DEFERRED "
        } else {
            "IMMEDIATE "
        };
    }
    let (old, new) = (row.text("tgoldtable"), row.text("tgnewtable"));
    if old.is_some() || new.is_some() {
        text += "REFERENCING ";
        for (word, name) in [("OLD", old), ("NEW", new)] {
            if let Some(name) = name {
                text += &format!("{word} TABLE AS {} ", catalogs.quoted(&name));
            }
        }
    }
    text += if row.int("tgtype") & 1 != 0 {
        "FOR EACH ROW "
    } else {
        "FOR EACH STATEMENT "
    };
    if let Some(tree) = expression::stored(row, "tgqual")? {
        let condition = expression::on_old_and_new(catalogs, &tree, row.oid("tgrelid"))?;
        text += &format!("WHEN ({condition}) ");
    }
    let function = catalogs.function_name(row.oid("tgfoid"))?;
    Ok(format!(
        "{text}EXECUTE FUNCTION {function}({})",
        arguments(catalogs, row)
    ))
}

/// `TRIGGER_TYPE_…` in `pg_trigger.h`.
fn moment(row: Row<'_>) -> &'static str {
    match row.int("tgtype") & 0x42 {
        0x02 => "BEFORE",
        0x40 => "INSTEAD OF",
        _ => "AFTER",
    }
}

fn events(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let mut events = Vec::new();
    for (bit, word) in [
        (0x04, "INSERT"),
        (0x08, "DELETE"),
        (0x10, "UPDATE"),
        (0x20, "TRUNCATE"),
    ] {
        if row.int("tgtype") & bit == 0 {
            continue;
        }
        let mut columns = Vec::new();
        for number in row
            .shorts("tgattr")
            .into_iter()
            .filter(|_| word == "UPDATE")
        {
            let column = catalogs.attribute(row.oid("tgrelid"), number);
            let column = column.ok_or_else(|| Refusal(format!("column {number} is missing")))?;
            columns.push(catalogs.quoted(&column.name("attname")));
        }
        events.push(if columns.is_empty() {
            word.to_owned()
        } else {
            format!("{word} OF {}", columns.join(", "))
        });
    }
    Ok(events.join(" OR "))
}

/// `tgargs`: each argument with a zero behind it.
fn arguments(catalogs: &Catalogs<'_>, row: Row<'_>) -> String {
    let bytes = row.bytes("tgargs").unwrap_or_default();
    let count = usize::try_from(row.int("tgnargs")).unwrap_or(0);
    let parts = bytes.split(|byte| *byte == 0).take(count);
    let parts: Vec<String> = parts
        .map(|part| literal(&catalogs.words.readable(part)))
        .collect();
    parts.join(", ")
}

fn policy(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let table = catalogs.relation_name(row.oid("polrelid"));
    let name = catalogs.quoted(&row.name("polname"));
    let spoken = table.clone().map(|table| format!("{name} ON {table}"));
    let text = table.and_then(|table| policy_text(catalogs, row, &name, &table));
    let key = (class::POLICY, row.id());
    Item::new(Rank::Policy, key, named("POLICY", &spoken), text)
}

fn policy_text(catalogs: &Catalogs<'_>, row: Row<'_>, name: &str, table: &str) -> Written<String> {
    let mut text = format!("CREATE POLICY {name} ON {table}");
    text += if row.flag("polpermissive") {
        ""
    } else {
        " AS RESTRICTIVE"
    };
    text += match row.letter("polcmd") {
        'r' => " FOR SELECT",
        'a' => " FOR INSERT",
        'w' => " FOR UPDATE",
        'd' => " FOR DELETE",
        _ => "",
    };
    let roles = row.oids("polroles");
    if !roles.contains(&0) && !roles.is_empty() {
        let roles: Written<Vec<String>> =
            roles.iter().map(|oid| catalogs.role_name(*oid)).collect();
        text += &format!(" TO {}", roles?.join(", "));
    }
    for (word, column) in [("USING", "polqual"), ("WITH CHECK", "polwithcheck")] {
        if let Some(tree) = expression::stored(row, column)? {
            let condition = expression::on_relation(catalogs, &tree, row.oid("polrelid"))?;
            text += &format!(" {word} ({condition})");
        }
    }
    Ok(text + ";")
}

fn event_trigger(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = catalogs.quoted(&row.name("evtname"));
    let text = catalogs.function_name(row.oid("evtfoid")).map(|function| {
        let event = catalogs.quoted(&row.name("evtevent"));
        let tags: Vec<String> = row
            .texts("evttags")
            .iter()
            .map(|tag| literal(tag))
            .collect();
        let tags = match tags.as_slice() {
            [] => String::new(),
            tags => format!("\n         WHEN TAG IN ({})", tags.join(", ")),
        };
        let text = format!(
            "CREATE EVENT TRIGGER {name} ON {event}{tags}\n   EXECUTE FUNCTION {function}();"
        );
        match row.letter("evtenabled") {
            'D' => format!("{text}\nALTER EVENT TRIGGER {name} DISABLE;"),
            'A' => format!("{text}\nALTER EVENT TRIGGER {name} ENABLE ALWAYS;"),
            'R' => format!("{text}\nALTER EVENT TRIGGER {name} ENABLE REPLICA;"),
            _ => text,
        }
    });
    let key = (class::EVENT_TRIGGER, row.id());
    let item = Item::new(
        Rank::EventTrigger,
        key,
        format!("EVENT TRIGGER {name}"),
        text,
    );
    item.owned_by(row.oid("evtowner"))
}
