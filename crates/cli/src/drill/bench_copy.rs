//! A copy of the master that is hurt again and again: after each use only the files that changed
//! are copied anew.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use pgclinic_format::control_file::{self, CHECKSUM_VERSION_AT};
use pgclinic_servers::copy_cluster;
use pgclinic_surgery::mark_copy;

use crate::drill::master::Master;
use crate::exit::Failure;

/// Length and time of the last change, to the nanosecond.
type Stamp = (u64, i64, i64);

/// One tree of the copy and the tree of the master that it mirrors.
struct Tree {
    copy: PathBuf,
    master: PathBuf,
}

/// A copy of the master cluster that is damaged and refreshed in turns.
pub(crate) struct BenchCopy {
    pub(crate) pgdata: PathBuf,
    trees: Vec<Tree>,
    /// Each before those in it.
    directories: Vec<PathBuf>,
    stamps: BTreeMap<PathBuf, Stamp>,
}

impl BenchCopy {
    /// A marked copy in a folder of its own.
    pub(crate) fn make(master: &Master, name: &str) -> Result<Self, Failure> {
        let folder = master.scratch.folder(name)?;
        let copied = copy_cluster(&master.pgdata, &folder)?;
        mark_copy(&copied.pgdata)?;
        let mut trees = vec![Tree {
            copy: copied.pgdata.clone(),
            master: master.pgdata.clone(),
        }];
        for copy in copied.tablespaces {
            let oid = copy
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .replace("tablespace-", "");
            let link = master.pgdata.join("pg_tblspc").join(oid);
            trees.push(Tree {
                copy,
                master: link.canonicalize()?,
            });
        }
        let mut bench = BenchCopy {
            pgdata: copied.pgdata,
            trees,
            directories: Vec::new(),
            stamps: BTreeMap::new(),
        };
        for tree in &bench.trees {
            list_directories(&tree.copy, &mut bench.directories)?;
        }
        bench.stamps = bench.look()?;
        Ok(bench)
    }

    fn look(&self) -> Result<BTreeMap<PathBuf, Stamp>, Failure> {
        let mut stamps = BTreeMap::new();
        for tree in &self.trees {
            list_files(&tree.copy, &mut stamps)?;
        }
        Ok(stamps)
    }

    /// Brings back every file that changed, came or went since the copy was made, and directories
    /// that went.
    pub(crate) fn refresh(&mut self) -> Result<(), Failure> {
        for directory in self.directories.iter().filter(|path| !path.exists()) {
            self.make_again(directory)?;
        }
        let now = self.look()?;
        for path in now.keys().filter(|path| !self.stamps.contains_key(*path)) {
            fs::remove_file(path)?;
        }
        let stale: Vec<PathBuf> = self
            .stamps
            .iter()
            .filter(|(path, stamp)| now.get(*path) != Some(stamp))
            .map(|(path, _)| path.clone())
            .collect();
        for path in stale {
            self.copy_again(&path)?;
            let metadata = fs::symlink_metadata(&path)?;
            self.stamps.insert(path, stamp(&metadata));
        }
        Ok(())
    }

    fn make_again(&self, directory: &Path) -> Result<(), Failure> {
        let Some(original) = self.original(directory) else {
            return Ok(());
        };
        let metadata = fs::metadata(&original)?;
        fs::create_dir(directory)?;
        chown(directory, Some(metadata.uid()), Some(metadata.gid()))?;
        Ok(fs::set_permissions(directory, metadata.permissions())?)
    }

    fn copy_again(&self, path: &Path) -> Result<(), Failure> {
        let Some(original) = self.original(path) else {
            return Ok(());
        };
        if !original.exists() {
            mark_copy(&self.pgdata)?;
            return Ok(());
        }
        let metadata = fs::metadata(&original)?;
        fs::copy(&original, path)?;
        chown(path, Some(metadata.uid()), Some(metadata.gid()))?;
        Ok(fs::set_permissions(
            path,
            fs::Permissions::from_mode(metadata.mode()),
        )?)
    }

    fn original(&self, path: &Path) -> Option<PathBuf> {
        self.trees
            .iter()
            .find_map(|tree| Some(tree.master.join(path.strip_prefix(&tree.copy).ok()?)))
    }

    /// Files whose bytes are not the master's; the marker of the copy does not count.
    pub(crate) fn differing(&self) -> Result<Vec<PathBuf>, Failure> {
        let mut differing = Vec::new();
        let now = self.look()?;
        for path in now
            .keys()
            .chain(self.stamps.keys().filter(|path| !now.contains_key(*path)))
        {
            let Some(original) = self.original(path).filter(|original| original.exists()) else {
                if !path.ends_with(pgclinic_surgery::MARKER_FILE) {
                    differing.push(path.clone());
                }
                continue;
            };
            if now.get(path) == self.stamps.get(path) {
                continue;
            }
            if fs::read(path).ok() != fs::read(&original).ok() {
                differing.push(path.clone());
            }
        }
        Ok(differing)
    }

    /// Turns data checksums off, as `pg_checksums --disable` does. `false` when the control file
    /// is itself hurt, so that it cannot be done without hiding the wound.
    pub(crate) fn disable_checksums(&self) -> Result<bool, Failure> {
        let path = self.pgdata.join("global/pg_control");
        let Ok(mut bytes) = fs::read(&path) else {
            return Ok(false);
        };
        let sound =
            pgclinic_format::ControlFile::parse(&bytes).is_ok_and(|control| control.crc_is_right());
        let Some(field) = bytes
            .get_mut(CHECKSUM_VERSION_AT..CHECKSUM_VERSION_AT + 4)
            .filter(|_| sound)
        else {
            return Ok(false);
        };
        field.fill(0);
        assert!(
            control_file::seal(&mut bytes),
            "a control file that was read can be sealed"
        );
        fs::write(&path, bytes)?;
        Ok(true)
    }
}

fn stamp(metadata: &fs::Metadata) -> Stamp {
    (metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

fn list_directories(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
            list_directories(&entry.path(), found)?;
        }
    }
    Ok(())
}

fn list_files(folder: &Path, stamps: &mut BTreeMap<PathBuf, Stamp>) -> Result<(), Failure> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.is_dir() {
            list_files(&path, stamps)?;
        } else if metadata.is_file() {
            stamps.insert(path, stamp(&metadata));
        }
    }
    Ok(())
}
