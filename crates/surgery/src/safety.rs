//! Which folders may be written to at all.
//!
//! A folder with the marker `pgclinic.drill` is a copy for rehearsals. Anything else needs the
//! cluster's system identifier typed out. A server that runs, or may run, is never written under.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pgclinic_format::ControlFile;
use pgclinic_format::control_file::FILE_BYTES;
use pgclinic_model::plan::{Change, Patch};
use rustix::process::{Pid, test_kill_process};

use crate::error::{Error, Result};
use crate::storage::{Disk, Storage};

/// The file that marks a copy.
pub const MARKER_FILE: &str = "pgclinic.drill";
const CONTROL_FILE: &str = "global/pg_control";
const MARKER_LINE: &str = "system identifier: ";

/// Why the cluster may be written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Consent {
    /// It is a marked copy.
    Marked,
    /// A person said that it is not production and typed its system identifier.
    Typed(u64),
    /// A person consented to a plan that was made for the cluster with this system identifier, and
    /// was shown with it.
    Plan(u64),
    /// A person consented to a plan that was made for a cluster whose control file cannot be
    /// trusted: nothing but the bytes that the plan names tells which cluster it is.
    PlanByBytes,
}

/// The number of the cluster, when its control file can be trusted.
pub fn system_identifier(pgdata: &Path) -> Option<u64> {
    let path = pgdata.join(CONTROL_FILE);
    let mut bytes = vec![0; FILE_BYTES];
    let read = Disk.read_at(&path, 0, &mut bytes).ok()?;
    let control = ControlFile::parse(bytes.get(..read)?).ok()?;
    control.crc_is_right().then_some(control.system_identifier)
}

/// Marks a copy that nobody needs: from now on its files may be damaged.
pub fn mark_copy(pgdata: &Path) -> Result<()> {
    let path = pgdata.join(MARKER_FILE);
    let number = system_identifier(pgdata).map_or_else(String::new, |number| number.to_string());
    let text = format!(
        "This data directory is a copy for rehearsals; pgclinic may damage its files.\n{MARKER_LINE}{number}\n"
    );
    let mut owner = Disk.owner(pgdata).map_err(Error::io("examine", pgdata))?;
    owner.mode = 0o600;
    Disk.create(&path, Some(owner))
        .map_err(Error::io("write", &path))?;
    Disk.write_at(&path, 0, text.as_bytes())
        .and_then(|()| Disk.sync(&path))
        .map_err(Error::io("write", &path))
}

/// The folder carries the marker.
pub fn is_marked(pgdata: &Path) -> bool {
    marker(pgdata).is_some()
}

/// The number in the marker; `Some(None)` for one without a number.
fn marker(pgdata: &Path) -> Option<Option<u64>> {
    let text = fs::read_to_string(pgdata.join(MARKER_FILE)).ok()?;
    let number = text.lines().find_map(|line| line.strip_prefix(MARKER_LINE));
    Some(number.and_then(|number| number.trim().parse().ok()))
}

/// Refuses a cluster that nobody gave away.
pub(crate) fn check_consent(pgdata: &Path, consent: Consent) -> Result<()> {
    let found = system_identifier(pgdata);
    match (consent, marker(pgdata)) {
        (Consent::Marked, None) => Err(Error::NotMarked {
            pgdata: pgdata.into(),
            system_identifier: found,
        }),
        (Consent::Marked, Some(Some(number))) if found.is_some_and(|found| found != number) => {
            Err(Error::MarkerOfAnother {
                pgdata: pgdata.into(),
            })
        }
        (Consent::Typed(typed), _) if found != Some(typed) => {
            Err(Error::WrongIdentifier { typed, found })
        }
        (Consent::Plan(planned), _) if found != Some(planned) => Err(Error::OtherBasis {
            why: format!(
                "the plan was made for the cluster {planned}, and {} is not that one",
                pgdata.display()
            ),
        }),
        (Consent::PlanByBytes, _) if found.is_some() => Err(Error::OtherBasis {
            why: "the plan was made for a control file that could not be trusted, and this one can"
                .into(),
        }),
        _ => Ok(()),
    }
}

/// What a server that runs on a data directory keeps there.
pub const LOCK_FILE: &str = "postmaster.pid";
/// The process stands in its first line.
const LOCK_BYTES: u64 = 4096;

/// How `postmaster.pid` stands there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LockFile {
    /// There is none.
    Absent,
    /// Something else has its name. Whoever opens a FIFO waits for somebody to write into it.
    NotRegular,
    /// Its first bytes.
    Begins(Vec<u8>),
}

impl LockFile {
    /// Of this data directory.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn of(pgdata: &Path) -> io::Result<Self> {
        let path = pgdata.join(LOCK_FILE);
        match path.metadata() {
            Ok(own) if !own.is_file() => return Ok(LockFile::NotRegular),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LockFile::Absent),
            found => found?,
        };
        let mut bytes = Vec::new();
        fs::File::open(&path)?
            .take(LOCK_BYTES)
            .read_to_end(&mut bytes)?;
        Ok(LockFile::Begins(bytes))
    }
}

/// Refuses a cluster that a server has open, or may have. In a marked copy a `postmaster.pid` whose
/// process is gone is what a crash left behind.
pub fn check_not_running(pgdata: &Path) -> Result<()> {
    let lock_file = LockFile::of(pgdata).map_err(Error::io("read", &pgdata.join(LOCK_FILE)))?;
    let text = match lock_file {
        LockFile::Absent => return Ok(()),
        LockFile::Begins(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        LockFile::NotRegular => {
            return Err(Error::RunningPerhaps {
                pgdata: pgdata.to_path_buf(),
                says: "is no regular file".into(),
            });
        }
    };
    let first = text.lines().next().unwrap_or_default().trim();
    // A server in single-user mode writes its number negative.
    let pid = first
        .parse::<i64>()
        .ok()
        .map(i64::abs)
        .filter(|pid| *pid > 0);
    let pgdata = pgdata.to_path_buf();
    match pid {
        Some(pid) if is_alive(pid) => Err(Error::Running { pgdata, pid }),
        Some(_) if is_marked(&pgdata) => Ok(()),
        Some(pid) => Err(Error::RunningPerhaps {
            pgdata,
            says: format!("names the server process {pid}, which does not run here"),
        }),
        None => Err(Error::RunningPerhaps {
            pgdata,
            says: "names no process".into(),
        }),
    }
}

fn is_alive(pid: i64) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return false;
    };
    // A process of another user answers with EPERM, and is alive.
    test_kill_process(pid) != Err(rustix::io::Errno::SRCH) && !is_zombie(pid)
}

/// A zombie has let go of every file; without `/proc` nobody is called one.
fn is_zombie(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| {
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        rest.trim_start().starts_with(['Z', 'X'])
    })
}

/// The data directory with all links resolved.
pub(crate) fn resolve(pgdata: &Path) -> Result<PathBuf> {
    fs::canonicalize(pgdata).map_err(Error::io("open the data directory", pgdata))
}

/// Every file of the patch lies in the data directory or in a tablespace, and none is a link.
pub(crate) fn check_links(pgdata: &Path, patch: &Patch) -> Result<()> {
    patch
        .changes
        .iter()
        .try_for_each(|change| check_link(pgdata, change))
}

fn check_link(pgdata: &Path, change: &Change) -> Result<()> {
    let refuse = |why: String| Error::Path {
        path: change.path().into(),
        why,
    };
    let file = pgdata.join(change.path());
    let found = fs::symlink_metadata(&file).ok();
    let is_fitting = |found: &fs::Metadata| match change {
        Change::Directory { .. } | Change::RemoveDirectory { .. } => found.is_dir(),
        Change::Mode { .. } => found.is_file() || found.is_dir(),
        Change::Link { .. } => found.is_symlink(),
        _ => found.is_file(),
    };
    if found.as_ref().is_some_and(|found| !is_fitting(found)) {
        return Err(refuse("it is no regular file".into()));
    }
    if found.is_some_and(|found| found.is_file() && found.nlink() > 1) {
        let why = "it has another name (a hard link), under which it would change too";
        return Err(refuse(why.into()));
    }
    if change.path() == "." {
        return Ok(());
    }
    // A directory that an earlier change of the patch makes is not there yet.
    let parents = file.ancestors().skip(1);
    let mut there = parents.take_while(|path| path.starts_with(pgdata));
    let parent = there.find(|path| fs::symlink_metadata(path).is_ok());
    let parent = parent.unwrap_or(pgdata);
    let folder = fs::canonicalize(parent).map_err(Error::io("open the directory", parent))?;
    if folder.starts_with(home_of(pgdata, change.path())) {
        return Ok(());
    }
    Err(refuse(format!(
        "a link leads out of the data directory, to {}",
        folder.display()
    )))
}

/// Where the file must lie: its tablespace's folder, or the data directory.
fn home_of(pgdata: &Path, path: &str) -> PathBuf {
    let mut parts = path.split('/');
    let link = match (parts.next(), parts.next(), parts.next()) {
        (Some("pg_tblspc"), Some(oid), Some(_)) => Some(pgdata.join("pg_tblspc").join(oid)),
        // `initdb --waldir` puts it elsewhere.
        (Some("pg_wal"), Some(_), _) => Some(pgdata.join("pg_wal")),
        _ => None,
    };
    link.and_then(|link| fs::canonicalize(link).ok())
        .unwrap_or_else(|| pgdata.to_path_buf())
}

/// The journal must not lie in what it protects, nor in another cluster: a server there may read
/// or remove what lies in its directories.
pub(crate) fn check_outside(pgdata: &Path, journal: &Path) -> Result<()> {
    let refuse = |why: String| {
        Err(Error::Journal {
            path: journal.into(),
            why,
        })
    };
    let Some(nearest) = nearest_directory(journal) else {
        return Ok(());
    };
    if nearest.starts_with(pgdata) {
        return refuse("it would lie inside the data directory; name a directory outside".into());
    }
    match nearest.ancestors().find(|path| is_data_directory(path)) {
        Some(other) => refuse(format!(
            "it would lie inside another data directory, {}; name a directory outside",
            other.display()
        )),
        None => Ok(()),
    }
}

/// The path up to where it exists, without links.
fn nearest_directory(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|path| {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        fs::canonicalize(path).ok()
    })
}

/// What every cluster has at its root.
fn is_data_directory(path: &Path) -> bool {
    path.join("PG_VERSION").is_file() && path.join(CONTROL_FILE).is_file()
}
