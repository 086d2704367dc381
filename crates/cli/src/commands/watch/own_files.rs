//! Which directory of this machine holds the files of a server that is watched.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

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

/// Bytes of the files of relations, as they are now; what comes and goes meanwhile is left out.
pub(super) fn relation_bytes(directory: &Path) -> u64 {
    let under = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let mut databases = vec![directory.join("global")];
    databases.extend(under(&directory.join("base")).map(|own| own.path()));
    for space in under(&directory.join("pg_tblspc")) {
        let versions = under(&space.path()).map(|own| own.path());
        databases
            .extend(versions.flat_map(|own| under(&own).map(|own| own.path()).collect::<Vec<_>>()));
    }
    let files = databases.iter().flat_map(|own| under(own));
    let is_relation = |name: &std::ffi::OsStr| {
        let first = name.as_encoded_bytes().first();
        first.is_some_and(u8::is_ascii_digit)
    };
    let files = files.filter(|own| is_relation(&own.file_name()));
    files
        .filter_map(|own| Some(own.metadata().ok()?.len()))
        .sum()
}

/// When files that no server writes were written last, in seconds since 1970: those of a backup are
/// as old as the backup, however late they are read.
pub(super) fn written_at(files: &Path) -> Option<f64> {
    if files.is_dir() {
        if files.join("postmaster.pid").exists() {
            return None;
        }
        let bytes = fs::read(files.join("global/pg_control")).ok()?;
        return Some(ControlFile::parse(&bytes).ok()?.checkpoint.time as f64);
    }
    let modified = fs::metadata(files).and_then(|own| own.modified()).ok()?;
    let since = modified.duration_since(UNIX_EPOCH).ok()?;
    Some(since.as_secs_f64())
}
