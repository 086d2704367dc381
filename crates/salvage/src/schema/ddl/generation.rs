//! What a generated column is computed by.
//!
//! The tables of one tree of inheritance compute a column alike, and each has a row of its own in
//! `pg_attrdef`: where that of one is lost, another's serves.

use std::collections::{BTreeSet, VecDeque};

use pgclinic_format::Oid;

use super::super::catalog::{Catalogs, Row};
use super::super::expression;
use super::super::refusal::{Refusal, Written};
use super::item::{class, is_own};

/// The expression of a column of a relation; nothing where it is not generated.
pub(super) fn expression(
    catalogs: &Catalogs<'_>,
    row: Row<'_>,
    attribute: Row<'_>,
) -> Written<Option<String>> {
    if !is_generated(attribute) {
        return Ok(None);
    }
    let name = attribute.name("attname");
    let own = of_column(catalogs, row.id(), &name);
    if own.is_ok() {
        return own.map(Some);
    }
    let mut relatives = relatives(catalogs, row.id()).into_iter();
    let found = relatives.find_map(|relation| of_column(catalogs, relation, &name).ok());
    found.map_or(own, Ok).map(Some)
}

fn is_generated(attribute: Row<'_>) -> bool {
    matches!(attribute.letter("attgenerated"), 's' | 'v') && !attribute.flag("attisdropped")
}

fn of_column(catalogs: &Catalogs<'_>, relation: Oid, name: &str) -> Written<String> {
    let missing = || Refusal("its row in pg_attrdef is lost".into());
    let attributes = catalogs.attributes(relation);
    let mut named = attributes.iter().filter(|row| row.name("attname") == name);
    let own = named.find(|row| is_generated(**row)).ok_or_else(missing)?;
    let defaults = catalogs.rows("pg_attrdef", "adrelid", relation);
    let mut defaults = defaults.into_iter();
    let default = defaults.find(|row| row.int("adnum") == own.int("attnum"));
    let tree = expression::needed(default.ok_or_else(missing)?, "adbin")?;
    expression::on_relation(catalogs, &tree, relation)
}

/// The other tables of its tree, the nearest first.
fn relatives(catalogs: &Catalogs<'_>, relation: Oid) -> Vec<Oid> {
    let mut seen = BTreeSet::from([relation]);
    let mut waiting = VecDeque::from([relation]);
    let mut found = Vec::new();
    while let Some(next) = waiting.pop_front() {
        let parents = catalogs.rows("pg_inherits", "inhrelid", next);
        let parents = parents.iter().map(|row| row.oid("inhparent"));
        let children = catalogs.rows("pg_inherits", "inhparent", next);
        let children = children.iter().map(|row| row.oid("inhrelid"));
        for other in parents.chain(children) {
            if seen.insert(other) {
                found.push(other);
                waiting.push_back(other);
            }
        }
    }
    found
}

/// Columns that are stored as generated ones and made again as plain ones: table and number. Their
/// values are loaded as they stand.
pub(crate) fn columns_made_plain(catalogs: &Catalogs<'_>) -> BTreeSet<(Oid, u16)> {
    let stored = catalogs.table("pg_attribute").iter();
    let stored = stored.filter(|row| row.letter("attgenerated") == 's');
    let plain = stored.filter_map(|attribute| {
        let table = attribute.oid("attrelid");
        let row = catalogs.row("pg_class", table)?;
        let is_lost = is_own(catalogs, class::RELATION, table)
            && expression(catalogs, row, attribute).is_err();
        let number = u16::try_from(attribute.int("attnum")).ok()?;
        is_lost.then_some((table, number))
    });
    plain.collect()
}
