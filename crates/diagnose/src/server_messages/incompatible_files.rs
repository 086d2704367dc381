//! `database files are incompatible with server`.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct IncompatibleFiles;

impl ServerMessage for IncompatibleFiles {
    fn name(&self) -> &'static str {
        "incompatible-files"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["22023", "55000", "XX000"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "database files are incompatible with server",
            "the data directory was initialized by postgresql version",
            "the database cluster was initialized with",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
The server compared the numbers in `pg_control` with those it was built with and they differ. The DETAIL \
line says which: the major version, the catalog version, the control file's version, the block size, the \
segment size, the WAL block size, the length of names, the byte order.

Nearly always nothing is damaged: the wrong binaries were started. Typical: the distribution installed a \
new major and the service points to it; a data directory came from a machine with another build (32 kB \
blocks, an old beta, a fork of PostgreSQL); a restore mixed the folders of two clusters.

Only when all of these are ruled out, or when the number shown is absurd (`catalog version number 0`, \
byte order), is the control file damaged.

Nothing is at risk as long as nobody forces it.

It does **not** mean that the data must be dumped and loaded because they are broken; between majors \
`pg_upgrade` or dump and restore is needed, with the **old** binaries at hand.

**Never** edit `PG_VERSION` or `pg_control` to make the server start, and never `pg_resetwal` with the \
wrong major's binary: it writes a control file of its own version."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        vec!["Compare `cat PGDATA/PG_VERSION` with `postgres --version`, and start the binaries of that major".to_owned(), "If they agree: `".to_owned() + &names.check_all_command() + "`"]
    }
}
