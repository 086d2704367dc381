//! What is made ready in the destination before rows go there: types of the load's own for values
//! whose text is not known here, and which rows of an extension's tables it has by itself. What
//! cannot come over is left out by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use pgclinic_format::Oid;
use pgclinic_format::datum::{TypeInfo, TypeKind};
use pgclinic_model::document::{NotChecked, SalvageReport};
use pgclinic_servers::{Session, SqlError};

use super::super::error::SalvageError;
use super::super::plan::{Planned, not_salvaged};
use super::super::staging::{StagedColumn, Staging, own_types_of, quoted, staged_columns};
use super::{QUOTING, is_of_the_server};
use crate::schema::{Catalogs, extension_table};
use crate::shape::{Table, note_of_bytes};
use crate::stored_types::OwnTypes;

/// By the OID of the table.
pub(super) type Stagings = BTreeMap<Oid, Staging>;

fn failed(source: SqlError) -> SalvageError {
    SalvageError::server("make types for stored values", source)
}

/// Makes ready what these tables take. Tables whose rows an extension makes by itself are taken off
/// the list.
pub(super) fn prepare(
    session: &mut Session,
    catalogs: &Catalogs<'_>,
    tables: &mut Vec<Planned>,
    account: &mut SalvageReport,
) -> Result<Stagings, SalvageError> {
    leave_to_extensions(catalogs, tables, account);
    let mut own = OwnTypes::new(catalogs);
    let staged: Vec<Vec<StagedColumn>> = tables
        .iter()
        .map(|planned| staged_columns(&planned.table, &mut own))
        .collect();
    let is_wanted = staged.iter().any(|staged| !own_types_of(staged).is_empty());
    let refused = if is_wanted {
        make_types(session, &own)?
    } else {
        RefusedTypes::default()
    };
    let mut stagings = Stagings::new();
    for (planned, mut staged) in tables.iter_mut().zip(staged) {
        for column in &mut staged {
            refused.apply(column);
            let known = (&mut *planned, &*column);
            match &column.conversion {
                Ok(_) => note_conversion(known),
                Err(why) => refuse(session, known, why, account)?,
            }
        }
        let extension = extension_table(catalogs, planned.table.oid);
        let staging = Staging::of(&planned.table, &staged, extension.as_ref(), &|_| false);
        stagings.extend(staging.map(|staging| (planned.table.oid, staging)));
    }
    Ok(stagings)
}

/// A dump leaves these rows out as well.
fn leave_to_extensions(
    catalogs: &Catalogs<'_>,
    tables: &mut Vec<Planned>,
    account: &mut SalvageReport,
) {
    tables.retain(|planned| {
        let known = extension_table(catalogs, planned.table.oid);
        let Some(known) = known.filter(|known| known.users_rows.is_none()) else {
            return true;
        };
        let what = format!("rows of table {}", quoted(&planned.table));
        let why = format!(
            "extension {} fills it by itself and marks no rows of it as a user's, so that pg_dump leaves them out as well",
            known.extension
        );
        account.not_salvaged.push(NotChecked {
            inherent: true,
            ..not_salvaged(&what, &why)
        });
        false
    });
}

/// Why types could not be made.
#[derive(Default)]
struct RefusedTypes {
    /// None of them.
    all: Option<String>,
    some: BTreeMap<Oid, String>,
}

impl RefusedTypes {
    fn apply(&self, column: &mut StagedColumn) {
        let Ok(way) = &column.conversion else {
            return;
        };
        let mut needed = way.own_types.iter();
        let own = needed.find_map(|oid| self.some.get(oid));
        if let Some(why) = self.all.as_ref().or(own) {
            column.conversion = Err(why.clone());
        }
    }
}

fn make_types(session: &mut Session, own: &OwnTypes<'_>) -> Result<RefusedTypes, SalvageError> {
    let mut refused = RefusedTypes {
        all: why_unable(session).map_err(failed)?,
        ..RefusedTypes::default()
    };
    if refused.all.is_some() {
        return Ok(refused);
    }
    for (oid, own_type) in own.in_order() {
        let Err(error) = session.execute(&own_type.statements) else {
            continue;
        };
        match error.message() {
            Some(message) if !session.is_over() && !is_of_the_server(message) => {
                let why = format!("{}: {}", own_type.what, message.message);
                refused.some.insert(oid, why);
            }
            _ => return Err(failed(error)),
        }
    }
    Ok(refused)
}

/// Why stored bytes cannot be taken over as they are.
fn why_unable(session: &mut Session) -> Result<Option<String>, SqlError> {
    let superuser = session.query_value("SELECT pg_catalog.current_setting('is_superuser')")?;
    if superuser.as_deref() != Some("on") {
        let why = "its text is not known here, and only a superuser can load stored bytes";
        return Ok(Some(why.into()));
    }
    Ok(None)
}

fn type_name(table: &Table, column: usize) -> (String, String) {
    let column = table.columns.get(column);
    let named = column.map(|column| {
        let ty = column.bytes_of.as_ref();
        (
            column.name.clone(),
            ty.map_or(String::new(), |ty| ty.name.clone()),
        )
    });
    named.unwrap_or_default()
}

/// What was said of files is said of the server.
fn note_conversion((planned, staged): (&mut Planned, &StagedColumn)) {
    let (name, ty) = type_name(&planned.table, staged.column);
    let of_files = note_of_bytes(&name, &ty);
    let loaded = format!(
        "column {name} is of type {ty}, whose text is not known here: its stored bytes were loaded as they are"
    );
    for notes in [&mut planned.table.notes, &mut planned.account.notes] {
        for note in notes.iter_mut().filter(|note| **note == of_files) {
            note.clone_from(&loaded);
        }
    }
}

/// A column none of whose values come over: its rows do, with a null in its place.
fn refuse(
    session: &mut Session,
    (planned, staged): (&mut Planned, &StagedColumn),
    why: &str,
    account: &mut SalvageReport,
) -> Result<(), SalvageError> {
    let (name, ty) = type_name(&planned.table, staged.column);
    let table = quoted(&planned.table);
    let what = format!("column {name} ({ty}) of table {table}");
    let why = format!("{why}: its rows come with a null there");
    account.not_salvaged.push(not_salvaged(&what, &why));
    let of_files = note_of_bytes(&name, &ty);
    for notes in [&mut planned.table.notes, &mut planned.account.notes] {
        notes.retain(|note| *note != of_files);
    }
    if let Some(column) = planned.table.columns.get_mut(staged.column) {
        column.bytes_of = None;
        column.ty = Arc::new(TypeInfo {
            kind: TypeKind::Unknown,
            ..TypeInfo::clone(&column.ty)
        });
    }
    // Else the rows would go with the values.
    let nullable = format!(
        "ALTER TABLE {table} ALTER COLUMN {} DROP NOT NULL",
        QUOTING.name(&name)
    );
    match session.execute(&nullable) {
        Err(error) if session.is_over() || error.message().is_none_or(is_of_the_server) => {
            Err(failed(error))
        }
        // Where it stays, the rows are refused one by one, and said to be.
        Ok(()) | Err(_) => Ok(()),
    }
}
