//! Whether what a run read came from the disk: the disk's own count beside that of the server.

use std::time::{Duration, Instant};

use pgclinic_servers::Session;

use crate::asking::number;
use crate::bench::Bench;
use crate::error::{Error, Result};
use crate::servers_of_arms::ColdStart;

/// Before version 15 a session tells its counts this long after it told the last ones, and they are
/// shown as late again (`PGSTAT_STAT_INTERVAL` in `src/backend/postmaster/pgstat.c`, half a
/// second).
const TOLD_AFTER: Duration = Duration::from_millis(600);

/// Sessions of a load are gone by then, or their last counts stay out.
const GONE_AFTER: Duration = Duration::from_secs(2);

/// What the server has counted in its database, in bytes.
#[derive(Debug, Clone, Copy)]
struct Counted {
    /// Read into its buffers, from wherever the kernel had it.
    read: f64,
    /// In all files.
    size: f64,
}

/// Something that is measured on a server that was started cold.
#[derive(Debug)]
pub(super) struct ColdRead {
    disk: ColdStart,
    before: Counted,
    major: u16,
}

/// The same when it is over.
#[derive(Debug)]
pub(super) struct ColdReadDone {
    by_disk: Option<u64>,
    before: Counted,
    major: u16,
}

impl ColdRead {
    /// Right before what is measured.
    pub(super) fn begin(bench: &Bench<'_>, session: &mut Session) -> Result<Self> {
        let major = bench.installation().major;
        let before = counted(session, major)?;
        Ok(Self {
            disk: ColdStart::now(bench.pgdata()),
            before,
            major,
        })
    }

    /// Right behind it.
    pub(super) fn end(self) -> ColdReadDone {
        ColdReadDone {
            by_disk: self.disk.read_bytes(),
            before: self.before,
            major: self.major,
        }
    }
}

impl ColdReadDone {
    /// Why it is not proven that it came from the disk; asked before the session reads anything
    /// else.
    pub(super) fn doubt(&self, session: &mut Session) -> Result<Option<String>> {
        wait_for_others(session)?;
        let after = counted(session, self.major)?;
        let least = least(self.before, after);
        Ok(ColdStart::doubt_about(self.by_disk, least))
    }
}

/// What the disk must have read at least: half of what the server has, as the kernel may have had
/// some by reading ahead before. New pages are none that the disk had; up to version 15 they count
/// as read. No more than all that was there before: what a load reads again comes from the kernel's
/// cache.
fn least(before: Counted, after: Counted) -> u64 {
    let grown = (after.size - before.size).max(0.0);
    let read = after.read - before.read - grown;
    pgclinic_model::whole(read.min(before.size) / 2.0)
}

fn counted(session: &mut Session, major: u16) -> Result<Counted> {
    const READ: &str = "SELECT blks_read * current_setting('block_size')::bigint FROM pg_stat_database \
                        WHERE datname = current_database()";
    let mut ask = |sql: &str| {
        session
            .execute(sql)
            .map_err(Error::sql("asking for counts"))
    };
    if major >= 15 {
        ask("SELECT pg_stat_force_next_flush()")?;
    } else {
        std::thread::sleep(TOLD_AFTER);
        ask("SELECT 1")?;
        std::thread::sleep(TOLD_AFTER);
    }
    Ok(Counted {
        read: number(session, READ)?,
        size: number(session, "SELECT pg_database_size(current_database())")?,
    })
}

/// A session tells its last counts when it ends, before it goes out of the list of sessions.
fn wait_for_others(session: &mut Session) -> Result<()> {
    const OTHERS: &str = "SELECT count(*) FROM pg_stat_activity \
                          WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    let begin = Instant::now();
    while number(session, OTHERS)? > 0.0 && begin.elapsed() < GONE_AFTER {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: f64 = 1_048_576.0;

    fn least_mb(read: f64, size: f64, grown: f64) -> u64 {
        let before = Counted {
            read: 7.0 * MB,
            size: size * MB,
        };
        let after = Counted {
            read: (7.0 + read) * MB,
            size: (size + grown) * MB,
        };
        least(before, after) >> 20
    }

    #[test]
    fn half_of_what_the_server_read_must_come_from_the_disk() {
        assert_eq!(least_mb(100.0, 500.0, 0.0), 50);
        assert_eq!(least_mb(0.0, 500.0, 0.0), 0);
        // A load that reads the same pages again and again.
        assert_eq!(least_mb(9_000.0, 500.0, 0.0), 250);
        // 80 MB were added, and counted as read.
        assert_eq!(least_mb(100.0, 500.0, 80.0), 10);
        assert_eq!(least_mb(50.0, 500.0, 80.0), 0);
        assert_eq!(least_mb(100.0, 500.0, -400.0), 50, "a table was truncated");
    }

    #[test]
    fn a_byte_is_no_proof() {
        let doubt = |read: Option<u64>, least: u64| ColdStart::doubt_about(read, least);
        let catalog_page = |least: u64| doubt(Some(8192), least).expect("a doubt");
        assert_eq!(
            catalog_page(50 << 20),
            "not proven cold: the disk read 0 MB of at least 50 MB"
        );
        assert_eq!(
            catalog_page(5 << 20),
            "not proven cold: the disk read 8 kB of at least 5120 kB"
        );
        assert_eq!(doubt(Some(60 << 20), 50 << 20), None);
        assert_eq!(doubt(Some(0), 0), None, "nothing was read");
        let unknown = doubt(None, 0).expect("a doubt");
        assert!(unknown.contains("names no disk that counts"), "{unknown}");
    }
}
