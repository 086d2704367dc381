//! `--prove`: a real server of the cluster's major starts on a copy of what was healed and reads
//! everything; what it says, and what amcheck says, is the proof.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use pgclinic_cluster::{Cluster, ForkFiles, HeapScan, RelKind, Relation, RowState};
use pgclinic_format::Fork;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_model::document::{Cure, CureOutcome, HealDocument, HealProof, RowCount};
use pgclinic_servers::{ConnectOptions, Server, Session, SqlError, StartOptions, StopMode};

use super::opened;
use crate::drill::oracle::{Heard, fatal_lines, read_everything, words};
use crate::drill::readings::{self, Way, without_pages};
use crate::env::Env;
use crate::exit::Failure;
use crate::server_copy::ServerCopy;

/// A table of any size is read in this time.
const PATIENCE: Duration = Duration::from_secs(6 * 3600);
/// The first major whose amcheck verifies tables.
const VERIFIES_TABLES: u16 = 14;
/// A schema of the copy for amcheck, where the database has none.
const SCHEMA: &str = "pgclinic_prove";

/// Starts a server on a copy of `home` and lets it read everything.
pub(super) fn prove(
    home: &Path,
    base: Option<&Path>,
    healed: &HealDocument,
    world: &mut Env<'_>,
) -> Result<HealProof, Failure> {
    let failure = |why: String| Failure::new(format!("the cures were written, but --prove: {why}"));
    let copy = ServerCopy::make(home, base, &mut |words| world.say(words));
    let copy = copy.map_err(|error| failure(error.0))?;
    // Before the server writes to them.
    let cluster = opened(&copy.pgdata, world)?;
    let mut readings = readings::of(&cluster);
    without_pages(&mut readings);
    let counts = counts_of_files(&cluster, &healed.cures);
    let mut proof = HealProof {
        server: copy.installation.version.clone(),
        databases: readings.len() as u64,
        relations: readings
            .iter()
            .map(|database| {
                let read = database.readings.iter();
                read.filter(|own| own.way != Way::Page).count() as u64
            })
            .sum(),
        ..HealProof::default()
    };
    world.say("a server reads the copy");
    let options = StartOptions {
        timeout: PATIENCE,
        ..StartOptions::default()
    };
    let mut server = match copy.start(&options) {
        Ok(server) => server,
        Err(error) => {
            proof.messages = fatal_lines(&error.to_string());
            return Ok(proof);
        }
    };
    let mut heard = Heard::default();
    read_everything(&server, &readings, PATIENCE, &mut heard);
    proof.started = true;
    proof.messages = heard.answer.messages;
    for database in &readings {
        let major = copy.installation.major;
        let verified = verify(&server, &database.database, major, &mut proof);
        if let Err(error) = verified {
            proof
                .messages
                .push(format!("database {}: {}", database.database, words(&error)));
        }
    }
    proof.counts = counts
        .into_iter()
        .map(|count| with_server(&server, count))
        .collect();
    server.stop(StopMode::Fast).or_else(|_| {
        // The copy is removed anyway.
        server.stop(StopMode::Immediate)
    })?;
    Ok(proof)
}

fn session(server: &Server, database: &str) -> Result<Session, SqlError> {
    let options = ConnectOptions {
        wall_limit: PATIENCE,
        statement_timeout: Some(PATIENCE),
        ..ConnectOptions::default()
    };
    server.connect_with(database, &options)
}

/// Tables and B-trees of a database, as amcheck sees them.
fn verify(
    server: &Server,
    database: &str,
    major: u16,
    proof: &mut HealProof,
) -> Result<(), SqlError> {
    let mut session = session(server, database)?;
    let Some(schema) = schema_of_amcheck(&mut session)? else {
        let why = format!("database {database}: amcheck is not installed beside this server");
        proof.not_verified.push(why);
        return Ok(());
    };
    for (oid, name) in relations(&mut session, TREES)? {
        let sql = format!("SELECT {schema}.bt_index_check({oid}::pg_catalog.regclass, true)");
        proof.indexes_verified += 1;
        if let Err(error) = session.execute(&sql) {
            proof
                .messages
                .push(format!("amcheck of {name}: {}", words(&error)));
        }
        if session.is_over() {
            return Ok(());
        }
    }
    if major < VERIFIES_TABLES {
        return Ok(());
    }
    for (oid, name) in relations(&mut session, TABLES)? {
        let sql = format!(
            "SELECT pg_catalog.format('block %s, item %s: %s', blkno, offnum, msg) FROM {schema}.verify_heapam({oid}::pg_catalog.regclass) LIMIT 10"
        );
        proof.tables_verified += 1;
        match session.query(&sql) {
            Ok(rows) => {
                let found = rows.iter().filter_map(|row| row.first().cloned().flatten());
                proof
                    .messages
                    .extend(found.map(|found| format!("amcheck of {name}: {found}")));
            }
            Err(error) => proof
                .messages
                .push(format!("amcheck of {name}: {}", words(&error))),
        }
        if session.is_over() {
            return Ok(());
        }
    }
    Ok(())
}

const TREES: &str = "SELECT c.oid, c.oid::pg_catalog.regclass FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid JOIN pg_catalog.pg_am a ON a.oid = c.relam
    WHERE a.amname = 'btree' AND c.relkind = 'i' AND i.indisready AND i.indisvalid AND c.relpersistence <> 't' ORDER BY c.oid";
const TABLES: &str = "SELECT c.oid, c.oid::pg_catalog.regclass FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_am a ON a.oid = c.relam
    WHERE a.amname = 'heap' AND c.relkind IN ('r', 'm', 't') AND c.relpersistence <> 't' ORDER BY c.oid";

fn relations(session: &mut Session, sql: &str) -> Result<Vec<(String, String)>, SqlError> {
    let rows = session.query(sql)?;
    let pair = |row: &Vec<Option<String>>| Some((row.first()?.clone()?, row.get(1)?.clone()?));
    Ok(rows.iter().filter_map(pair).collect())
}

/// Where the functions of amcheck are; they are made where the server has them.
fn schema_of_amcheck(session: &mut Session) -> Result<Option<String>, SqlError> {
    let available = "SELECT 1 FROM pg_catalog.pg_available_extensions WHERE name = 'amcheck'";
    if session.query_value(available)?.is_none() {
        return Ok(None);
    }
    let found = "SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_extension e
        JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'amcheck'";
    if let Some(schema) = session.query_value(found)? {
        return Ok(Some(schema));
    }
    session.execute(&format!(
        "CREATE SCHEMA {SCHEMA}; CREATE EXTENSION amcheck SCHEMA {SCHEMA}"
    ))?;
    Ok(Some(SCHEMA.into()))
}

/// The tables that were healed, counted from the files.
fn counts_of_files(cluster: &Cluster, cures: &[Cure]) -> Vec<RowCount> {
    let written = cures
        .iter()
        .filter(|cure| cure.outcome != CureOutcome::LeftOut);
    let tables: BTreeSet<(u32, u32)> = written
        .filter_map(|cure| Some((cure.place.database_oid?, cure.place.relation_oid?)))
        .collect();
    let counts = tables.into_iter();
    let counts = counts.filter_map(|(database, table)| count_of_files(cluster, database, table));
    counts.collect()
}

fn count_of_files(cluster: &Cluster, database: u32, table: u32) -> Option<RowCount> {
    let catalog = cluster.catalog(database);
    let relation = catalog.relations.get(&table)?;
    let is_table = matches!(
        relation.kind,
        RelKind::Table | RelKind::Toast | RelKind::MaterializedView
    );
    if !is_table || relation.page_method() != Some(AccessMethod::Heap) {
        return None;
    }
    // Shared tables are the same in every database.
    let name = match database {
        0 => {
            let mut names = cluster.databases.values();
            names.find_map(|own| own.name.clone().filter(|name| name != "template0"))?
        }
        _ => catalog.database_name.clone()?,
    };
    Some(RowCount {
        database: name,
        relation: relation.sql_name(),
        server: None,
        files: main_fork(cluster, database, relation)
            .and_then(|files| visible_rows(cluster, &files, relation)),
    })
}

fn main_fork(cluster: &Cluster, database: u32, relation: &Relation) -> Option<ForkFiles> {
    let homes = cluster
        .homes
        .iter()
        .filter(|home| home.database == database);
    let catalog = cluster.catalog(database);
    homes
        .filter_map(|home| cluster.files(home).ok())
        .flatten()
        .find(|files| {
            let own = catalog.by_file(files.home.tablespace, files.filenode);
            files.fork == Fork::Main
                && files.temporary.is_none()
                && own.is_some_and(|own| own.oid == relation.oid)
        })
}

/// Nothing where a page or the fate of a transaction is not known. The server's own tables may
/// change when it starts.
fn visible_rows(cluster: &Cluster, files: &ForkFiles, relation: &Relation) -> Option<u64> {
    if relation.oid < FIRST_NORMAL_OID {
        return None;
    }
    let columns = relation.layouts.as_deref()?;
    let mut scan = HeapScan::new(cluster, files, columns);
    let (mut rows, mut undecided) = (0u64, false);
    scan.each_that_may_count(|row| match row.state {
        RowState::Visible => rows += 1,
        RowState::Undecided(_) => undecided = true,
        _ => {}
    });
    let is_whole = scan.unreadable.is_empty() && scan.broken_rows == 0;
    (is_whole && !undecided).then_some(rows)
}

fn with_server(server: &Server, count: RowCount) -> RowCount {
    let sql = format!("SELECT count(*) FROM ONLY {}", count.relation);
    let asked = session(server, &count.database).and_then(|mut session| session.query_value(&sql));
    RowCount {
        server: asked.ok().flatten().and_then(|rows| rows.parse().ok()),
        ..count
    }
}
