//! A process of the server ended with a signal, and all sessions with it.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct ServerCrashed;

impl ServerMessage for ServerCrashed {
    fn name(&self) -> &'static str {
        "server-crashed"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["57P02", "08006"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "was terminated by signal {n}",
            "server closed the connection unexpectedly",
            "terminating connection because of crash of another server process",
            "connection to server was lost",
            "segmentation fault",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
A process of the server ended suddenly. The postmaster then ends all others, replays the WAL and opens \
again: that is why every client loses its connection, also those that had done nothing wrong.

Signal 11 (segmentation fault) or 7 (bus error) while a table is read often means damaged pages: the \
server trusts the offsets and lengths on a page once its header looks right, and a wrong line pointer \
leads it outside the page. If the same query, or `pg_dump` of the same table, does it again, damage is \
the first thing to look for.

It does **not** have to be damage. Signal 9 is mostly the kernel's out-of-memory killer or an \
administrator, signal 6 an assertion or a PANIC whose message stands above it, and extensions in C crash \
as well. `server closed the connection unexpectedly` without a line in the server's log is the network.

At risk is what the damaged page holds; committed work of others is safe through the WAL, if `fsync` and \
`full_page_writes` were on.

**Never** keep repeating the query on production: each try throws everybody out. Never `pg_resetwal` \
because of a crash."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        vec!["Read the server log just before: the line with `was terminated by signal` names the process and, below it, the statement that ran (`Failed process was running`)".to_owned(), "Check everything in the stopped copy: `".to_owned() + &names.check_all_command() + "`", names.restore(), "If one table does it, dump all others first, one by one (`pg_dump -t`)".to_owned()]
    }
}
