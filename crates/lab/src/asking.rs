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

/// Pages that a statement takes from the server's buffers, those included that it has to read, by
/// `EXPLAIN (ANALYZE, BUFFERS)`.
pub(crate) fn buffers(session: &mut Session, sql: &str) -> Result<f64> {
    let explain = format!("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) {sql}");
    let lines = session
        .query(&explain)
        .map_err(Error::sql("counting buffers"))?;
    // The first line is that of the whole plan.
    let mut lines = lines.into_iter().flatten().flatten();
    let found = lines.find_map(|line| buffers_in(&line));
    found.ok_or_else(|| Error::Empty(format!("{explain} named no buffers")))
}

/// The sum of `Buffers: shared hit=2821 read=7383`.
fn buffers_in(line: &str) -> Option<f64> {
    let rest = line.trim().strip_prefix("Buffers: shared ")?;
    let counts = rest.split([' ', ',']).filter_map(|word| {
        let (name, count) = word.split_once('=')?;
        matches!(name, "hit" | "read").then(|| count.parse::<f64>().ok())?
    });
    Some(counts.sum())
}

/// Processor seconds that this session's backend has used, user and system (`proc(5)`).
pub(crate) fn backend_cpu_s(session: &mut Session) -> Result<f64> {
    let pid = number(session, "SELECT pg_backend_pid()")?;
    let pid = u32::try_from(pgclinic_model::whole(pid)).ok();
    pid.and_then(cpu_seconds)
        .ok_or_else(|| Error::Empty("/proc does not tell the backend's time".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of the article on UUIDs.
    #[test]
    fn buffers_of_an_ordered_read_are_those_that_were_hit_and_read() {
        let line = "  Buffers: shared hit=1004700 read=30";
        assert_eq!(buffers_in(line), Some(1_004_730.0));
        let line = "Buffers: shared hit=2821 read=7383 dirtied=1";
        assert_eq!(buffers_in(line), Some(10_204.0));
        assert_eq!(buffers_in("Planning Time: 0.1 ms"), None);
    }
}
