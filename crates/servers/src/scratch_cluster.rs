//! A cluster of a few files that a server recovers up to a place in WAL, and then shuts down by
//! itself: nobody connects to it, and it is removed again.
//!
//! ```text
//! SCRATCH/data/PG_VERSION, backup_label, recovery.signal, global/pg_control, pg_wal/…
//!              base/5/16390                      the files that are to be rolled forward
//!              pg_tblspc/16400 ──► SCRATCH/tablespace-16400/PG_15_202209061/5/16391
//! ```
//!
//! Truth: `InitWalRecovery` in `src/backend/access/transam/xlogrecovery.c`.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::installation::Installation;
use crate::run_as::RunAs;
use crate::scratch::Scratch;
use crate::server::{Server, StartOptions};

/// What a server wants to find, be it empty.
const DIRECTORIES: [&str; 20] = [
    "base",
    "global",
    "pg_commit_ts",
    "pg_dynshmem",
    "pg_logical/mappings",
    "pg_logical/snapshots",
    "pg_multixact/members",
    "pg_multixact/offsets",
    "pg_notify",
    "pg_replslot",
    "pg_serial",
    "pg_snapshots",
    "pg_stat",
    "pg_stat_tmp",
    "pg_subtrans",
    "pg_tblspc",
    "pg_twophase",
    "pg_wal/archive_status",
    "pg_wal/summaries",
    "pg_xact",
];
const TABLESPACES: &str = "pg_tblspc";
/// Nobody connects.
const LETS_NOBODY_IN: &str = "local all all reject\n";
/// No command finds more WAL than lies in `pg_wal`; recovery asks for one.
const NO_ARCHIVE: &str = "false";

/// Where a recovery ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryTarget {
    /// With the record at this place: `0/3000148`.
    pub lsn: String,
    /// The timeline there.
    pub timeline: u32,
}

/// The cluster.
#[derive(Debug)]
pub struct ScratchCluster {
    installation: Installation,
    run_as: RunAs,
    pgdata: PathBuf,
    /// The file that was written to last.
    open: Option<(String, File)>,
    scratch: Scratch,
}

impl ScratchCluster {
    /// An empty one in `base`, by default in the cache, for a server of this installation.
    pub fn new(installation: Installation, base: Option<&Path>) -> Result<Self> {
        let run_as = RunAs::new(None)?;
        let scratch = Scratch::new(&run_as, base)?;
        let pgdata = scratch.folder("data")?;
        let mut cluster = Self {
            installation,
            run_as,
            pgdata,
            open: None,
            scratch,
        };
        for directory in DIRECTORIES {
            cluster.make_directory(Path::new(directory))?;
        }
        let version = format!("{}\n", cluster.installation.major);
        for (path, text) in [
            ("PG_VERSION", version.as_str()),
            ("postgresql.conf", ""),
            ("pg_hba.conf", LETS_NOBODY_IN),
            ("pg_ident.conf", ""),
            ("recovery.signal", ""),
        ] {
            cluster.put(path, 0, text.as_bytes())?;
        }
        Ok(cluster)
    }

    /// What recovers it.
    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    /// Bytes that there is room for.
    pub fn free_bytes(&self) -> Result<u64> {
        let found = rustix::fs::statvfs(&self.pgdata).map_err(io::Error::from);
        let found = found.map_err(Error::io("examine", &self.pgdata))?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// Writes bytes of a file, which is made if it is missing.
    pub fn put(&mut self, path: &str, at: u64, bytes: &[u8]) -> Result<()> {
        let full = self.pgdata.join(path);
        self.file(path)?
            .write_all_at(bytes, at)
            .map_err(Error::io("write to", full))
    }

    /// Makes a file this long, if it is shorter.
    pub fn lengthen(&mut self, path: &str, len: u64) -> Result<()> {
        let full = self.pgdata.join(path);
        let file = self.file(path)?;
        let found = file.metadata().map_err(Error::io("examine", &full))?;
        if found.len() < len {
            file.set_len(len).map_err(Error::io("lengthen", full))?;
        }
        Ok(())
    }

    /// Reads bytes of a file.
    pub fn read(&self, path: &str, at: u64, len: usize) -> Result<Vec<u8>> {
        let full = self.pgdata.join(path);
        let file = File::open(&full).map_err(Error::io("open", &full))?;
        let mut bytes = vec![0; len];
        let read = file.read_exact_at(&mut bytes, at);
        read.map_err(Error::io("read", full))?;
        Ok(bytes)
    }

    /// Lets a server recover it, which shuts down with the record at the target.
    pub fn recover(
        &mut self,
        target: &RecoveryTarget,
        timeout: Duration,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<String> {
        self.open = None;
        let timeline = target.timeline.to_string();
        let settings = [
            ("restore_command", NO_ARCHIVE),
            ("recovery_target_lsn", target.lsn.as_str()),
            ("recovery_target_inclusive", "on"),
            ("recovery_target_timeline", &timeline),
            ("recovery_target_action", "shutdown"),
            ("hot_standby", "off"),
        ];
        let options = StartOptions {
            timeout,
            ..StartOptions::default()
        };
        let options = settings
            .into_iter()
            .fold(options, |options, (name, value)| options.with(name, value));
        Server::recover(
            &self.installation,
            &self.run_as,
            &self.pgdata,
            &options,
            is_interrupted,
        )
    }

    fn file(&mut self, path: &str) -> Result<&File> {
        let is_open = self.open.as_ref().is_some_and(|(open, _)| open == path);
        if !is_open {
            if let Some(directory) = Path::new(path).parent() {
                self.make_directory(directory)?;
            }
            let full = self.pgdata.join(path);
            let mut options = File::options();
            let file = options.write(true).create(true).truncate(false).open(&full);
            let file = file.map_err(Error::io("create", &full))?;
            self.run_as.own(&full)?;
            self.open = Some((path.to_owned(), file));
        }
        let open = self.open.as_ref();
        Ok(open.map(|(_, file)| file).expect("it was opened above"))
    }

    /// Makes a directory below the data directory with all above it; that of a tablespace lies
    /// beside, where a link leads, since from 15 on the server wants one.
    pub fn make_directory(&self, directory: &Path) -> Result<()> {
        let mut path = PathBuf::new();
        for part in directory.components() {
            let Component::Normal(name) = part else {
                continue;
            };
            let is_tablespace = path == Path::new(TABLESPACES);
            path.push(name);
            let link = self.pgdata.join(&path);
            if link.is_dir() {
                continue;
            }
            if is_tablespace {
                let folder = format!("tablespace-{}", name.to_string_lossy());
                let folder = self.scratch.folder(&folder)?;
                symlink(folder, &link).map_err(Error::io("link", link))?;
            } else {
                self.scratch.folder(&format!("data/{}", path.display()))?;
            }
        }
        Ok(())
    }
}
