//! Standbys of running servers, on copies of what their primaries began with.

use std::time::{Duration, Instant};

use pgclinic_servers::{Server, Session, StartOptions};

use crate::TempCopy;

/// A server on this copy that follows the primary, with further settings. The primary needs
/// `max_wal_senders` and the WAL since the copy was taken.
pub fn standby(copy: &TempCopy, primary: &Server, options: StartOptions) -> Server {
    std::fs::write(copy.pgdata.join("standby.signal"), "").expect("a file");
    let folder = primary.socket_folder().display();
    let from = format!("host={folder} port=5432 user=postgres");
    let options = options.with("primary_conninfo", &from);
    let options = options.with("max_wal_senders", "4");
    copy.start_with(&options).expect("a standby")
}

/// Waits until the standby has replayed what the primary has written.
pub fn catch_up(primary: &mut Session, standby: &Server) {
    let written = primary
        .query_value("SELECT pg_current_wal_lsn()")
        .expect("an LSN");
    let sql = format!(
        "SELECT pg_last_wal_replay_lsn() >= '{}'",
        written.expect("an LSN")
    );
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let session = standby.connect("postgres");
        let answer = session.and_then(|mut session| session.query_value(&sql));
        if answer
            .as_ref()
            .is_ok_and(|caught| caught.as_deref() == Some("t"))
        {
            return;
        }
        assert!(Instant::now() < end, "{answer:?}\n{}", standby.log());
        std::thread::sleep(Duration::from_millis(5));
    }
}
