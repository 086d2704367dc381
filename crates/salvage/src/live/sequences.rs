//! The values of the sequences of a running server. They are no part of a snapshot: each is what it
//! is when it is asked.

use std::cell::OnceCell;

use pgclinic_model::document::{NotChecked, SequenceAccount};
use pgclinic_servers::SqlError;

use super::Live;
use super::snapshots::Reader;
use crate::salvage::{SalvageError, not_salvaged, sequences};
use crate::shape::MainForks;

const QUESTION: &str = "\
SELECT n.nspname, c.relname, pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname) \
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
WHERE c.relkind = 'S' AND c.relpersistence <> 't' AND (c.oid >= 16384 OR n.nspname !~ '^pg_') ORDER BY 1, 2";

/// What was found, and what was not and why.
pub(super) type Found = (Vec<SequenceAccount>, Vec<NotChecked>);

/// Reads them over SQL, and from the files of the server where it refuses.
pub(super) fn read<'a>(
    live: &Live<'a>,
    kept: &mut Option<Reader<'a>>,
) -> Result<Found, SalvageError> {
    let (mut found, mut lost) = (Vec::new(), Vec::new());
    let rows = match live.ask(kept, &|reader| reader.query(QUESTION))? {
        Ok(rows) => rows,
        Err(error) => {
            lost.push(not_salvaged("sequences", &error.to_string()));
            return Ok((found, lost));
        }
    };
    let of_files = OnceCell::new();
    for row in &rows {
        let [Some(schema), Some(name), Some(quoted)] = row.as_slice() else {
            continue;
        };
        if !live.options.selection.takes_name(schema, name) {
            continue;
        }
        let value = match live.ask(kept, &|reader| value(reader, quoted))? {
            Ok((last_value, is_called)) => Ok((last_value, is_called, None)),
            Err(error) => of_files
                .get_or_init(|| read_files(live))
                .iter()
                .find(|known| known.schema == *schema && known.sequence == *name)
                .map(|known| (known.last_value, known.is_called, known.doubt.clone()))
                .ok_or(error),
        };
        match value {
            Ok((last_value, is_called, doubt)) => found.push(SequenceAccount {
                database: live.target.database.clone(),
                schema: schema.clone(),
                sequence: name.clone(),
                last_value,
                is_called,
                doubt,
            }),
            Err(error) => {
                let what = format!("sequence {schema}.{name}");
                lost.push(not_salvaged(&what, &error.to_string()));
            }
        }
    }
    Ok((found, lost))
}

fn value(reader: &mut Reader<'_>, quoted: &str) -> Result<(i64, bool), SqlError> {
    let rows = reader.query(&format!("SELECT last_value, is_called FROM {quoted}"))?;
    let value = match rows.first().map(Vec::as_slice) {
        Some([Some(last_value), Some(is_called)]) => last_value
            .parse()
            .ok()
            .map(|last_value| (last_value, is_called == "t")),
        _ => None,
    };
    value.ok_or_else(|| SqlError::Protocol("a sequence without a value".to_owned()))
}

/// All that the files of the server tell; nothing where they cannot be read.
fn read_files(live: &Live<'_>) -> Vec<SequenceAccount> {
    let found = live.files.with(|cluster, catalog| {
        let files = MainForks::of_database(cluster, catalog.database);
        sequences::read_all(cluster, catalog, &files, &live.options.selection).found
    });
    found.unwrap_or_default()
}
