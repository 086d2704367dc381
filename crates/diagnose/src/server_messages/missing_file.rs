//! `could not open file …: No such file or directory`.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct MissingFile;

impl ServerMessage for MissingFile {
    fn name(&self) -> &'static str {
        "missing-file"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["58P01"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "could not open file {path}: no such file or directory",
            "could not open file {path}: permission denied",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
The catalogs say that a relation lives in this file, and the file is not there. (`Permission denied`: it \
is there and belongs to somebody else.)

Usual causes: a tablespace's disk is not mounted; a restore or copy left files out; somebody deleted \
\"large unknown files\"; a crash with `fsync = off`; an antivirus program. If the file lies in \
`pg_xact`, `pg_multixact` or `pg_subtrans`, a damaged tuple may have asked for a transaction that never \
ran, and no file is missing at all: see the message above it.

If the missing file is an index, nothing is lost. If it is a table, its rows are gone from this cluster; \
its TOAST relation and its indexes are files of their own and may still be there.

It does **not** mean that the database is lost, and a missing `_fsm` or `_vm` file is harmless: the \
server makes them anew.

**Never** create an empty file of that name to make the server quiet: the table would then be empty, \
officially. Never `DROP` the table before backups have been looked at."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = vec!["Look for the file: in the copy, in backups, in `lost+found`, and whether a tablespace is not mounted (`ls -l PGDATA/pg_tblspc`)".to_owned()];
        steps.extend(names.look());
        steps.extend([names.mend()]);
        steps
    }
}
