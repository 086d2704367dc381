//! What the destination itself knows of the work: a schema that is there while the work is not done, so that a second run
//! goes on where the first one ended.
//!
//! ```text
//! pgclinic_salvage.state   (source text, stage text, objects bigint)   stage: schema, rows, constraints; the last large object
//! pgclinic_salvage.tables  (name text)                                 tables whose rows are all there
//! ```

use std::collections::BTreeSet;

use pgclinic_format::Oid;
use pgclinic_servers::{Session, SqlError};

use crate::schema::literal;

/// How far the work is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Stage {
    /// Types and tables are being made.
    Schema,
    /// Rows are being loaded.
    Rows,
    /// Indexes and constraints are being made.
    Constraints,
}

impl Stage {
    fn word(self) -> &'static str {
        match self {
            Stage::Schema => "schema",
            Stage::Rows => "rows",
            Stage::Constraints => "constraints",
        }
    }
}

/// What an earlier run left.
pub(super) struct Found {
    pub(super) source: String,
    pub(super) stage: Stage,
    pub(super) whole: BTreeSet<String>,
    /// The last large object that is there; they come in the order of their numbers.
    pub(super) objects: Option<Oid>,
}

/// The ledger, if there is one.
pub(super) fn find(session: &mut Session) -> Result<Option<Found>, SqlError> {
    let there = session.query_value("SELECT pg_catalog.to_regclass('pgclinic_salvage.state')")?;
    if there.is_none() {
        return Ok(None);
    }
    let state = session.query("SELECT source, stage, objects FROM pgclinic_salvage.state")?;
    let Some([Some(source), Some(stage), objects]) = state.first().map(Vec::as_slice) else {
        return Ok(None);
    };
    let stages = [Stage::Schema, Stage::Rows, Stage::Constraints];
    let stage = stages.into_iter().find(|known| known.word() == stage);
    let names = session.query("SELECT name FROM pgclinic_salvage.tables")?;
    Ok(Some(Found {
        source: source.clone(),
        stage: stage.unwrap_or(Stage::Schema),
        whole: names.into_iter().flatten().flatten().collect(),
        objects: objects.as_ref().and_then(|last| last.parse().ok()),
    }))
}

/// Begins one.
pub(super) fn begin(session: &mut Session, source: &str) -> Result<(), SqlError> {
    let source = literal(source);
    session.execute(&format!(
        "CREATE SCHEMA pgclinic_salvage; \
         CREATE TABLE pgclinic_salvage.state (source text, stage text, objects bigint); \
         CREATE TABLE pgclinic_salvage.tables (name text); \
         INSERT INTO pgclinic_salvage.state VALUES ({source}, 'schema')"
    ))
}

/// Goes on to the next stage.
pub(super) fn enter(session: &mut Session, stage: Stage) -> Result<(), SqlError> {
    let word = stage.word();
    session.execute(&format!(
        "UPDATE pgclinic_salvage.state SET stage = '{word}'"
    ))
}

/// A statement that notes a table as loaded.
pub(super) fn table_is_whole(name: &str) -> String {
    format!(
        "INSERT INTO pgclinic_salvage.tables VALUES ({})",
        literal(name)
    )
}

/// A statement that notes the last large object that is there.
pub(super) fn objects_up_to(last: Oid) -> String {
    format!("UPDATE pgclinic_salvage.state SET objects = {last}")
}

/// The work is done.
pub(super) fn end(session: &mut Session) -> Result<(), SqlError> {
    session.execute("DROP SCHEMA pgclinic_salvage CASCADE")
}
