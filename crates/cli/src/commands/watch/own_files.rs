//! Which directory of this machine holds the files of a server that is watched.

use std::fs;
use std::path::{Path, PathBuf};

use pgclinic_format::control_file::ControlFile;
use pgclinic_watch::ServerOnDisk;

/// Where the server says they are, else where the environment does; if they are surely its own.
pub(super) fn directory_of(
    server: &ServerOnDisk,
    pgdata: Option<&Path>,
) -> Result<PathBuf, String> {
    let named = server.data_directory.as_deref().or(pgdata);
    let directory = named.ok_or(
        "this role may not know data_directory (GRANT pg_monitor TO it), and PGDATA names none",
    )?;
    has_number_of(directory, server)?;
    server.runs_on(directory)?;
    Ok(directory.to_owned())
}

/// The number of the cluster is in its files as the server says it; a copy has the same one.
pub(super) fn has_number_of(directory: &Path, server: &ServerOnDisk) -> Result<(), String> {
    let path = directory.join("global/pg_control");
    let shown = path.display();
    let asked = server.system_identifier.as_ref().ok_or(
        "this role may not know the number of the cluster, so that its files cannot be recognized",
    )?;
    let bytes = fs::read(&path).map_err(|error| {
        format!("cannot read {shown}: {error}; the files must be on this machine, and readable")
    })?;
    let control = ControlFile::parse(&bytes).map_err(|fault| format!("{shown}: {fault}"))?;
    let own = control.system_identifier.to_string();
    if own == *asked {
        return Ok(());
    }
    Err(format!(
        "{shown} is of another cluster, {own} and not {asked}"
    ))
}
