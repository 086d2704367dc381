//! Copies of stopped clusters, tablespaces included, so that each experiment has its own.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, lchown, symlink};
use std::path::{Path, PathBuf};

use crate::cache::make_folder;
use crate::error::{Error, Result};

/// A copied cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// The data directory.
    pub pgdata: PathBuf,
    /// The copied folders of tablespaces, by their link in `pg_tblspc`.
    pub tablespaces: Vec<PathBuf>,
}

/// Copies the cluster in `pgdata`, which no server has open, to `into/data`, and the folders that
/// its `pg_tblspc` links to into `into/tablespace-OID`; the links of the copy lead there. Owners
/// and modes stay, times do not.
pub fn copy_cluster(pgdata: &Path, into: &Path) -> Result<Copied> {
    let copied = into.join("data");
    copy_tree(pgdata, &copied)?;
    let mut tablespaces = Vec::new();
    for link in links_in(&copied.join("pg_tblspc"))? {
        let target = std::fs::read_link(&link).map_err(Error::io("read the link", &link))?;
        let oid = link
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let folder = into.join(format!("tablespace-{oid}"));
        copy_tree(&target, &folder)?;
        point_link(&link, &folder)?;
        tablespaces.push(folder);
    }
    Ok(Copied {
        pgdata: copied,
        tablespaces,
    })
}

/// Makes the link lead elsewhere; its owner stays.
pub fn point_link(link: &Path, target: &Path) -> Result<()> {
    let found = std::fs::symlink_metadata(link).map_err(Error::io("examine", link))?;
    std::fs::remove_file(link).map_err(Error::io("remove", link))?;
    symlink(target, link).map_err(Error::io("link", link))?;
    keep_owner(link, &found)
}

fn links_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut links = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::io("list", folder))? {
        let entry = entry.map_err(Error::io("list", folder))?;
        if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            links.push(entry.path());
        }
    }
    links.sort();
    Ok(links)
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    let mut left = vec![(from.to_path_buf(), to.to_path_buf())];
    while let Some((from, to)) = left.pop() {
        let found = std::fs::symlink_metadata(&from).map_err(Error::io("examine", &from))?;
        if found.is_dir() {
            make_folder(&to, found.mode() & 0o7777)?;
            for entry in std::fs::read_dir(&from).map_err(Error::io("list", &from))? {
                let name = entry.map_err(Error::io("list", &from))?.file_name();
                // The copy has no server, whatever became of the one of the original.
                if name != "postmaster.pid" {
                    left.push((from.join(&name), to.join(&name)));
                }
            }
        } else if found.is_symlink() {
            let target = std::fs::read_link(&from).map_err(Error::io("read the link", &from))?;
            symlink(target, &to).map_err(Error::io("link", &to))?;
        } else {
            std::fs::copy(&from, &to).map_err(Error::io("copy to", &to))?;
        }
        keep_owner(&to, &found)?;
    }
    Ok(())
}

/// Only root gives files away; for others every file is their own.
fn keep_owner(path: &Path, like: &Metadata) -> Result<()> {
    if like.uid() == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    lchown(path, Some(like.uid()), Some(like.gid())).map_err(Error::io("change the owner of", path))
}
