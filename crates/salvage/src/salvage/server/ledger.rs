//! What the destination itself knows of the work: a schema that is there while the work is not
//! done, so that a second run goes on where the first one ended, and its account is that of both.
//!
//! ```text
//! pgclinic_salvage.state   (source text, stage text, objects bigint)   stage: schema, rows, constraints; the last large object
//! pgclinic_salvage.tables  (name text, account text)                   tables whose rows are all there, with their accounts
//! pgclinic_salvage.told    (kind text, entry text)                     what the stages that are done told beside that
//! ```
//!
//! Accounts and entries are JSON in ASCII, whatever the encoding of the destination.

use std::collections::BTreeMap;

use pgclinic_format::Oid;
use pgclinic_model::document::{LargeObjectsAccount, NotChecked, TableAccount};
use pgclinic_servers::{Session, SqlError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::finished_tables::FinishedTable;
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

/// What a stage tells, beside the tables that are whole.
#[derive(Default)]
pub(super) struct StageReport {
    /// What was not salvaged.
    pub(super) not_salvaged: Vec<NotChecked>,
    /// Tables that the server took nothing for.
    pub(super) tables: Vec<TableAccount>,
    /// Large objects, when all of them were loaded.
    pub(super) large_objects: Vec<LargeObjectsAccount>,
    /// Large objects whose numbers the destination used already.
    pub(super) objects_left: Vec<Oid>,
}

const NOT_SALVAGED: &str = "not salvaged";
const TABLE: &str = "table";
const LARGE_OBJECTS: &str = "large objects";
const OBJECT_LEFT: &str = "object left";

/// What an earlier run left.
pub(super) struct Found {
    pub(super) source: String,
    pub(super) stage: Stage,
    pub(super) whole: BTreeMap<String, TableAccount>,
    pub(super) told: StageReport,
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
    let tables = session.query("SELECT name, account FROM pgclinic_salvage.tables")?;
    let table = |row: &Vec<Option<String>>| match row.as_slice() {
        // One whose account cannot be read is loaded again.
        [Some(name), Some(entry)] => {
            let entry: FinishedTable = serde_json::from_str(entry).ok()?;
            Some((name.clone(), entry.into_account()))
        }
        _ => None,
    };
    let told = session.query("SELECT kind, entry FROM pgclinic_salvage.told")?;
    Ok(Some(Found {
        source: source.clone(),
        stage: stage.unwrap_or(Stage::Schema),
        whole: tables.iter().filter_map(table).collect(),
        told: StageReport {
            not_salvaged: entries(&told, NOT_SALVAGED),
            tables: entries(&told, TABLE),
            large_objects: entries(&told, LARGE_OBJECTS),
            objects_left: entries(&told, OBJECT_LEFT),
        },
        objects: objects.as_ref().and_then(|last| last.parse().ok()),
    }))
}

fn entries<T: DeserializeOwned>(told: &[Vec<Option<String>>], wanted: &str) -> Vec<T> {
    let of_kind = told.iter().filter_map(|row| match row.as_slice() {
        [Some(kind), Some(entry)] if kind == wanted => serde_json::from_str(entry).ok(),
        _ => None,
    });
    of_kind.collect()
}

/// Begins one.
pub(super) fn begin(session: &mut Session, source: &str) -> Result<(), SqlError> {
    let source = literal(source);
    session.execute(&format!(
        "CREATE SCHEMA pgclinic_salvage; \
         CREATE TABLE pgclinic_salvage.state (source text, stage text, objects bigint); \
         CREATE TABLE pgclinic_salvage.tables (name text, account text); \
         CREATE TABLE pgclinic_salvage.told (kind text, entry text); \
         INSERT INTO pgclinic_salvage.state VALUES ({source}, 'schema')"
    ))
}

/// Goes on to the next stage, with what the one before told.
pub(super) fn enter(
    session: &mut Session,
    stage: Stage,
    told: &StageReport,
) -> Result<(), SqlError> {
    let word = stage.word();
    // Statements that are sent together are one transaction.
    let mut sql = format!("UPDATE pgclinic_salvage.state SET stage = '{word}'");
    let StageReport {
        not_salvaged,
        tables,
        large_objects,
        objects_left,
    } = told;
    add(NOT_SALVAGED, not_salvaged, &mut sql);
    add(TABLE, tables, &mut sql);
    add(LARGE_OBJECTS, large_objects, &mut sql);
    add(OBJECT_LEFT, objects_left, &mut sql);
    session.execute(&sql)
}

fn add<T: Serialize>(kind: &str, entries: &[T], sql: &mut String) {
    for entry in entries {
        let entry = literal(&json(entry));
        sql.push_str(&format!(
            "; INSERT INTO pgclinic_salvage.told VALUES ('{kind}', {entry})"
        ));
    }
}

/// A statement that notes a table as loaded.
pub(super) fn table_is_whole(name: &str, account: &TableAccount) -> String {
    format!(
        "INSERT INTO pgclinic_salvage.tables VALUES ({}, {})",
        literal(name),
        literal(&json(&FinishedTable::of(account)))
    )
}

/// Statements that note the last large object that is there, and those that were left before it.
pub(super) fn objects_up_to(last: Oid, left: &[Oid]) -> String {
    let mut sql = format!("UPDATE pgclinic_salvage.state SET objects = {last}");
    add(OBJECT_LEFT, left, &mut sql);
    sql
}

/// The work is done.
pub(super) fn end(session: &mut Session) -> Result<(), SqlError> {
    session.execute("DROP SCHEMA IF EXISTS pgclinic_salvage CASCADE")
}

/// In ASCII: other characters stand in strings only, where JSON has a way to write them.
fn json(entry: &impl Serialize) -> String {
    let text = serde_json::to_string(entry).expect("plain data");
    let mut ascii = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            ascii.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            ascii.push_str(&format!("\\u{unit:04x}"));
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::json;

    #[test]
    fn entries_are_ascii_and_come_back() {
        let name = "t\u{e4}ble \"\u{1f418}\" \\ \u{7}\n";
        let text = json(&name);
        assert_eq!(text, r#""t\u00e4ble \"\ud83d\udc18\" \\ \u0007\n""#);
        let back: String = serde_json::from_str(&text).expect("JSON");
        assert_eq!(back, name);
    }
}
