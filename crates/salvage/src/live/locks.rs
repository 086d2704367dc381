//! Locks of others, and how long a salvage waits for them.
//!
//! ```text
//! a session of ours holds pg_class in its snapshot ◄── VACUUM FULL pg_class waits for it
//! VACUUM FULL pg_class                             ◄── a session that begins waits for that
//! ```
//!
//! When we wait for the session that begins, the three wait for each other, and no server sees the
//! circle, as a part of it is here. So nobody waits without an end: a statement that gets no lock
//! fails (`lock_timeout`), which ends its transaction and with it what others wait for, and it is
//! asked again. Nothing bounds how long a session begins (`InitPostgres` reads catalogs before it
//! takes the settings of the session), so that the client stops to wait.

use std::time::Duration;

use pgclinic_servers::SqlError;

/// A statement that gets no lock is asked so often.
pub(super) const TRIES: u32 = 4;
/// `lock_not_available` and `deadlock_detected`.
const NO_LOCK: [&str; 2] = ["55P03", "40P01"];

/// Others held a lock for too long.
pub(super) fn is_locked_out(error: &SqlError) -> bool {
    let state = error.message().map(|message| message.sqlstate.as_str());
    state.is_some_and(|state| NO_LOCK.contains(&state))
}

/// The same, or no session could begin in time.
pub(super) fn is_held_up(error: &SqlError) -> bool {
    is_locked_out(error) || matches!(error, SqlError::TimedOut { .. })
}

/// What the server says when it is asked until it is not locked out.
pub(super) fn insist<T>(mut ask: impl FnMut() -> Result<T, SqlError>) -> Result<T, SqlError> {
    let mut tries = 1;
    loop {
        match ask() {
            Err(error) if is_locked_out(&error) && tries < TRIES => tries += 1,
            answer => return answer,
        }
    }
}

/// How long a session may take to begin, where a lock is waited for so long.
pub(super) fn open_limit(lock_wait: Duration) -> Duration {
    lock_wait * TRIES
}

/// What a setting takes.
pub(super) fn milliseconds(wait: Duration) -> String {
    wait.as_millis().to_string()
}

/// Why nothing is known of what others hold.
pub(super) fn why(error: &SqlError) -> String {
    format!(
        "another session holds a lock (VACUUM FULL, CLUSTER, ALTER TABLE): {error}; pg_locks shows who, and the same command finds it when that is over"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_locked_out_is_asked_again() {
        let limit = Duration::from_secs(1);
        let mut asked = 0;
        let answer: Result<(), _> = insist(|| {
            asked += 1;
            Err(SqlError::TimedOut { limit })
        });
        assert_eq!(asked, 1);
        assert!(answer.is_err_and(|error| is_held_up(&error) && !is_locked_out(&error)));
    }
}
