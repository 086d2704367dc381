//! A marked copy of a stopped cluster: owners and modes stay, tablespaces and WAL come along.
//!
//! ```text
//! DIR                      the data directory, with pgclinic.drill
//! DIR.tablespaces/16385    one folder for each link in pg_tblspc, which lead here
//! ```

use std::fs::{self, Metadata};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::safety::{check_not_running, mark_copy, resolve};

/// A copied cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MarkedCopy {
    /// The data directory.
    pub pgdata: PathBuf,
    /// Its tablespaces, outside of the data directory.
    pub tablespaces: Vec<PathBuf>,
}

/// Copies the cluster to `to`, which must not be there, and marks the copy.
pub fn copy_to(pgdata: &Path, to: &Path) -> Result<MarkedCopy> {
    let pgdata = resolve(pgdata)?;
    check_not_running(&pgdata)?;
    copy_resolved(&pgdata, to)
}

/// The same of files that were watched and stood still: a crash leaves a `postmaster.pid`, whose
/// process is not seen here, and the copy has none.
///
/// # Errors
/// When its process is alive, or as [`copy_to`].
pub fn copy_still_files(pgdata: &Path, to: &Path) -> Result<MarkedCopy> {
    let pgdata = resolve(pgdata)?;
    match check_not_running(&pgdata) {
        Ok(()) | Err(Error::RunningPerhaps { .. }) => copy_resolved(&pgdata, to),
        Err(error) => Err(error),
    }
}

fn copy_resolved(pgdata: &Path, to: &Path) -> Result<MarkedCopy> {
    let annex = annex_of(to);
    for path in [to, &annex] {
        if fs::symlink_metadata(path).is_ok() {
            return Err(Error::Path {
                path: path.display().to_string(),
                why: "it is there already; name a new directory for the copy".into(),
            });
        }
    }
    check_outside(pgdata, to)?;
    copy_tree(pgdata, to, &|path| path.starts_with(pgdata.join("pg_wal")))?;
    let tablespaces = move_tablespaces(to, &annex)?;
    mark_copy(to)?;
    Ok(MarkedCopy {
        pgdata: to.to_path_buf(),
        tablespaces,
    })
}

/// A copy inside its own cluster, however its name is written, would copy itself for ever.
fn check_outside(pgdata: &Path, to: &Path) -> Result<()> {
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let real = fs::canonicalize(parent).map_err(Error::io("open", parent))?;
    let tablespaces = fs::read_dir(pgdata.join("pg_tblspc"))
        .into_iter()
        .flatten()
        .flatten();
    let roots = tablespaces.filter_map(|link| fs::canonicalize(link.path()).ok());
    let mut roots = std::iter::once(pgdata.to_path_buf()).chain(roots);
    if roots.any(|root| real.starts_with(root)) {
        return Err(Error::Path {
            path: to.display().to_string(),
            why: "a copy does not fit into the cluster it is made of".into(),
        });
    }
    Ok(())
}

fn annex_of(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(".tablespaces");
    PathBuf::from(name)
}

/// Copies what the copied links still lead to, and lets them lead to the copies.
fn move_tablespaces(copy: &Path, annex: &Path) -> Result<Vec<PathBuf>> {
    let folder = copy.join("pg_tblspc");
    let mut tablespaces = Vec::new();
    for entry in fs::read_dir(&folder).map_err(Error::io("list", &folder))? {
        let link = entry.map_err(Error::io("list", &folder))?.path();
        let found = fs::symlink_metadata(&link).map_err(Error::io("examine", &link))?;
        if !found.is_symlink() {
            continue;
        }
        let from = fs::canonicalize(&link).map_err(Error::io("follow the link", &link))?;
        if tablespaces.is_empty() {
            make_folder(annex, 0o700)?;
            let like = fs::metadata(copy).map_err(Error::io("examine", copy))?;
            keep_owner(annex, &like)?;
        }
        let to = annex.join(link.file_name().unwrap_or_default());
        copy_tree(&from, &to, &|_| false)?;
        // Relative targets would be resolved from the link's folder.
        let target = fs::canonicalize(&to).map_err(Error::io("open", &to))?;
        fs::remove_file(&link).map_err(Error::io("remove", &link))?;
        symlink(&target, &link).map_err(Error::io("link", &link))?;
        keep_owner(&link, &found)?;
        tablespaces.push(to);
    }
    tablespaces.sort();
    Ok(tablespaces)
}

/// Copies a folder. Links stay links, but for those that `follow` says lead to something of the
/// cluster's own: a copy that shared its WAL with the original would write to it.
fn copy_tree(from: &Path, to: &Path, follow: &dyn Fn(&Path) -> bool) -> Result<()> {
    let mut left = vec![(from.to_path_buf(), to.to_path_buf())];
    while let Some((from, to)) = left.pop() {
        let mut found = fs::symlink_metadata(&from).map_err(Error::io("examine", &from))?;
        if found.is_symlink() && follow(&from) {
            found = fs::metadata(&from).map_err(Error::io("follow the link", &from))?;
        }
        if found.is_dir() {
            make_folder(&to, found.mode() & 0o7777)?;
            for entry in fs::read_dir(&from).map_err(Error::io("list", &from))? {
                let name = entry.map_err(Error::io("list", &from))?.file_name();
                // The copy has no server, whatever became of the original's.
                if name != "postmaster.pid" {
                    left.push((from.join(&name), to.join(&name)));
                }
            }
        } else if found.is_symlink() {
            let target = fs::read_link(&from).map_err(Error::io("read the link", &from))?;
            symlink(target, &to).map_err(Error::io("link", &to))?;
        } else if found.is_file() {
            fs::copy(&from, &to).map_err(Error::io("copy to", &to))?;
        } else {
            continue;
        }
        keep_owner(&to, &found)?;
    }
    Ok(())
}

fn make_folder(path: &Path, mode: u32) -> Result<()> {
    fs::DirBuilder::new()
        .mode(mode)
        .create(path)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)))
        .map_err(Error::io("create the directory", path))
}

/// Only root gives files away; for others every file is their own.
fn keep_owner(path: &Path, like: &Metadata) -> Result<()> {
    if like.uid() == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    lchown(path, Some(like.uid()), Some(like.gid())).map_err(Error::io("change the owner of", path))
}
