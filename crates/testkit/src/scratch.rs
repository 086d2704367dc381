//! Where tests keep what they throw away: in memory where there is much of it, since a file system
//! on a disk takes a fifth of their time to make and remove a thousand files for each cluster.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use pgclinic_servers::{Result, Scratch, sweep_in};
use rustix::fs::{StatVfsMountFlags, statvfs};

use crate::run_as;

/// What must be free before anything lies in memory: two tests at work with their servers, and room
/// for a build beside them.
const MUCH: u64 = 8 << 30;

/// A scratch directory of a test's own, removed on drop.
pub fn scratch() -> Scratch {
    new_scratch().unwrap_or_else(|error| panic!("a scratch directory: {error}"))
}

pub(crate) fn new_scratch() -> Result<Scratch> {
    static IN_MEMORY: LazyLock<Option<PathBuf>> = LazyLock::new(in_memory);
    Scratch::new(&run_as(), IN_MEMORY.as_deref())
}

/// The directory for it, without what a run that was killed has left there.
fn in_memory() -> Option<PathBuf> {
    let mount = Path::new("/dev/shm");
    let free = statvfs(mount).ok()?;
    let room = free.f_bavail * free.f_frsize;
    let limit = memory_of_container().unwrap_or(u64::MAX);
    // Some tests run a program from their directory.
    let runs_nothing = free.f_flag.contains(StatVfsMountFlags::NOEXEC);
    if runs_nothing || room.min(available_memory()?).min(limit) < MUCH {
        return None;
    }
    let user = rustix::process::geteuid().as_raw();
    let directory = mount.join(format!("pgclinic-tests-{user}"));
    sweep_in(&directory).ok()?;
    Some(directory)
}

/// What programs could have without swapping.
fn available_memory() -> Option<u64> {
    let known = std::fs::read_to_string("/proc/meminfo").ok()?;
    let mut lines = known.lines();
    let line = lines.find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kilobytes << 10)
}

/// What a container may have; what lies in memory counts there.
fn memory_of_container() -> Option<u64> {
    let of_groups = ["memory.max", "memory/memory.limit_in_bytes"];
    let mut limits = of_groups.iter().filter_map(|name| {
        let limit = std::fs::read_to_string(Path::new("/sys/fs/cgroup").join(name));
        limit.ok()?.trim().parse().ok()
    });
    limits.next()
}
