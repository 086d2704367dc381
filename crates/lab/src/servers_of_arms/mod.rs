//! Where the servers of the arms come from: which installation, on which data, with which settings.
//!
//! ```text
//! Arm.version ─► installation: given by folder, installed, or fetched ─► Features (probed once)
//!                    └► base: initdb, start, fill, stop ── once ──► copied for a run, or shared by readers
//! ```
//!
//! Bases and copies lie in scratch folders, which go away with this process, or at the next sweep
//! when it was killed.

mod bases;
mod cold;
mod device;
mod installations;
mod settings;
mod warm;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pgclinic_servers::{Installation, RunAs, Scratch, SlowDisk, sweep, sweep_in};

use crate::error::{Error, Result};
use crate::external_server::{ExternalServer, GivenServer};
use crate::load::Driver;
use crate::need::Features;

pub(crate) use bases::{BaseRequest, Data};
pub use cold::ColdStart;
pub(crate) use cold::files_below;
pub use device::Device;
pub(crate) use settings::{settings_of, wanted};
pub(crate) use warm::warm;

/// What the person says about servers and places.
#[derive(Debug, Clone, Default)]
pub struct SiteOptions {
    /// Installations given by a folder that holds them; an arm takes the first whose version fits.
    pub servers: Vec<PathBuf>,
    /// The major for arms that name no version.
    pub major: Option<u16>,
    /// The user that servers run as.
    pub run_as: Option<String>,
    /// Where data directories lie; by default in pgclinic's cache folder.
    pub data_folder: Option<PathBuf>,
    /// Put them on a disk on which each request waits this long, in whole milliseconds, made for
    /// the purpose.
    pub slow_disk: Option<Duration>,
    /// Who makes the load of experiments that have one; the laboratory's own clients when nobody
    /// said.
    pub driver: Option<Driver>,
    /// Run on this server instead of starting any.
    pub url: Option<GivenServer>,
}

/// The machine's servers and data, for as long as the laboratory runs.
#[derive(Debug)]
pub struct Site {
    options: SiteOptions,
    run_as: RunAs,
    installations: BTreeMap<String, std::result::Result<Installation, String>>,
    features: BTreeMap<PathBuf, Features>,
    /// Clusters as `initdb` makes them, by installation and arguments: bases begin as copies.
    pristine: BTreeMap<String, (Scratch, PathBuf)>,
    bases: BTreeMap<String, (Scratch, PathBuf)>,
    pub(crate) given: Option<ExternalServer>,
    // Dropped after the folders that lie on it.
    slow_disk: Option<SlowDisk>,
    interrupted: Arc<AtomicBool>,
}

impl Site {
    /// Looks at the options, and removes what killed runs left behind.
    pub fn open(options: SiteOptions, interrupted: Arc<AtomicBool>) -> Result<Self> {
        let run_as = RunAs::new(options.run_as.as_deref())?;
        sweep()?;
        if let Some(folder) = &options.data_folder {
            refuse_data_directory(folder)?;
            sweep_in(folder)?;
        }
        let slow_disk = options
            .slow_disk
            .map(|delay| slow_disk(&options, &run_as, delay));
        let url = options.url.as_ref();
        let given = url
            .map(|given| ExternalServer::open(&given.target))
            .transpose()?;
        Ok(Self {
            options,
            run_as,
            given,
            slow_disk: slow_disk.transpose()?,
            installations: BTreeMap::new(),
            features: BTreeMap::new(),
            pristine: BTreeMap::new(),
            bases: BTreeMap::new(),
            interrupted,
        })
    }

    /// The user that servers run as.
    pub fn run_as(&self) -> &RunAs {
        &self.run_as
    }

    /// An error when somebody wants it to stop.
    pub fn check_interrupted(&self) -> Result<()> {
        if self.interrupted.load(Ordering::Relaxed) {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Set when somebody wants it to stop.
    pub(crate) fn interrupted(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.interrupted)
    }

    /// Who makes the load.
    pub(crate) fn driver(&self) -> Driver {
        self.options.driver.unwrap_or_default()
    }

    /// A new scratch folder where data directories lie.
    pub(crate) fn scratch(&self) -> Result<Scratch> {
        self.scratch_in(None)
    }

    /// The same in this folder, for an arm that is a folder; what killed runs left there is
    /// removed.
    pub(crate) fn scratch_in(&self, folder: Option<&Path>) -> Result<Scratch> {
        if let Some(folder) = folder {
            refuse_data_directory(folder)?;
            sweep_in(folder)?;
        }
        let folder = folder.or(self.chosen_folder());
        Ok(Scratch::new(&self.run_as, folder)?)
    }

    /// Where data directories lie.
    pub fn data_folder(&self) -> Result<PathBuf> {
        match self.chosen_folder() {
            Some(folder) => Ok(folder.to_path_buf()),
            None => Ok(pgclinic_servers::cache_folder()?),
        }
    }

    fn chosen_folder(&self) -> Option<&Path> {
        let slow = self.slow_disk.as_ref().map(SlowDisk::folder);
        slow.or(self.options.data_folder.as_deref())
    }
}

/// As large as what is free where its image lies, but for a tenth; it takes only what is written.
fn slow_disk(options: &SiteOptions, run_as: &RunAs, delay: Duration) -> Result<SlowDisk> {
    let home = match &options.data_folder {
        Some(folder) => folder.clone(),
        None => pgclinic_servers::cache_folder()?,
    };
    std::fs::create_dir_all(&home).map_err(Error::io("create", &home))?;
    let found = rustix::fs::statvfs(&home);
    let found = found.map_err(|error| Error::io("examine the disk of", &home)(error.into()))?;
    let bytes = found.f_bavail.saturating_mul(found.f_frsize) / 10 * 9;
    let base = options.data_folder.as_deref();
    Ok(SlowDisk::make(run_as, base, bytes, delay)?)
}

/// Refuses to write into a cluster: a folder that holds `PG_VERSION`, or lies in one that does.
pub fn refuse_data_directory(folder: &Path) -> Result<()> {
    let whole = std::path::absolute(folder).map_err(Error::io("examine", folder))?;
    let cluster = whole.ancestors().find(|folder| {
        folder.join("PG_VERSION").exists() || folder.join("global/pg_control").exists()
    });
    match cluster {
        Some(cluster) => Err(Error::Refused(format!(
            "{} is the data directory of a cluster: the laboratory does not write into it. Choose another directory.",
            cluster.display()
        ))),
        None => Ok(()),
    }
}
