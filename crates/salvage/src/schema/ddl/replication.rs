//! Publications, and subscriptions as they can be made without reaching what they subscribe to;
//! truth: `dumpPublication` and `dumpSubscription` in `src/bin/pg_dump/pg_dump.c`.

use super::super::catalog::{Catalogs, Row};
use super::super::expression;
use super::super::identifier::literal;
use super::super::refusal::{Refusal, Written};
use super::item::{Item, Items, Rank, class, is_own};

pub(super) fn collect(catalogs: &Catalogs<'_>, out: &mut Items) {
    for row in catalogs.table("pg_publication").iter() {
        if is_own(catalogs, class::PUBLICATION, row.id()) {
            out.push(publication(catalogs, row));
        }
    }
    let database = catalogs.catalog.database;
    for row in catalogs.table("pg_subscription").iter() {
        if row.oid("subdbid") == database {
            out.push(subscription(catalogs, row));
        }
    }
}

fn publication(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = catalogs.quoted(&row.name("pubname"));
    let published = [
        ("insert", "pubinsert"),
        ("update", "pubupdate"),
        ("delete", "pubdelete"),
        ("truncate", "pubtruncate"),
    ];
    let published: Vec<&str> = published
        .into_iter()
        .filter(|(_, column)| row.flag(column))
        .map(|(word, _)| word)
        .collect();
    let mut options = vec![format!("publish = '{}'", published.join(", "))];
    if row.flag("pubviaroot") {
        options.push("publish_via_partition_root = true".into());
    }
    if row.letter("pubgencols") == 's' {
        options.push("publish_generated_columns = stored".into());
    }
    let all = if row.flag("puballtables") {
        " FOR ALL TABLES"
    } else {
        ""
    };
    let options = options.join(", ");
    let text = Ok(format!("CREATE PUBLICATION {name}{all} WITH ({options});"));
    let key = (class::PUBLICATION, row.id());
    let what = format!("PUBLICATION {name}");
    let mut item = Item::new(Rank::Publication, key, what, text).owned_by(row.oid("pubowner"));
    for member in catalogs.rows("pg_publication_rel", "prpubid", row.id()) {
        let table = published_table(catalogs, member);
        let add = |table| format!("ALTER PUBLICATION {name} ADD TABLE ONLY {table};");
        item.details.push(table.map(add));
    }
    for member in catalogs.rows("pg_publication_namespace", "pnpubid", row.id()) {
        let schema = catalogs.schema_name(member.oid("pnnspid"));
        item.details.push(schema.map(|schema| {
            let schema = catalogs.quoted(&schema);
            format!("ALTER PUBLICATION {name} ADD TABLES IN SCHEMA {schema};")
        }));
    }
    item
}

/// `schema.table (columns) WHERE (…)`
fn published_table(catalogs: &Catalogs<'_>, member: Row<'_>) -> Written<String> {
    member.whole()?;
    let relation = member.oid("prrelid");
    let mut text = catalogs.relation_name(relation)?;
    if member.has("prattrs") {
        let column = |number| {
            let column = catalogs.attribute(relation, number);
            let column = column.ok_or_else(|| Refusal::absent("column", 0))?;
            Ok(catalogs.quoted(&column.name("attname")))
        };
        let columns = member.shorts("prattrs").into_iter().map(column);
        let columns: Written<Vec<String>> = columns.collect();
        text += &format!(" ({})", columns?.join(", "));
    }
    if let Some(tree) = expression::stored(member, "prqual")? {
        let condition = expression::on_relation(catalogs, &tree, relation)?;
        text += &format!(" WHERE ({condition})");
    }
    Ok(text)
}

/// It is switched off and has no slot: whoever switches it on must first know that the other one is
/// the only subscriber.
fn subscription(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let name = catalogs.quoted(&row.name("subname"));
    let text = subscription_text(catalogs, row, &name);
    let key = (class::SUBSCRIPTION, row.id());
    let what = format!("SUBSCRIPTION {name}");
    Item::new(Rank::Subscription, key, what, text).owned_by(row.oid("subowner"))
}

fn subscription_text(catalogs: &Catalogs<'_>, row: Row<'_>, name: &str) -> Written<String> {
    row.whole()?;
    let connection = literal(&row.name("subconninfo"));
    let publications = row.texts("subpublications").into_iter();
    let publications: Vec<String> = publications.map(|name| catalogs.quoted(&name)).collect();
    let mut options = vec![
        "connect = false".to_owned(),
        "enabled = false".to_owned(),
        "slot_name = NONE".to_owned(),
    ];
    let flags = [
        ("binary = true", "subbinary", true),
        ("disable_on_error = true", "subdisableonerr", true),
        ("run_as_owner = true", "subrunasowner", true),
        ("failover = true", "subfailover", true),
        ("password_required = false", "subpasswordrequired", false),
    ];
    for (text, column, when) in flags {
        let is_there = row.number(column).is_some();
        if is_there && row.flag(column) == when {
            options.push(text.to_owned());
        }
    }
    // A flag before 16, a letter since.
    match (row.int("substream"), row.letter("substream")) {
        (1, _) | (_, 't') => options.push("streaming = on".into()),
        (_, 'p') => options.push("streaming = parallel".into()),
        _ => {}
    }
    if matches!(row.letter("subtwophasestate"), 'p' | 'e') {
        options.push("two_phase = on".into());
    }
    let others = [
        ("synchronous_commit", "subsynccommit", "off"),
        ("origin", "suborigin", "any"),
    ];
    for (word, column, usual) in others {
        if let Some(value) = row.text(column).filter(|value| value != usual) {
            options.push(format!("{word} = {}", literal(&value)));
        }
    }
    let slot = row.text("subslotname");
    let slot = slot.map(|slot| {
        format!(
            "-- Its slot is named {}. Once no other server takes from it: ALTER SUBSCRIPTION … SET (slot_name = …), then ENABLE.\n",
            slot.escape_default()
        )
    });
    Ok(format!(
        "{}CREATE SUBSCRIPTION {name} CONNECTION {connection} PUBLICATION {} WITH ({});",
        slot.unwrap_or_default(),
        publications.join(", "),
        options.join(", ")
    ))
}
