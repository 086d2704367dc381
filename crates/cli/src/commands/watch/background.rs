//! This program again, as a child that works on a server's files for hours while the server is
//! watched: with its own priority, a state that outlives it, and at most one for each directory.
//!
//! ```text
//! STATE/<data directory>/lock        held by whoever works on these files, and by the child
//!                       /run.log     what the child writes: how far it came, why it cannot
//!                       /run.state   where the next child goes on
//!                       /run.json    the document of a child that came to its end
//!                       /kept.json   what the last complete run found
//! ```
//!
//! Nobody else may read them: names of tables stand in them, and a place in a cluster is refused.
//!
//! The lock is the child's standard input: a child whose parent was killed goes on, and the next
//! parent waits for it and takes what it found.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::destination::{not_written, refuse_directory_early};
use crate::exit::Failure;

/// For a child to write its state and end.
const PATIENCE: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(20);
/// What is read of the end of a log.
const LOG_BYTES: u64 = 4096;
const OWN_DIRECTORY: u32 = 0o700;
const OWN_FILE: u32 = 0o600;
/// A name of a directory may have 255 bytes.
const NAME_BYTES_MAX: usize = 200;

impl Ended {
    /// As one that has written its document.
    pub(super) fn in_order() -> Self {
        Self {
            code: Some(0),
            signal: None,
        }
    }
}

/// What works on the files of one directory, and what is kept of it.
pub(super) struct Background {
    home: PathBuf,
    lock: File,
    child: Option<Child>,
    started: Option<SystemTime>,
}

/// How a child ended.
pub(super) struct Ended {
    /// Its exit code, where it had one.
    pub(super) code: Option<i32>,
    /// What it was killed by.
    pub(super) signal: Option<i32>,
}

impl Background {
    /// The work on this directory. `Err` says why it cannot be begun.
    pub(super) fn open(state: &Path, directory: &Path) -> Result<Self, String> {
        refuse_directory_early(state, "state", &[directory]).map_err(|failure| failure.0)?;
        let home = state.join(name_of(directory)?);
        let failed = |error: io::Error| format!("cannot write to {}: {error}", home.display());
        make_private(&home).map_err(failed)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(OWN_FILE)
            .open(home.join("lock"))
            .map_err(failed)?;
        Ok(Self {
            home,
            lock,
            child: None,
            started: None,
        })
    }

    /// Whether somebody else works on these files: another program, or the child of one that was
    /// killed.
    pub(super) fn is_taken(&self) -> io::Result<bool> {
        match self.lock.try_lock() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// The path of what is kept.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    /// Starts this program with these words.
    pub(super) fn start(&mut self, program: &Path, words: &[String]) -> Result<(), String> {
        let failed = |error: io::Error| format!("cannot start {}: {error}", program.display());
        let log = File::options()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(OWN_FILE)
            .open(self.path("run.log"))
            .map_err(failed)?;
        // By the clock of files, which goes on in ticks and is behind that of programs.
        self.started = log.metadata().and_then(|own| own.modified()).ok();
        let lock = self.lock.try_clone().map_err(failed)?;
        let mut command = Command::new(program);
        // Ctrl-C of a terminal is for the parent, which ends the child in order.
        command.args(words).process_group(0);
        command.stdin(Stdio::from(lock));
        command.stdout(Stdio::null()).stderr(Stdio::from(log));
        self.child = Some(command.spawn().map_err(failed)?);
        Ok(())
    }

    /// A child of our own is at work.
    pub(super) fn is_at_work(&self) -> bool {
        self.child.is_some()
    }

    /// The end of the child, once it has one.
    pub(super) fn ended(&mut self) -> Option<Ended> {
        let child = self.child.as_mut()?;
        // Whoever cannot be waited for has ended.
        let (code, signal) = match child.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => (status.code(), status.signal()),
            Err(_) => (None, None),
        };
        self.child = None;
        Some(Ended { code, signal })
    }

    /// The last child wrote this file.
    pub(super) fn written_since_start(&self, name: &str) -> bool {
        let written = fs::metadata(self.path(name)).and_then(|own| own.modified());
        let written = written.ok().zip(self.started);
        written.is_some_and(|(written, started)| written >= started)
    }

    /// The last lines that a child wrote.
    pub(super) fn log(&self) -> String {
        let read = || -> io::Result<Vec<u8>> {
            let mut file = File::open(self.path("run.log"))?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES)))?;
            let mut bytes = Vec::new();
            file.take(LOG_BYTES).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
    }

    /// What was kept under this name, if it can be read.
    pub(super) fn kept<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let file = File::open(self.path(name)).ok()?;
        serde_json::from_reader(io::BufReader::new(file)).ok()
    }

    /// Keeps it, whole or not at all.
    pub(super) fn keep<T: Serialize>(&self, name: &str, own: &T) -> Result<(), Failure> {
        let path = self.path(name);
        let written = || -> io::Result<()> {
            let file = tempfile::NamedTempFile::new_in(&self.home)?;
            serde_json::to_writer(io::BufWriter::new(file.as_file()), own)?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        written().map_err(|error| not_written(&path, "state", &error))
    }

    /// Removes what is kept under these names.
    pub(super) fn forget(&self, names: &[&str]) {
        for name in names {
            let _is_gone = fs::remove_file(self.path(name));
        }
    }
}

impl Drop for Background {
    /// A child writes its state, so that the next one goes on from there.
    fn drop(&mut self) {
        let Some(child) = &mut self.child else {
            return;
        };
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _is_gone = kill_process(pid, Signal::TERM);
        }
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(STEP);
        }
        let _is_gone = child.kill();
        let _waited = child.wait();
    }
}

/// A directory that nobody else may enter, whatever stood above it.
fn make_private(home: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(OWN_DIRECTORY)
        .create(home)?;
    fs::set_permissions(home, Permissions::from_mode(OWN_DIRECTORY))
}

/// `/srv/pg/18` as `%2Fsrv%2Fpg%2F18`: no two directories share a name.
fn name_of(directory: &Path) -> Result<String, String> {
    let mut name = String::new();
    for byte in directory.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(*byte)),
            other => name.push_str(&format!("%{other:02X}")),
        }
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("the path {} is too long", directory.display()));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_have_names_of_their_own() {
        let of = |path: &str| name_of(Path::new(path)).expect("a name");
        assert_eq!(of("/srv/pg-18"), "%2Fsrv%2Fpg-18");
        assert_ne!(of("/a/b"), of("/a%2Fb"));
        assert!(name_of(Path::new(&"x".repeat(300))).is_err());
    }

    #[test]
    fn who_is_second_waits_for_the_first_and_for_its_child() {
        let home = tempfile::tempdir().expect("a directory");
        let directory = Path::new("/srv/pg");
        let mut first = Background::open(home.path(), directory).expect("work");
        assert!(!first.is_taken().expect("a lock"));
        let second = Background::open(home.path(), directory).expect("work");
        assert!(second.is_taken().expect("a lock"));
        // `cat` ends when the lock, an empty file, is read; `sleep` would hold it longer.
        first.start(Path::new("cat"), &[]).expect("a child");
        while first.ended().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        drop(first);
        assert!(!second.is_taken().expect("a lock"));
    }
}
