//! What a background scrub of a server's files says of itself. The program reads the files; signs
//! are made of what it says.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pgclinic_model::document::DamagedPlace;

use crate::measured::MeasuredStatus;

/// A server as far as its files have to be found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerOnDisk {
    /// `data_directory`, where the role may know it.
    pub data_directory: Option<PathBuf>,
    /// Of the cluster, where the role may know it.
    pub system_identifier: Option<String>,
    /// When the server started, in seconds since 1970 by its own clock.
    pub started: f64,
}

/// A postmaster writes its start time some moments before it takes the time that it shows.
const START_TOLERANCE_S: f64 = 30.0;

impl ServerOnDisk {
    /// Whether it is this server that runs on a directory of this machine, by its own word and by
    /// the start of its postmaster: a container or another machine may have the same path.
    ///
    /// # Errors
    /// It is not, or nobody may know.
    pub fn runs_on(&self, directory: &Path) -> Result<(), String> {
        let path = directory.join("postmaster.pid");
        let lines = std::fs::read_to_string(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let started = lines.lines().nth(2);
        let started = started.and_then(|line| line.trim().parse::<f64>().ok());
        match started {
            Some(started) if (started - self.started).abs() <= START_TOLERANCE_S => Ok(()),
            _ => Err(format!(
                "another server than the one that is watched runs on {} of this machine",
                directory.display()
            )),
        }
    }
}

/// How a scrub stands.
#[derive(Debug, Clone, Default)]
pub struct ScrubStatus {
    /// Now, by the clock that all moments here are of.
    pub clock: f64,
    /// Since when scrubs of these files are asked for, over restarts.
    pub asked_since: f64,
    /// When the last complete one ended.
    pub complete_at: Option<f64>,
    /// One is reading now.
    pub is_reading: bool,
    /// How much of all files it has read, 0 to 1.
    pub progress: Option<f64>,
    /// Pages checked: by the last complete one, and by the one that is reading.
    pub pages: Vec<(&'static str, u64)>,
    /// Bytes that the last complete one could not read, or passed over.
    pub unread_bytes: Option<u64>,
    /// Findings of damage by rule.
    pub damage: Vec<(String, u64)>,
    /// Files that end within a block, by relation, with their bytes past the last whole one.
    pub partial_blocks: Vec<(String, u64)>,
    /// Damaged pages by relation.
    pub damaged_pages: Vec<(String, u64)>,
    /// Which they are.
    pub places: Vec<DamagedPlace>,
    /// Those that are not listed.
    pub places_omitted: u64,
    /// Why none can read.
    pub stopped: Option<String>,
}

type Ask<T> = Box<dyn FnMut(&ServerOnDisk) -> T + Send>;

/// Gives the status of what works on the files of one server, and lets it go on; until it is ended,
/// whoever else has it.
pub struct FileSource<T>(Arc<Mutex<Option<Ask<T>>>>);

impl<T> Clone for FileSource<T> {
    /// The same work.
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> FileSource<T> {
    /// Asked at each sample. What it works with is dropped when it is ended.
    pub fn new(ask: impl FnMut(&ServerOnDisk) -> T + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::new(ask)))))
    }

    pub(crate) fn ask(&self, server: &ServerOnDisk) -> Option<T> {
        let mut own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        own.as_mut().map(|ask| ask(server))
    }

    /// Nothing goes on after this.
    fn end(&self) {
        let own = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(own);
    }
}

impl<T> std::fmt::Debug for FileSource<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FileSource")
    }
}

/// What works on the files of one server.
#[derive(Debug, Clone, Default)]
pub struct FileSources {
    /// The scrub, where one is asked for.
    pub scrub: Option<FileSource<ScrubStatus>>,
    /// Exact measurements, where they are asked for.
    pub measured: Option<FileSource<MeasuredStatus>>,
}

impl FileSources {
    /// Nothing goes on after this.
    pub(crate) fn end(&self) {
        if let Some(own) = &self.scrub {
            own.end();
        }
        if let Some(own) = &self.measured {
            own.end();
        }
    }
}
