//! Small questions that many experiments ask of a server and of the kernel.

use pgclinic_servers::Session;

use crate::error::{Error, Result};
use crate::samplers::cpu_seconds;

/// A statement's one number. Null and no row are an empty run.
pub(crate) fn number(session: &mut Session, sql: &str) -> Result<f64> {
    let value = session
        .query_value(sql)
        .map_err(|error| Error::sql(format!("asking {sql}"))(error))?;
    let parsed = value.as_ref().and_then(|value| value.parse().ok());
    parsed.ok_or_else(|| Error::Empty(format!("{sql} gave {value:?} and no number")))
}

/// Bytes of WAL since the cluster was made.
pub(crate) fn wal_bytes(session: &mut Session) -> Result<f64> {
    number(session, "SELECT pg_current_wal_insert_lsn() - '0/0'")
}

/// Runs a statement and says how many seconds it took.
pub(crate) fn timed(session: &mut Session, what: &str, sql: &str) -> Result<f64> {
    let start = std::time::Instant::now();
    session.execute(sql).map_err(Error::sql(what))?;
    Ok(start.elapsed().as_secs_f64())
}

/// Processor seconds that this session's backend has used, user and system (`proc(5)`).
pub(crate) fn backend_cpu_s(session: &mut Session) -> Result<f64> {
    let pid = number(session, "SELECT pg_backend_pid()")?;
    let pid = u32::try_from(pgclinic_model::whole(pid)).ok();
    pid.and_then(cpu_seconds)
        .ok_or_else(|| Error::Empty("/proc does not tell the backend's time".to_owned()))
}
