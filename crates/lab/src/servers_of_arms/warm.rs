//! Warm: relations read into the server's buffers, as far as they fit, before the measuring begins.

use pgclinic_servers::Session;

use crate::error::{Error, Result};

/// Reads relations with their indexes and long values, by `pg_prewarm` where the server has it, else by reading them.
/// Gives the number of pages.
pub(crate) fn warm(session: &mut Session, relations: &[&str]) -> Result<u64> {
    let failed = || Error::sql("reading relations into memory");
    let has_prewarm = session
        .query_value("SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_prewarm'")
        .map_err(failed())?;
    let mut pages = 0;
    for relation in relations {
        let sql = if has_prewarm.as_deref() == Some("1") {
            session
                .execute("SET client_min_messages = error; CREATE EXTENSION IF NOT EXISTS pg_prewarm; RESET client_min_messages")
                .map_err(failed())?;
            prewarm(relation)
        } else {
            format!(
                "SELECT pg_relation_size('{relation}') / 8192 FROM (SELECT count(*) FROM {relation}) read"
            )
        };
        let read = session.query_value(&sql).map_err(failed())?;
        pages += read.and_then(|read| read.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(pages)
}

fn prewarm(relation: &str) -> String {
    format!(
        "WITH named AS (SELECT oid, reltoastrelid FROM pg_class WHERE oid = '{relation}'::regclass), \
         owners AS (SELECT oid FROM named UNION SELECT reltoastrelid FROM named WHERE reltoastrelid <> 0), \
         everything AS (SELECT oid FROM owners UNION SELECT indexrelid FROM pg_index WHERE indrelid IN (SELECT oid FROM owners)) \
         SELECT sum(pg_prewarm(oid::regclass)) FROM everything"
    )
}
