//! A folder for one run, owned by the server's user and gone when the run is gone.
//!
//! ```text
//! /var/cache/pgclinic/scratch/4711-3/     mode 0700, owned by the server's user
//!                             pgclinic.owner   "4711 98765\n" (our pid, its start), locked while we live
//!                             data/ sockets/ …
//! ```
//!
//! The lock on the marker tells the living from the dead: the kernel lets go of it when the owner
//! ends, however it ends. Pid and start time stand in it for people.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mount::{UnmountFlags, unmount};

use crate::cache::{cache_folder, make_folder};
use crate::error::{Error, Result};
use crate::process::start_ticks;
use crate::run_as::RunAs;
use crate::running;

/// The file that says whose folder this is.
pub(crate) const MARKER: &str = "pgclinic.owner";

/// Before its marker is locked a folder's name starts with this.
pub(crate) const UNFINISHED: &str = "new-";

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A scratch folder; removed on drop, and by [`crate::sweep`] when its owner died.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    run_as: RunAs,
    _marker: File,
}

impl Scratch {
    /// A new folder in `base`, by default in `scratch` of [`cache_folder`]. The server's user must
    /// be able to reach it.
    pub fn new(run_as: &RunAs, base: Option<&Path>) -> Result<Self> {
        let base = match base {
            // The server works in `/`, and links lead on from where they lie.
            Some(base) => std::path::absolute(base).map_err(Error::io("find", base))?,
            None => cache_folder()?.join("scratch"),
        };
        make_folder(&base, 0o755)?;
        let name = free_name(&base);
        let unfinished = base.join(format!("{UNFINISHED}{name}"));
        make_folder(&unfinished, 0o700)?;
        let marker = write_marker(&unfinished.join(MARKER))?;
        run_as.own(&unfinished)?;
        let path = base.join(name);
        std::fs::rename(&unfinished, &path).map_err(Error::io("create", &path))?;
        running::add_scratch(&path);
        Ok(Self {
            path,
            run_as: run_as.clone(),
            _marker: marker,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder in it, made if missing, that the server's user owns and nobody else enters.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.path.join(name);
        make_folder(&folder, 0o700)?;
        self.run_as.own(&folder)?;
        Ok(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now is found by the next sweep.
        let _ = remove(&self.path);
        running::forget_scratch(&self.path);
    }
}

/// Removes a scratch folder, and before it what is mounted there.
pub(crate) fn remove(path: &Path) -> std::io::Result<()> {
    unmount_in(path);
    std::fs::remove_dir_all(path)
}

/// Unmounts whatever is mounted below a folder; what is still in use goes when its last user goes.
pub(crate) fn unmount_in(folder: &Path) {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    // The later ones lie on the earlier ones.
    for mount in mounts.lines().rev() {
        let point = mount.split(' ').nth(4).map(Path::new);
        if let Some(point) = point.filter(|point| point.starts_with(folder) && *point != folder) {
            let gone = unmount(point, UnmountFlags::empty());
            if gone.is_err() {
                let _ = unmount(point, UnmountFlags::DETACH);
            }
        }
    }
}

/// A name that nobody has: one who had our number and was killed may have left a folder.
fn free_name(base: &Path) -> String {
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{count}", std::process::id());
        let is_taken = |name: &str| base.join(name).symlink_metadata().is_ok();
        if !is_taken(&name) && !is_taken(&format!("{UNFINISHED}{name}")) {
            return name;
        }
    }
}

fn write_marker(path: &Path) -> Result<File> {
    let mut marker = File::create_new(path).map_err(Error::io("create", path))?;
    marker
        .try_lock()
        .map_err(|error| Error::io("lock", path)(error.into()))?;
    let pid = std::process::id();
    let line = format!("{pid} {}\n", start_ticks(pid).unwrap_or_default());
    marker
        .write_all(line.as_bytes())
        .map_err(Error::io("write", path))?;
    Ok(marker)
}
