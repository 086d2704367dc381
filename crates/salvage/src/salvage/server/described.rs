//! Tables, and columns of tables, that no catalog makes: they are made as a person described them,
//! or as their rows look.

use pgclinic_format::datum::TypeKind;
use pgclinic_model::document::SalvageReport;
use pgclinic_servers::{Session, SqlError};

use super::super::error::SalvageError;
use super::super::plan::{Planned, not_salvaged};
use super::super::staging::quoted;
use super::{IS_THERE, QUOTING, is_of_the_server};
use crate::schema::Catalogs;
use crate::shape::Column;

/// Makes them. A table that is not made is taken off the list, and said to be left out.
pub(super) fn make(
    session: &mut Session,
    catalogs: &Catalogs<'_>,
    tables: &mut Vec<Planned>,
    is_resumed: bool,
    account: &mut SalvageReport,
) -> Result<(), SalvageError> {
    let mut refused = Vec::new();
    for planned in tables.iter_mut().filter(|planned| planned.is_described) {
        if let Some(why) = make_one(session, catalogs, planned, is_resumed)? {
            refused.push(planned.table.oid);
            let what = format!("rows of table {}", quoted(&planned.table));
            account.not_salvaged.push(not_salvaged(&what, &why));
        }
    }
    tables.retain(|planned| !planned.is_described || !refused.contains(&planned.table.oid));
    Ok(())
}

/// Why it could not be made.
fn make_one(
    session: &mut Session,
    catalogs: &Catalogs<'_>,
    planned: &mut Planned,
    is_resumed: bool,
) -> Result<Option<String>, SalvageError> {
    let is_known = catalogs.row("pg_class", planned.table.oid).is_some();
    let table = quoted(&planned.table);
    // Where there is none, the next statement says so.
    let schema = QUOTING.name(&planned.table.schema);
    let _is_there = refusal(session, &format!("CREATE SCHEMA IF NOT EXISTS {schema}"))?;
    let made = refusal(session, &format!("CREATE TABLE {table} ()"))?;
    let is_own = is_resumed || (is_known && planned.table.schema != UNCLAIMED);
    let made = made.filter(|(sqlstate, _)| !(is_own && IS_THERE.contains(&sqlstate.as_str())));
    if let Some((_, why)) = made {
        return Ok(Some(why));
    }
    for column in &mut planned.table.columns {
        // What is written of it is all that there is of its type.
        column.bytes_of = None;
        let sql = format!(
            "ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {} {}",
            QUOTING.name(&column.name),
            type_of(catalogs, column)
        );
        if let Some((_, why)) = refusal(session, &sql)? {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

/// The schema of tables that nothing names.
pub(super) const UNCLAIMED: &str = "unclaimed";

/// As text, whatever cannot be named.
fn type_of(catalogs: &Catalogs<'_>, column: &Column) -> String {
    match column.ty.kind {
        TypeKind::Bytes | TypeKind::Unknown => "bytea".into(),
        _ => catalogs
            .type_name(column.ty.oid)
            .unwrap_or_else(|_| "text".into()),
    }
}

/// The SQLSTATE and the words with which a statement is refused.
fn refusal(session: &mut Session, sql: &str) -> Result<Option<(String, String)>, SalvageError> {
    let failed = |source: SqlError| SalvageError::server("make a table that is described", source);
    let Err(error) = session.execute(sql) else {
        return Ok(None);
    };
    match error.message() {
        Some(message) if !session.is_over() && !is_of_the_server(message) => {
            Ok(Some((message.sqlstate.clone(), message.message.clone())))
        }
        _ => Err(failed(error)),
    }
}
