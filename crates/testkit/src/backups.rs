//! Base backups of running servers, made by `pg_basebackup`.

use std::path::Path;

use pgclinic_servers::{Server, StartOptions};

use crate::{TempCopy, run_as};

/// Runs `pg_basebackup` into `folder`, which must be empty or missing, with further arguments. The server's programs
/// must have it: an installed PostgreSQL does.
pub fn base_backup(server: &Server, folder: &Path, arguments: &[&str]) {
    let program = server.installation().tool("pg_basebackup");
    let program = program.expect("an installed PostgreSQL has pg_basebackup");
    let mut command = run_as().command(&program);
    command.arg("--host").arg(server.socket_folder());
    command.args(["--username", "postgres", "--checkpoint", "fast"]);
    command.arg("--pgdata").arg(folder).args(arguments);
    let output = command.output().expect("pg_basebackup runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "pg_basebackup: {said}");
}

/// A plain base backup of a server on this copy, with the copy's tablespace in a folder beside it.
pub fn plain_backup(copy: &TempCopy, server: &Server, folder: &Path, arguments: &[&str]) {
    let from = copy.tablespaces.first().expect("a seed has a tablespace");
    let to = folder.with_extension("annex");
    let mapping = format!("--tablespace-mapping={}={}", from.display(), to.display());
    base_backup(server, folder, &[&[mapping.as_str()], arguments].concat());
}

/// Settings with which a server lets itself be backed up.
pub fn as_primary() -> StartOptions {
    let options = StartOptions::default().with("wal_level", "replica");
    options.with("max_wal_senders", "4")
}
