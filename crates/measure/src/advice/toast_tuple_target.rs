//! `toast_tuple_target` and STORAGE MAIN: values that stay in their rows until a page holds no more
//! than three of them. As shipped, a row that is longer than a quarter of a page is made shorter
//! until four go on a page.
//!
//! From the article on TOAST and compression. Truth: `TOAST_TUPLE_THRESHOLD` in
//! `src/include/access/heaptoast.h`, `heap_toast_insert_or_update` in
//! `src/backend/access/heap/heaptoast.c`.

use std::collections::BTreeMap;

use pgclinic_cluster::{Column, Relation, quoted};
use pgclinic_format::Oid;
use pgclinic_format::oid::PG_CLASS;
use pgclinic_model::document::{Figure, MeasuredColumn, MeasuredRelation};

use super::{Piece, Said, SeenDatabase, option_in, some_of};
use crate::catalog_rows::{each_row, place};

/// `TOAST_TUPLES_PER_PAGE`: so many rows go on a page as shipped.
const ROWS_A_PAGE: f64 = 4.0;
/// A smaller table is read in no time.
const BLOCKS_MIN: u64 = 64;
/// A value that is shorter on average makes no row long.
const VALUE_BYTES_MIN: u64 = 500;

/// Tables of long rows that TOAST would make shorter.
pub(crate) struct ToastTupleTarget;

impl Piece for ToastTupleTarget {
    fn name(&self) -> &'static str {
        "toast-tuple-target"
    }

    fn of_database(&self, seen: &SeenDatabase<'_>) -> Option<Said> {
        let mut tables = seen.tables();
        tables.retain(|(own, _)| has_long_rows(own));
        (!tables.is_empty()).then_some(())?;
        let targets = targets(seen);
        let usual = u64::from(seen.view.cluster.build.block_size) / 4;
        let (mut of, mut commands) = (Vec::new(), Vec::new());
        for (own, relation) in tables {
            let target = targets.get(&relation.oid).filter(|target| **target > usual);
            let mains = long_columns(own, relation);
            let kept: Vec<&Column> = mains
                .iter()
                .copied()
                .filter(|own| own.storage == b'm')
                .collect();
            let why = match (target, kept.as_slice()) {
                (Some(target), []) => format!("toast_tuple_target is {target}"),
                (None, [_, ..]) => format!("{} STORAGE MAIN", names(&kept)),
                (Some(target), _) => {
                    format!(
                        "toast_tuple_target is {target}, and {} STORAGE MAIN",
                        names(&kept)
                    )
                }
                // Columns of fixed length, or short ones: nothing would make such rows shorter.
                (None, []) => continue,
            };
            if target.is_some() && mains.is_empty() {
                continue;
            }
            of.push(format!("{}: {why}", relation.qualified_name()));
            let table = relation.sql_name();
            if target.is_some() {
                commands.push(format!("ALTER TABLE {table} RESET (toast_tuple_target);"));
            }
            commands.extend(kept.iter().map(|column| {
                let column = quoted(&column.name);
                format!("ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTENDED;")
            }));
            commands.push(format!(
                "VACUUM FULL {table}; -- moves what is stored, under an exclusive lock"
            ));
        }
        (!of.is_empty()).then(|| Said {
            message: "fewer than four rows go on a page, as values stay in their rows that TOAST would move out: who reads other \
                      columns reads them too. Worth it where most queries need these values"
                .into(),
            of: some_of(of),
            commands: some_of(commands),
            settled_by: "pgclinic lab run toast-compression --into DIR".into(),
        })
    }
}

fn names(columns: &[&Column]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    format!(
        "{} {}",
        names.join(", "),
        if names.len() == 1 { "is" } else { "are" }
    )
}

fn has_long_rows(own: &MeasuredRelation) -> bool {
    let rows = match own.figure("table", "stored_tuples_per_page") {
        Some(Figure::Spread(rows)) => rows.mean,
        _ => return false,
    };
    own.blocks >= BLOCKS_MIN && rows < ROWS_A_PAGE
}

/// Columns whose values are long and stand in their rows, as they are or compressed.
fn long_columns<'a>(own: &MeasuredRelation, relation: &'a Relation) -> Vec<&'a Column> {
    let mut columns = relation
        .columns
        .iter()
        .flatten()
        .filter(|column| !column.dropped);
    let is_long = |column: &&Column| {
        let measured = own.columns.iter().find(|own| own.number == column.attnum);
        measured.is_some_and(|own| bytes_in_row(own) >= VALUE_BYTES_MIN)
    };
    columns.by_ref().filter(is_long).collect()
}

/// Of a value, on average.
fn bytes_in_row(own: &MeasuredColumn) -> u64 {
    let sum = |names: [&str; 3]| {
        let values = names.iter().map(|name| count(own, name));
        values.sum::<u64>()
    };
    let bytes = sum(["plain_bytes", "pglz_bytes", "lz4_bytes"]);
    let values = sum(["plain_values", "pglz_values", "lz4_values"]);
    bytes.checked_div(values).unwrap_or(0)
}

fn count(own: &MeasuredColumn, name: &str) -> u64 {
    match own
        .sections
        .get("toast")
        .and_then(|section| section.get(name))
    {
        Some(Some(Figure::Count(number))) => *number,
        _ => 0,
    }
}

/// `toast_tuple_target` of the tables that set it.
fn targets(seen: &SeenDatabase<'_>) -> BTreeMap<Oid, u64> {
    let mut targets = BTreeMap::new();
    let Some(catalog) = seen.view.catalog.relations.get(&PG_CLASS) else {
        return targets;
    };
    let (Some(oid), Some(options)) = (place(catalog, "oid"), place(catalog, "reloptions")) else {
        return targets;
    };
    each_row(seen.view, catalog, &mut |row| {
        let own = row
            .unpacked(options)
            .and_then(|array| option_in(&array, "toast_tuple_target"));
        let own = own.and_then(|target| target.parse::<u64>().ok());
        targets.extend(row.u32(oid).zip(own));
    });
    targets
}
