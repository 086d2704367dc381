//! Whether a server has the files of relations that its base backup did not bring.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_check::stream::{Absent, AbsentFile, StreamCheck};
use pgclinic_format::Oid;
use pgclinic_model::document::NotChecked;
use pgclinic_servers::{ConnectOptions, ConnectionTarget, Session, SqlError};

/// OID and path of each relation that is without its file.
type Missing = BTreeSet<(Oid, String)>;

/// Asks it. Whatever it could not be asked for is noted, but for unlogged relations: none of them
/// comes with a base backup, and that does not make one suspect.
pub(super) fn ask(
    target: &ConnectionTarget,
    connect: &ConnectOptions,
    absent: Vec<AbsentFile>,
    flight: &mut StreamCheck,
) {
    let mut by_database: BTreeMap<Oid, Vec<AbsentFile>> = BTreeMap::new();
    for file in absent {
        by_database.entry(file.database).or_default().push(file);
    }
    for (database, absent) in by_database {
        let name = absent.iter().find_map(|file| file.database_name.clone());
        let mut target = target.clone();
        target.database = name.unwrap_or(target.database);
        match answers(&target, connect, &absent) {
            Ok(answers) => {
                let missing = answers.missing.into_iter();
                let missing = missing.map(|(oid, path)| ((database, oid), path));
                flight.without_file.extend(missing);
                flight
                    .not_checked
                    .extend(answers.short.into_iter().map(short));
            }
            // It was dropped since its catalogs passed by.
            Err(error) if is_gone(&error) => {}
            Err(error) => {
                let suspects = absent
                    .iter()
                    .filter(|file| !file.is_unlogged && file.absent == Absent::File);
                flight.not_checked.extend(suspects.map(|file| NotChecked {
                    what: format!("whether the file of {} is there", file.name),
                    why: format!(
                        "it did not come with the base backup, and the server could not be asked for it (pg_stat_file, for a superuser or a role with EXECUTE on it): {error}"
                    ),
                    inherent: false,
                }));
            }
        }
    }
}

/// `invalid_catalog_name`.
fn is_gone(error: &SqlError) -> bool {
    error
        .message()
        .is_some_and(|message| message.sqlstate == "3D000")
}

/// What a server says of what did not come.
#[derive(Default)]
struct Answers {
    missing: Missing,
    /// Name, pages that `pg_class` counts, blocks that there are.
    short: Vec<[String; 3]>,
}

fn short([name, counted, blocks]: [String; 3]) -> NotChecked {
    NotChecked {
        what: format!("whether the last blocks of {name} are lost"),
        why: format!(
            "pg_class counts {counted} pages, and its file has {blocks}: --level structure asks its indexes and its map"
        ),
        inherent: false,
    }
}

/// A relation that is dropped or rewritten between its row and the look at its file is gone at the
/// second question, or has another path.
fn answers(
    target: &ConnectionTarget,
    connect: &ConnectOptions,
    absent: &[AbsentFile],
) -> Result<Answers, SqlError> {
    let mut session = Session::open(target, connect)?;
    let of = |absent: &[AbsentFile], wanted: Absent| -> Vec<Oid> {
        let wanted = absent.iter().filter(|file| file.absent == wanted);
        wanted.map(|file| file.relation).collect()
    };
    let mut answers = Answers {
        short: shorter(&mut session, &of(absent, Absent::Blocks))?,
        ..Answers::default()
    };
    let first = missing(&mut session, &of(absent, Absent::File))?;
    if !first.is_empty() {
        let oids: Vec<Oid> = first.iter().map(|(oid, _)| *oid).collect();
        let second = missing(&mut session, &oids)?;
        answers.missing = first.intersection(&second).cloned().collect();
    }
    Ok(answers)
}

/// Who may connect may ask for lengths. A table that shrinks has its row written after that.
fn shorter(session: &mut Session, relations: &[Oid]) -> Result<Vec<[String; 3]>, SqlError> {
    if relations.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT name, relpages, blocks FROM (SELECT oid::pg_catalog.regclass::text AS name, relpages, \
         pg_catalog.pg_relation_size(oid) / pg_catalog.current_setting('block_size')::bigint AS blocks \
         FROM pg_catalog.pg_class WHERE oid = ANY ('{{{}}}'::pg_catalog.oid[]) OFFSET 0) sized WHERE relpages > blocks",
        list(relations)
    );
    let rows = session.query(&sql)?.into_iter();
    let short = rows.filter_map(|row| match row.as_slice() {
        [Some(name), Some(counted), Some(blocks)] => {
            Some([name.clone(), counted.clone(), blocks.clone()])
        }
        _ => None,
    });
    Ok(short.collect())
}

fn list(relations: &[Oid]) -> String {
    let oids: Vec<String> = relations.iter().map(Oid::to_string).collect();
    oids.join(",")
}

/// A standby has no main fork of an unlogged relation.
fn missing(session: &mut Session, relations: &[Oid]) -> Result<Missing, SqlError> {
    if relations.is_empty() {
        return Ok(Missing::new());
    }
    let sql = format!(
        "SELECT oid, path FROM (SELECT oid, pg_catalog.pg_relation_filepath(oid) AS path FROM pg_catalog.pg_class \
         WHERE oid = ANY ('{{{}}}'::pg_catalog.oid[]) AND relpersistence <> 't' \
         AND (relpersistence = 'p' OR NOT pg_catalog.pg_is_in_recovery()) OFFSET 0) named \
         WHERE path IS NOT NULL AND (pg_catalog.pg_stat_file(path, true)).size IS NULL",
        list(relations)
    );
    let rows = session.query(&sql)?.into_iter();
    let missing = rows.filter_map(|row| match row.as_slice() {
        [Some(oid), Some(path)] => Some((oid.parse().ok()?, path.clone())),
        _ => None,
    });
    Ok(missing.collect())
}
