//! By what a table is partitioned, and what becomes of one of which that is lost: the table stays,
//! and its partitions inherit from it, so that a query still sees the rows of all of them.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_format::Oid;
use pgclinic_model::{noun_of, verb_of};

use super::super::catalog::{Catalogs, Row};
use super::super::expression;
use super::super::refusal::{Refusal, Written};

/// The table is partitioned, and made so again.
pub(super) fn is_partitioned(catalogs: &Catalogs<'_>, row: Row<'_>) -> bool {
    row.letter("relkind") == 'p' && !is_parent_alone(catalogs, row.id())
}

/// The same of a table by its OID.
pub(super) fn is_made_partitioned(catalogs: &Catalogs<'_>, table: Oid) -> bool {
    let row = catalogs.row("pg_class", table);
    row.is_some_and(|row| is_partitioned(catalogs, row))
}

/// It was partitioned, and is a table of its own with children.
pub(super) fn is_parent_alone(catalogs: &Catalogs<'_>, table: Oid) -> bool {
    parents_alone(catalogs).contains_key(&table)
}

/// All of those, each with the reason.
fn parents_alone<'c>(catalogs: &'c Catalogs<'_>) -> &'c BTreeMap<Oid, String> {
    catalogs.parents_alone.get_or_init(|| {
        let tables = catalogs.table("pg_class").iter();
        let tables = tables.filter(|row| row.letter("relkind") == 'p');
        let alone = tables.filter_map(|row| Some((row.id(), why_not(catalogs, row)?)));
        alone.collect()
    })
}

/// Why a partitioned table cannot be made so again.
fn why_not(catalogs: &Catalogs<'_>, row: Row<'_>) -> Option<String> {
    if let Err(why) = key(catalogs, row) {
        return Some(format!("PARTITION BY is lost ({why})"));
    }
    let lost = partitions_of(catalogs, row.id()).filter(|part| bound(catalogs, *part).is_err());
    let lost = lost.count();
    (lost > 0).then(|| {
        format!(
            "the {bounds} of {lost} of its partitions {are} lost",
            bounds = noun_of(lost as u64, "bound"),
            are = verb_of(lost, "are")
        )
    })
}

fn partitions_of<'c>(catalogs: &'c Catalogs<'_>, parent: Oid) -> impl Iterator<Item = Row<'c>> {
    let children = catalogs
        .rows("pg_inherits", "inhparent", parent)
        .into_iter();
    children.filter_map(|row| catalogs.row("pg_class", row.oid("inhrelid")))
}

/// `FOR VALUES …` of a partition.
pub(super) fn bound(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let bound = expression::needed(row, "relpartbound")?;
    expression::on_relation(catalogs, &bound, 0)
}

/// What is left out of a partitioned table.
pub(super) fn losses(catalogs: &Catalogs<'_>, row: Row<'_>) -> Vec<String> {
    if let Some(why) = parents_alone(catalogs).get(&row.id()) {
        return vec![format!(
            "{why}: it is a table of its own, and its partitions inherit from it"
        )];
    }
    let (key, all) = (key_row(catalogs, row), partitions_of(catalogs, row.id()));
    if key.is_none_or(|key| is_sorted_as_before(catalogs, key)) || all.count() == 0 {
        return Vec::new();
    }
    let loss = "what its partition key is compared by is lost: partitions are put in their place after their rows, and rows that do not fit keep one out";
    vec![loss.to_owned()]
}

/// Rows of a partition may be outside of its bounds, as something else compares them now.
pub(super) fn is_doubtful(catalogs: &Catalogs<'_>, parent: Oid) -> bool {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![parent];
    while let Some(table) = waiting.pop() {
        let key = catalogs.one("pg_partitioned_table", "partrelid", table);
        if key.is_some_and(|key| !is_sorted_as_before(catalogs, key)) {
            return true;
        }
        if seen.insert(table) {
            let parents = catalogs.rows("pg_inherits", "inhrelid", table);
            waiting.extend(parents.iter().map(|row| row.oid("inhparent")));
        }
    }
    false
}

fn key_row<'c>(catalogs: &'c Catalogs<'_>, row: Row<'_>) -> Option<Row<'c>> {
    catalogs.one("pg_partitioned_table", "partrelid", row.id())
}

fn is_sorted_as_before(catalogs: &Catalogs<'_>, key: Row<'_>) -> bool {
    let mut collations = key.oids("partcollation").into_iter();
    let mut classes = key.oids("partclass").into_iter();
    collations.all(|oid| oid == 0 || catalogs.known_collation(oid).is_some())
        && classes.all(|oid| catalogs.row("pg_opclass", oid).is_some())
}

/// `RANGE (a, lower(b) COLLATE "C")`; truth: `pg_get_partkeydef`.
pub(super) fn key(catalogs: &Catalogs<'_>, row: Row<'_>) -> Written<String> {
    let key = catalogs
        .one("pg_partitioned_table", "partrelid", row.id())
        .ok_or_else(|| Refusal::absent("partitioned table", row.id()))?;
    let strategy = match key.letter("partstrat") {
        'h' => "HASH",
        'l' => "LIST",
        _ => "RANGE",
    };
    let tree = expression::stored(key, "partexprs")?;
    let mut expressions = tree.iter().flat_map(|tree| tree.list());
    let (classes, collations) = (key.oids("partclass"), key.oids("partcollation"));
    let mut parts = Vec::new();
    for (at, number) in key.shorts("partattrs").into_iter().enumerate() {
        let (mut text, ty, collation) = if number != 0 {
            let column = catalogs.attribute(row.id(), number);
            let column = column.ok_or_else(|| Refusal(format!("column {number} is missing")))?;
            (
                catalogs.quoted(&column.name("attname")),
                column.oid("atttypid"),
                column.oid("attcollation"),
            )
        } else {
            let value = expressions.next();
            let node = value.and_then(|value| value.node());
            let (value, node) = value
                .zip(node)
                .ok_or_else(|| Refusal("an expression is missing".into()))?;
            let text = expression::on_relation(catalogs, value, row.id())?;
            let text = if expression::looks_like_call(node) {
                text
            } else {
                format!("({text})")
            };
            (
                text,
                expression::type_of(catalogs, node)?,
                expression::collation_of(node),
            )
        };
        let own = collations.get(at).copied().unwrap_or(0);
        if own != collation {
            text += &catalogs.collate(own);
        }
        let class = classes.get(at).copied().unwrap_or(0);
        if catalogs.row("pg_opclass", class).is_some() {
            text += &catalogs.class_if_needed(class, ty)?;
        }
        parts.push(text);
    }
    Ok(format!("{strategy} ({})", parts.join(", ")))
}
