//! The folder for what is kept between runs (fetched servers, scratch folders, test seeds):
//! reachable for the user that servers run as, so never in root's home.

use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The first of `/var/cache/pgclinic`, `/var/tmp/pgclinic` and `/var/tmp/pgclinic-UID` that is, or
/// can be made, a real folder of our own. Programs are run from here, so a folder of another user
/// is not trusted.
pub fn cache_folder() -> Result<PathBuf> {
    let uid = rustix::process::geteuid().as_raw();
    let mut refused = None;
    for folder in candidates(uid) {
        match make_own_folder(&folder, uid) {
            Ok(()) => return Ok(folder),
            Err(error) => refused = Some(error),
        }
    }
    Err(refused.expect("there is at least one candidate"))
}

/// Where earlier runs may have left something, whoever ran them.
pub(crate) fn candidates(uid: u32) -> [PathBuf; 3] {
    let own = format!("/var/tmp/pgclinic-{uid}");
    [
        PathBuf::from("/var/cache/pgclinic"),
        PathBuf::from("/var/tmp/pgclinic"),
        PathBuf::from(own),
    ]
}

/// The folders that root or we have made; programs of other users are not run.
pub(crate) fn trusted_folders() -> Vec<PathBuf> {
    let uid = rustix::process::geteuid().as_raw();
    let is_trusted = |folder: &PathBuf| {
        std::fs::symlink_metadata(folder)
            .is_ok_and(|found| found.is_dir() && [0, uid].contains(&found.uid()))
    };
    candidates(uid).into_iter().filter(is_trusted).collect()
}

fn make_own_folder(folder: &Path, uid: u32) -> Result<()> {
    make_folder(folder, 0o755)?;
    let found = std::fs::symlink_metadata(folder).map_err(Error::io("examine", folder))?;
    if !found.is_dir() || found.uid() != uid {
        let source = std::io::Error::other("it is not a directory of our own");
        return Err(Error::Io {
            what: "use",
            path: folder.to_path_buf(),
            source,
        });
    }
    Ok(())
}

/// Makes `folder` and what is missing above it with this mode, whatever the umask says. One that
/// exists stays.
pub(crate) fn make_folder(folder: &Path, mode: u32) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        make_folder(parent, 0o755)?;
    }
    match std::fs::DirBuilder::new().mode(mode).create(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && folder.is_dir() => {
            return Ok(());
        }
        made => made.map_err(Error::io("create", folder))?,
    }
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(folder, mode).map_err(Error::io("set the mode of", folder))
}
