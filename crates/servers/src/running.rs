//! What this process has running, so that one call from a signal handler's thread can end it all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::Signal;

use crate::error::{Error, Result};
use crate::process;

/// After this a server that was told to quit is killed.
const PATIENCE: Duration = Duration::from_secs(5);

struct Running {
    ending: bool,
    servers: BTreeMap<u32, PathBuf>,
    scratches: BTreeSet<PathBuf>,
}

static RUNNING: Mutex<Running> = Mutex::new(Running {
    ending: false,
    servers: BTreeMap::new(),
    scratches: BTreeSet::new(),
});

/// A panic in another thread leaves the lists whole, so a poisoned lock is used all the same.
fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a server and enters it into the list in one step, so that [`stop_all`] misses none.
pub(crate) fn add_server(pgdata: &Path, start: impl FnOnce() -> Result<Child>) -> Result<Child> {
    let mut running = running();
    if running.ending {
        return Err(Error::Ending);
    }
    let child = start()?;
    running.servers.insert(child.id(), pgdata.to_path_buf());
    Ok(child)
}

pub(crate) fn forget_server(pid: u32) {
    running().servers.remove(&pid);
}

pub(crate) fn add_scratch(path: &Path) {
    running().scratches.insert(path.to_path_buf());
}

pub(crate) fn forget_scratch(path: &Path) {
    running().scratches.remove(path);
}

/// Stops every server that this process has started, at once and without mercy, and lets it start
/// no more. For the end of the program: call it from the thread that hears SIGINT and SIGTERM. Says
/// how many there were.
pub fn stop_all() -> usize {
    let servers: Vec<u32> = {
        let mut running = running();
        running.ending = true;
        running.servers.keys().copied().collect()
    };
    for pid in &servers {
        process::signal(*pid, Signal::QUIT);
    }
    if !process::wait_until_gone(&servers, PATIENCE) {
        for pid in servers.iter().filter(|pid| process::is_alive(**pid)) {
            process::kill_tree(*pid);
        }
    }
    servers.len()
}

/// [`stop_all`], and removes the scratch folders of this process too.
pub fn remove_all() {
    stop_all();
    let scratches = std::mem::take(&mut running().scratches);
    for path in scratches {
        let _ = crate::scratch::remove(&path);
    }
}
