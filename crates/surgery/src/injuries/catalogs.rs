//! Injuries of system catalogs: rows of `pg_class` and `pg_description` that contradict others.

use std::ops::Range;

use pgclinic_cluster::{Relation, Visibility};
use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{Attribute, Attributes, Oid};

use crate::advice;
use crate::byte_edits::put_u8;
use crate::followers::{ATTRIBUTES, ENTRIES, LOST_CATALOGS, Rules};
use crate::injury::{Damage, Injury, Wants};
use crate::injury_target::{CATALOG_PAGE, InjuryTarget, Row, choose};

/// `classoid` and `objsubid` of `pg_description`, behind `objoid`.
const CLASS_AND_COLUMN: Range<usize> = 4..12;

/// What another catalog says of the same object.
const DISAGREEING: Rules = &["catalog-rows-disagree"];

/// The catalog of this name.
fn catalog<'a>(target: &InjuryTarget<'a>, name: &str) -> Option<&'a Relation> {
    let relation = target.relation?;
    (relation.name == name && relation.schema == "pg_catalog").then_some(relation)
}

/// The rows of the page that are visible to everybody.
fn live<'a>(target: &'a InjuryTarget<'_>) -> Vec<Row<'a>> {
    let visibility = Visibility::new(target.cluster);
    let mut rows = target.rows();
    rows.retain(|row| visibility.is_visible(row.tuple));
    rows
}

/// Where a column of `pg_class` stands in one of the live rows about users' relations, by the seed.
fn class_value<'a>(
    target: &'a InjuryTarget<'_>,
    seed: u64,
    column: &str,
) -> Option<(Row<'a>, usize)> {
    let class = catalog(target, "pg_class")?;
    value_of(class, *choose(&of_users(target), seed)?, column)
}

/// The live rows about users' relations, in a catalog that begins with their OIDs.
fn of_users<'a>(target: &'a InjuryTarget<'_>) -> Vec<Row<'a>> {
    let mut rows = live(target);
    rows.retain(|row| oid(row).is_some_and(|oid| oid >= FIRST_NORMAL_OID));
    rows
}

/// Where a column stands in a row.
fn value_of<'a>(catalog: &Relation, row: Row<'a>, column: &str) -> Option<(Row<'a>, usize)> {
    let mut columns = catalog.columns.as_ref()?.iter();
    let index = columns.position(|known| known.name == column)?;
    match Attributes::new(row.tuple, catalog.layouts.as_deref()?).nth(index)? {
        Ok(Attribute::Value(range)) => Some((row, range.start)),
        _ => None,
    }
}

/// The first column of a row, where it is an OID.
fn oid(row: &Row<'_>) -> Option<Oid> {
    let bytes = row.tuple.bytes().get(usize::from(row.tuple.t_hoff())..)?;
    Some(Oid::from_le_bytes(*bytes.first_chunk()?))
}

pub(super) const CATALOG_OWNER: Injury = Injury {
    name: "catalog-owner",
    summary: "the owner of a table is a role that does not exist",
    wants: Wants::page(CATALOG_PAGE),
    recovery_advice: advice::CATALOG,
    damage: replace_owner,
};

fn replace_owner(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, at) = class_value(target, seed, "relowner")?;
    let damage = Damage::edit_row(target, &row, "relowner set to 4000000000", |tuple| {
        put_u32(tuple, at, 4_000_000_000)
    })?;
    let damage = damage.must(&["catalog-reference-missing"]);
    Some(damage.may(&[DISAGREEING]))
}

pub(super) const CATALOG_COLUMN_COUNT: Injury = Injury {
    name: "catalog-column-count",
    summary: "pg_class counts one column more than a relation has",
    wants: Wants::page(CATALOG_PAGE),
    recovery_advice: advice::CATALOG,
    damage: raise_column_count,
};

fn raise_column_count(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, at) = class_value(target, seed, "relnatts")?;
    let count = u16::from_le_bytes(*row.tuple.bytes().get(at..)?.first_chunk()?);
    let more = count.checked_add(1).filter(|_| count > 0)?;
    let words = format!("relnatts set to {more}");
    let damage = Damage::edit_row(target, &row, words, |tuple| put_u16(tuple, at, more))?;
    let damage = damage.must(&["catalog-attributes-missing"]);
    Some(damage.may(&[LOST_CATALOGS, ATTRIBUTES, DISAGREEING]))
}

pub(super) const CATALOG_INDEX_FLAG: Injury = Injury {
    name: "catalog-index-flag",
    summary: "pg_class says that a table with indexes has none",
    wants: Wants::page(CATALOG_PAGE),
    recovery_advice: advice::CATALOG,
    damage: clear_relhasindex,
};

fn clear_relhasindex(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let (row, at) = class_value(target, seed, "relhasindex")?;
    let table = oid(&row)?;
    let relations = target.catalog?.relations.values();
    let mut indexes = relations.filter_map(|relation| relation.index.as_ref());
    let is_indexed = indexes.any(|index| index.table == table && index.live);
    is_indexed.then_some(())?;
    let words = "relhasindex set to false";
    let damage = Damage::edit_row(target, &row, words, |tuple| put_u8(tuple, at, 0))?;
    Some(damage.must(&["relhasindex-false-with-index"]))
}

pub(super) const CATALOG_DEFAULT_FLAG: Injury = Injury {
    name: "catalog-default-flag",
    summary: "pg_attribute says that a column with a default has none",
    wants: Wants::page(CATALOG_PAGE),
    recovery_advice: advice::CATALOG,
    damage: clear_atthasdef,
};

fn clear_atthasdef(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    let attribute = catalog(target, "pg_attribute")?;
    let rows = of_users(target).into_iter();
    let values = rows.filter_map(|row| value_of(attribute, row, "atthasdef"));
    let is_set = |(row, at): &(Row<'_>, usize)| row.tuple.bytes().get(*at) == Some(&1);
    let values: Vec<_> = values.filter(is_set).collect();
    let (row, at) = *choose(&values, seed)?;
    let words = "atthasdef set to false";
    let damage = Damage::edit_row(target, &row, words, |tuple| put_u8(tuple, at, 0))?;
    Some(damage.must(DISAGREEING))
}

pub(super) const CLASS_PAGE_ZEROED: Injury = Injury {
    name: "class-page-zeroed",
    summary: "a page of pg_class is all zeros, and its relations have no name any more",
    wants: Wants::once(CATALOG_PAGE),
    recovery_advice: advice::CATALOG,
    damage: zero_class_page,
};

fn zero_class_page(target: &InjuryTarget<'_>, _seed: u64) -> Option<Damage> {
    catalog(target, "pg_class")?;
    let relations = &target.catalog?.relations;
    let has_files = live(target).iter().filter_map(oid).any(|oid| {
        let relation = relations.get(&oid);
        oid >= FIRST_NORMAL_OID && relation.is_some_and(|relation| relation.filenode != 0)
    });
    has_files.then_some(())?;
    let words = "the whole page set to zero";
    let damage = Damage::edit(target, words, |page| page.fill(0))?;
    let damage = damage.must(&["relation-lost"]);
    Some(damage.may(&[
        LOST_CATALOGS,
        ENTRIES,
        DISAGREEING,
        &["zeroed-page-marked-visible"],
    ]))
}

pub(super) const CATALOG_COMMENT_DOUBLED: Injury = Injury {
    name: "catalog-comment-duplicate",
    summary: "two comments in pg_description are of the same object",
    wants: Wants::page(CATALOG_PAGE),
    recovery_advice: advice::CATALOG,
    damage: comment_on_another_object,
};

fn comment_on_another_object(target: &InjuryTarget<'_>, seed: u64) -> Option<Damage> {
    catalog(target, "pg_description")?;
    let rows = live(target);
    let row = choose(&rows, seed)?;
    // Another comment of the same page, on the same catalog and the same column.
    let of = |row: &Row<'_>| {
        let bytes = row.tuple.bytes().get(usize::from(row.tuple.t_hoff())..)?;
        Some(bytes.get(CLASS_AND_COLUMN)?.to_vec())
    };
    let own = of(row)?;
    let mut others = rows.iter().filter(|other| other.item != row.item);
    let other = others.find(|other| of(other).as_ref() == Some(&own))?;
    let oid = oid(other)?;
    let at = usize::from(row.tuple.t_hoff());
    let words = format!("objoid set to {oid}");
    let damage = Damage::edit_row(target, row, words, |tuple| put_u32(tuple, at, oid))?;
    Some(damage.must(&["catalog-key-duplicate"]).may(&[ENTRIES]))
}
