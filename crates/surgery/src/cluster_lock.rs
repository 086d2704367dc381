//! One writer at a time: an advisory lock on the data directory itself, which leaves no file behind
//! and ends with the process, however that ends.

use std::fs::File;
use std::fs::TryLockError;
use std::path::Path;

use crate::error::{Error, Result};

/// Held while a cluster is written to. A server does not look at it: that none runs is asked of
/// `postmaster.pid`.
#[derive(Debug)]
pub(crate) struct ClusterLock {
    directory: File,
}

impl ClusterLock {
    /// Takes it, or says that somebody else has it.
    pub(crate) fn take(pgdata: &Path) -> Result<Self> {
        let directory = File::open(pgdata).map_err(Error::io("open", pgdata))?;
        match directory.try_lock() {
            Ok(()) => Ok(ClusterLock { directory }),
            Err(TryLockError::WouldBlock) => Err(Error::Locked {
                pgdata: pgdata.into(),
            }),
            Err(TryLockError::Error(error)) => Err(Error::io("lock", pgdata)(error)),
        }
    }
}

/// The lock belongs to what was opened, not to this descriptor: a process that another thread
/// begins to start has a copy of it for a moment, and would keep the lock after it is closed here.
impl Drop for ClusterLock {
    fn drop(&mut self) {
        // Where it fails the lock ends with the descriptor.
        let _ends_anyway = self.directory.unlock();
    }
}
