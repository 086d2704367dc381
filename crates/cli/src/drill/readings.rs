//! What a server is asked to read: every relation of every database, one statement each.

use std::collections::BTreeSet;

use pgclinic_cluster::{Catalog, Cluster, Index, Persistence, RelKind, Relation};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::FIRST_NORMAL_OID;

/// How a relation is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// All its rows.
    Copy,
    /// All its rows; a sequence has exactly one.
    Sequence,
    /// All its pages, through the buffer manager.
    Pages,
    /// The only page of a sequence, through the sequence code.
    Page,
    /// An index from end to end, in both directions where it has an order.
    Scan,
}

/// One statement.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) relation: String,
    pub(crate) way: Way,
    pub(crate) sql: String,
}

/// A database with its statements.
#[derive(Clone, Debug)]
pub(crate) struct DatabaseReadings {
    pub(crate) database: String,
    pub(crate) readings: Vec<Reading>,
}

/// Every relation of every database that takes connections, shared ones with the first.
pub(crate) fn of(cluster: &Cluster) -> Vec<DatabaseReadings> {
    let mut all = Vec::new();
    let shared = cluster.catalog(0);
    for database in cluster.databases.values() {
        let Some(name) = database
            .name
            .clone()
            .filter(|name| name != "template0" && name != "template1")
        else {
            continue;
        };
        let catalog = cluster.catalog(database.oid);
        let mut relations: Vec<&Relation> = catalog.relations.values().collect();
        if all.is_empty() {
            relations.extend(shared.relations.values());
        }
        let readings = relations.into_iter();
        let readings = readings.flat_map(|relation| readings_of(relation, &catalog));
        let readings = readings.collect();
        all.push(DatabaseReadings {
            database: name,
            readings,
        });
    }
    all
}

fn readings_of(relation: &Relation, catalog: &Catalog) -> Vec<Reading> {
    if !relation.kind.has_storage() || relation.persistence == Persistence::Temporary {
        return Vec::new();
    }
    let name = relation.sql_name();
    let text = name.replace('\'', "''");
    let statements = match relation.kind {
        RelKind::Index => {
            let pages = format!("SELECT ext.pg_prewarm('{text}', 'buffer')");
            let mut statements = vec![(Way::Pages, pages)];
            statements.extend(scan_of(relation, catalog).map(|scan| (Way::Scan, scan)));
            statements
        }
        // Its row as `pg_dump` reads it, and its page as `nextval` does.
        RelKind::Sequence => vec![
            (
                Way::Sequence,
                format!("COPY (SELECT last_value, is_called FROM {name}) TO STDOUT"),
            ),
            (
                Way::Page,
                format!("SELECT pg_sequence_last_value('{text}')"),
            ),
        ],
        _ if !relation.populated => Vec::new(),
        _ => vec![(
            Way::Copy,
            format!(
                "COPY (SELECT {} FROM {name}) TO STDOUT",
                columns_of(relation)
            ),
        )],
    };
    let reading = |(way, sql)| Reading {
        relation: relation.qualified_name(),
        way,
        sql,
    };
    statements.into_iter().map(reading).collect()
}

/// Statements that read all of an index of a user's table. The others of the table are put out of
/// the way until the transaction is rolled back. Nothing where the order that it gives cannot be
/// asked for in plain words.
fn scan_of(relation: &Relation, catalog: &Catalog) -> Option<String> {
    let index = relation.index.as_ref()?;
    let table = catalog.relations.get(&index.table)?;
    let usable = index.valid && index.ready && !index.has_predicate && !index.has_expressions;
    (usable && table.oid >= FIRST_NORMAL_OID && table.persistence != Persistence::Temporary)
        .then_some(())?;
    let name = table.sql_name();
    let first = key_names(index, table).next()??;
    let queries = match relation.access_method? {
        AccessMethod::Btree => {
            let (forth, back) = (order(index, table, false)?, order(index, table, true)?);
            let read = |order| {
                format!(
                    "SELECT count(*) FROM (SELECT 1 FROM {name} ORDER BY {order} OFFSET 0) AS rows"
                )
            };
            format!("{}; {}", read(forth), read(back))
        }
        AccessMethod::Gist | AccessMethod::Spgist | AccessMethod::Brin => {
            format!("SELECT count(*) FROM {name} WHERE {first} IS NOT NULL")
        }
        _ => return None,
    };
    Some(format!(
        "BEGIN; UPDATE pg_catalog.pg_index SET indisvalid = false WHERE indrelid = {} AND indexrelid <> {}; \
         SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_indexonlyscan = off; \
         SET LOCAL max_parallel_workers_per_gather = 0; {queries}; ROLLBACK",
        table.oid, relation.oid
    ))
}

/// The key columns by their quoted names.
fn key_names<'a>(
    index: &'a Index,
    table: &'a Relation,
) -> impl Iterator<Item = Option<String>> + 'a {
    let keys = index.keys.iter().take(usize::from(index.key_count));
    keys.map(|number| {
        let mut columns = table.columns.iter().flatten();
        let column = columns.find(|column| i32::from(column.attnum) == i32::from(*number))?;
        Some(format!("\"{}\"", column.name.replace('"', "\"\"")))
    })
}

/// What to order by, so that the index is read from its beginning, or from its end. Nothing for an
/// order that is not the one of the columns' types and collations.
fn order(index: &Index, table: &Relation, from_its_end: bool) -> Option<String> {
    let plain = index
        .classes
        .iter()
        .all(|class| !class.name.ends_with("_pattern_ops"));
    let collated = |(number, collation): (&i16, &u32)| {
        let mut columns = table.columns.iter().flatten();
        let column = columns.find(|column| i32::from(column.attnum) == i32::from(*number));
        column.is_some_and(|column| column.collation == *collation)
    };
    let natural = index.keys.iter().zip(&index.collations).all(collated);
    (plain && natural).then_some(())?;
    let words = key_names(index, table)
        .zip(&index.options)
        .map(|(name, option)| {
            let way = if (option & 1 != 0) != from_its_end {
                "DESC"
            } else {
                "ASC"
            };
            let nulls = if (option & 2 != 0) != from_its_end {
                "FIRST"
            } else {
                "LAST"
            };
            Some(format!("{} {way} NULLS {nulls}", name?))
        });
    Some(words.collect::<Option<Vec<_>>>()?.join(", "))
}

/// The relations that are read so, by database and name.
pub(crate) fn scanned(readings: &[DatabaseReadings]) -> BTreeSet<(String, String)> {
    let all = readings.iter().flat_map(|database| {
        let scans = database
            .readings
            .iter()
            .filter(|reading| reading.way == Way::Scan);
        scans.map(|reading| (database.database.clone(), reading.relation.clone()))
    });
    all.collect()
}

/// `regproc`: printing one makes the server look through all functions of its name.
const REGPROC: u32 = 24;

/// What is selected: all columns, functions as their numbers.
fn columns_of(relation: &Relation) -> String {
    let known = relation.columns.iter().flatten();
    let there = || known.clone().filter(|column| !column.dropped);
    if !there().any(|column| column.type_oid == REGPROC) {
        return "*".into();
    }
    let selected = there().map(|column| {
        let name = format!("\"{}\"", column.name.replace('"', "\"\""));
        match column.type_oid {
            REGPROC => format!("{name}::oid"),
            _ => name,
        }
    });
    Vec::from_iter(selected).join(", ")
}

/// Leaves indexes out, for a server without `pg_prewarm`.
pub(crate) fn without_pages(readings: &mut [DatabaseReadings]) {
    for database in readings {
        database
            .readings
            .retain(|reading| reading.way != Way::Pages);
    }
}
