//! What a server is asked to read: every relation of every database, one statement each.

use pgclinic_cluster::{Cluster, Persistence, RelKind, Relation};

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
        let readings = relations.into_iter().flat_map(readings_of).collect();
        all.push(DatabaseReadings {
            database: name,
            readings,
        });
    }
    all
}

fn readings_of(relation: &Relation) -> Vec<Reading> {
    if !relation.kind.has_storage() || relation.persistence == Persistence::Temporary {
        return Vec::new();
    }
    let name = relation.sql_name();
    let text = name.replace('\'', "''");
    let statements = match relation.kind {
        RelKind::Index => vec![(
            Way::Pages,
            format!("SELECT ext.pg_prewarm('{text}', 'buffer')"),
        )],
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
