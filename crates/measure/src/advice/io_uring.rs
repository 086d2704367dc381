//! `io_method = io_uring`: whether this server and this kernel have it, and what it costs beside
//! time.
//!
//! From the article on asynchronous I/O in 18, which warns of containers that forbid it and of
//! system calls that no audit sees.

use super::{Piece, Said, SeenCluster};

/// The first major that has it.
const MAJOR_MIN: u16 = 18;

/// A cluster that is set to use io_uring.
pub(crate) struct IoUring;

impl Piece for IoUring {
    fn name(&self) -> &'static str {
        "io-uring"
    }

    fn of_cluster(&self, seen: &SeenCluster<'_>) -> Option<Said> {
        (seen.cluster.layout.major >= MAJOR_MIN).then_some(())?;
        let method = seen.server.setting(seen.cluster, "io_method", "worker")?;
        (method == "io_uring").then_some(())?;
        let (message, command) = if seen.server.io_uring == Some(false) {
            let message =
                "io_method is io_uring, and this server was compiled without it: it will not start";
            (message.to_owned(), BACK)
        } else if let Some(why) = &seen.server.io_uring_forbidden {
            let message = format!(
                "io_method is io_uring, and the kernel refuses it ({why}): the server will not start"
            );
            (message, BACK)
        } else {
            let message = "io_method is io_uring: its requests pass by the system calls that audits see, much of the kernel's \
                           trouble of late was in it, and containers forbid it (a server that is moved into one will not start)";
            (
                message.to_owned(),
                "ALTER SYSTEM SET io_method = 'worker'; -- and a restart, unless it is faster here",
            )
        };
        Some(Said {
            message,
            of: Vec::new(),
            commands: vec![command.to_owned()],
            settled_by: "pgclinic lab run async-io --into DIR".into(),
        })
    }
}

/// For a server that does not start.
const BACK: &str =
    "io_method = worker # in postgresql.conf, and no line of it in postgresql.auto.conf";
