//! The files of a user's cluster that a rehearsal needs, read through its source and written into a
//! new directory: those of its databases, and what their rows are judged by.
//!
//! ```text
//! PG_VERSION, global, base, pg_tblspc, pg_xact, pg_multixact …   all of them, or of one database
//! pg_wal                                                         from the last checkpoint on
//! log, pgsql_tmp, what else lies there                           nothing
//! ```

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

use pgclinic_cluster::Cluster;
use pgclinic_model::Progress;
use pgclinic_source::{EntryKind, Source, SourceErrorKind};

use crate::exit::Failure;

/// What the server makes itself, and reads when it starts.
const DIRECTORIES: [&str; 19] = [
    "base",
    "global",
    "pg_commit_ts",
    "pg_dynshmem",
    "pg_logical",
    "pg_multixact",
    "pg_notify",
    "pg_replslot",
    "pg_serial",
    "pg_snapshots",
    "pg_stat",
    "pg_stat_tmp",
    "pg_subtrans",
    "pg_tblspc",
    "pg_twophase",
    "pg_wal",
    "pg_wal/archive_status",
    "pg_wal/summaries",
    "pg_xact",
];
/// Of them, those whose content a start does without.
const EMPTIED: [&str; 5] = [
    "pg_dynshmem",
    "pg_notify",
    "pg_stat_tmp",
    "pg_wal/archive_status",
    "pg_wal/summaries",
];
const FILES: [&str; 7] = [
    "PG_VERSION",
    "backup_label",
    "pg_hba.conf",
    "pg_ident.conf",
    "postgresql.auto.conf",
    "postgresql.conf",
    "tablespace_map",
];
/// Bytes that are read at once.
const STEP: usize = 1 << 20;

/// User and group.
type Owner = (u32, u32);

/// Who owns the original, where it is a directory: a server takes only what is its user's own.
pub(crate) fn owner_of(original: &Path) -> Option<Owner> {
    let found = fs::metadata(original).ok()?;
    found.is_dir().then(|| (found.uid(), found.gid()))
}

/// Only root gives files away; for others every file is their own.
fn give(path: &Path, owner: Option<Owner>) -> std::io::Result<()> {
    match owner {
        Some((user, group)) if rustix::process::geteuid().is_root() => {
            chown(path, Some(user), Some(group))
        }
        _ => Ok(()),
    }
}

/// Files and directories that are copied.
pub(crate) struct NeededFiles {
    directories: Vec<String>,
    files: Vec<(String, u64)>,
    /// Bytes of all files.
    pub(crate) bytes: u64,
}

impl NeededFiles {
    /// Lists what is needed of the cluster, or of one database of it.
    pub(crate) fn of(cluster: &Cluster, database: Option<&str>) -> Result<Self, Failure> {
        let source = cluster.source().as_ref();
        let skipped = directories_of_others(cluster, database)?;
        let wal_from = first_segment(cluster);
        let mut needed = NeededFiles {
            directories: Vec::new(),
            files: Vec::new(),
            bytes: 0,
        };
        for file in FILES {
            if let Ok(len) = source.len(file) {
                needed.add(file.into(), len);
            }
        }
        let mut left: Vec<String> = DIRECTORIES.map(String::from).into();
        while let Some(directory) = left.pop() {
            let entries = match source.list(&directory) {
                Ok(entries) => entries,
                Err(error) if error.kind == SourceErrorKind::NotFound => continue,
                Err(error) => return Err(error.into()),
            };
            needed.directories.push(directory.clone());
            if skipped.contains(&directory) || EMPTIED.contains(&directory.as_str()) {
                continue;
            }
            for entry in entries {
                let path = format!("{directory}/{}", entry.name);
                let is_listed = DIRECTORIES.contains(&path.as_str());
                match entry.kind {
                    EntryKind::Folder if !is_listed && !is_fleeting(&entry.name) => left.push(path),
                    EntryKind::File if is_needed(&directory, &entry.name, wal_from.as_deref()) => {
                        needed.add(path, entry.len);
                    }
                    EntryKind::Folder | EntryKind::File | EntryKind::Other => {}
                }
            }
        }
        needed.directories.sort();
        needed.files.sort();
        Ok(needed)
    }

    fn add(&mut self, path: String, len: u64) {
        self.bytes = self.bytes.saturating_add(len);
        self.files.push((path, len));
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.files.len() as u64
    }

    /// Bytes that are free where `to` will be, or why they do not suffice: the copy, and as much
    /// again for what a salvage writes of tables that are hurt.
    pub(crate) fn room(&self, to: &Path) -> Result<u64, Failure> {
        let disk = rustix::fs::statvfs(to)
            .map_err(|error| Failure::new(format!("cannot examine {}: {error}", to.display())))?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let wanted = self.bytes.saturating_mul(2);
        if free >= wanted {
            return Ok(free);
        }
        Err(Failure::new(format!(
            "the copy takes {} and the rows that are read of it as much again; {} has {} free. Name a larger disk with --scratch, or one database with --database",
            mebibytes(self.bytes),
            to.display(),
            mebibytes(free)
        )))
    }

    /// Writes the copy into `to`, which is not there.
    pub(crate) fn write(
        &self,
        source: &dyn Source,
        to: &Path,
        owner: Option<Owner>,
        progress: &dyn Progress,
    ) -> Result<(), Failure> {
        for directory in std::iter::once("").chain(self.directories.iter().map(String::as_str)) {
            let path = to.join(directory);
            let mut builder = fs::DirBuilder::new();
            let made = builder.mode(0o700).create(&path);
            let owned = made.and_then(|()| give(&path, owner));
            owned.map_err(|error| failed("create", &path, &error))?;
        }
        progress.expect(self.bytes);
        progress.foresee();
        let mut buffer = vec![0; STEP];
        for (path, _) in &self.files {
            let path_of_copy = to.join(path);
            copy_file(source, path, &path_of_copy, &mut buffer, progress)?;
            give(&path_of_copy, owner).map_err(|error| failed("own", &path_of_copy, &error))?;
            if progress.is_interrupted() {
                return Err(Failure::new("interrupted while the cluster was copied"));
            }
        }
        Ok(())
    }
}

/// In the unit that is read most easily.
pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {what} {}: {error}", path.display()))
}

fn copy_file(
    source: &dyn Source,
    from: &str,
    to: &PathBuf,
    buffer: &mut [u8],
    progress: &dyn Progress,
) -> Result<(), Failure> {
    let mut options = File::options();
    let made = options.write(true).create_new(true).mode(0o600).open(to);
    let mut file = made.map_err(|error| failed("create", to, &error))?;
    let mut offset = 0;
    loop {
        let read = source.read_at(from, offset, buffer)?;
        let bytes = buffer.get(..read).unwrap_or_default();
        file.write_all(bytes)
            .map_err(|error| failed("write", to, &error))?;
        offset += read as u64;
        progress.advance(read as u64);
        if read < buffer.len() || progress.is_interrupted() {
            return Ok(());
        }
    }
}

/// Where the other databases have their files, if one is asked for.
fn directories_of_others(
    cluster: &Cluster,
    database: Option<&str>,
) -> Result<BTreeSet<String>, Failure> {
    let Some(name) = database else {
        return Ok(BTreeSet::new());
    };
    let is_named = |one: &&pgclinic_cluster::Database| one.name.as_deref() == Some(name);
    let Some(own) = cluster.databases.values().find(is_named) else {
        return Err(Failure::new(format!("there is no database {name}")));
    };
    let others = cluster.homes.iter();
    let others = others.filter(|home| home.database != 0 && home.database != own.oid);
    Ok(others.map(|home| home.folder.clone()).collect())
}

/// The end of the name of the first segment that a start reads; none where a backup begins
/// earlier than the control file says, or nothing tells.
fn first_segment(cluster: &Cluster) -> Option<String> {
    let control = cluster.control.trusted()?;
    let has_label = cluster.source().len("backup_label").is_ok();
    let segment_bytes = u64::from(control.xlog_seg_size).max(1);
    let number = control.checkpoint.redo.0 / segment_bytes;
    let per_log = (1_u64 << 32).checked_div(segment_bytes)?.max(1);
    (!has_label).then(|| format!("{:08X}{:08X}", number / per_log, number % per_log))
}

fn is_fleeting(name: &str) -> bool {
    name.starts_with("pgsql_tmp")
}

fn is_needed(directory: &str, name: &str, wal_from: Option<&str>) -> bool {
    let is_older = |from: &str| name.len() == 24 && name.get(8..).is_some_and(|own| own < from);
    if directory == "pg_wal" {
        return !wal_from.is_some_and(is_older);
    }
    !is_fleeting(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_wal_from_the_checkpoint_on_is_needed() {
        let from = Some("0000000100000010");
        let is_needed = |name| is_needed("pg_wal", name, from);
        assert!(!is_needed("00000001000000010000000F"));
        assert!(is_needed("000000010000000100000010"));
        assert!(is_needed("000000020000000100000011"));
        assert!(is_needed("00000002.history"));
        assert!(!super::is_needed("base/5", "pgsql_tmp4711.0", None));
        assert!(super::is_needed("base/5", "16384.1", None));
    }
}
