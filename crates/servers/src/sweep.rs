//! Cleaning up after runs that were killed: their servers, their shared memory, their folders.

use std::fs::{DirEntry, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::cache::candidates;
use crate::error::{Error, Result};
use crate::process;
use crate::scratch::{MARKER, UNFINISHED, remove};

/// A folder without a marker that is older than this is nobody's.
const FORGOTTEN: Duration = Duration::from_secs(3600);
/// How often a folder is removed into which a dying server still writes.
const REMOVALS: u32 = 100;
const BETWEEN_REMOVALS: Duration = Duration::from_millis(20);

/// What a sweep found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Folders removed.
    pub folders: usize,
    /// Postmasters killed.
    pub servers: usize,
}

/// Removes what dead runs left in the usual places. Folders of living runs and of other users stay.
pub fn sweep() -> Result<Swept> {
    let mut swept = Swept::default();
    for folder in candidates(rustix::process::geteuid().as_raw()) {
        let found = sweep_in(&folder.join("scratch"))?;
        swept.folders += found.folders;
        swept.servers += found.servers;
    }
    Ok(swept)
}

/// The same for scratch folders that were made in `base`.
pub fn sweep_in(base: &Path) -> Result<Swept> {
    let mut swept = Swept::default();
    let Ok(entries) = std::fs::read_dir(base) else {
        return Ok(swept);
    };
    for entry in entries.filter_map(std::result::Result::ok) {
        // The lock is held until the folder is gone, so that two sweeps do not meet in one folder.
        let Some(_lock) = abandoned(&entry) else {
            continue;
        };
        let folder = entry.path();
        swept.servers += remove_with_servers(&folder).map_err(Error::io("remove", &folder))?;
        swept.folders += 1;
    }
    Ok(swept)
}

/// Kills what works in the folder and removes it; how many servers were killed. A child that was
/// born while the processes were listed, or that dies slowly, makes new files meanwhile.
fn remove_with_servers(folder: &Path) -> std::io::Result<usize> {
    let mut killed = kill_servers_in(folder);
    for _ in 0..REMOVALS {
        match remove(folder) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
            done => return done.map(|()| killed),
        }
        std::thread::sleep(BETWEEN_REMOVALS);
        killed += kill_servers_in(folder);
    }
    remove(folder).map(|()| killed)
}

/// The marker, now locked by us, when this is a scratch folder whose owner is dead; without one,
/// when it is old.
fn abandoned(entry: &DirEntry) -> Option<Option<File>> {
    let name = entry.file_name();
    let name = name.to_str()?;
    let own_uid = rustix::process::geteuid().as_raw();
    if !entry.file_type().ok()?.is_dir() {
        return None;
    }
    if is_scratch_name(name)
        && let Ok(marker) = File::open(entry.path().join(MARKER))
    {
        let own = marker.metadata().ok()?.uid() == own_uid;
        return (own && marker.try_lock().is_ok()).then_some(Some(marker));
    }
    // Its owner may be about to lock the marker, so only age tells.
    let found = entry.metadata().ok()?;
    let old = found.modified().ok()?.elapsed().ok()? > FORGOTTEN;
    let ours = name.starts_with(UNFINISHED) || is_scratch_name(name);
    // What root leaves half removed belongs to the servers' user.
    let own = found.uid() == own_uid || own_uid == 0;
    (ours && old && own).then_some(None)
}

/// `4711-3`: a pid and a count.
fn is_scratch_name(name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.split_once('-')
        .is_some_and(|(pid, count)| number(pid) && number(count))
}

/// Kills every `postgres` that stands in the folder or has its socket there, and every tool that
/// works there, children included: an `initdb` whose caller was killed goes on, and would write
/// while the folder is removed.
fn kill_servers_in(folder: &Path) -> usize {
    let found: Vec<u32> = process::all()
        .into_iter()
        .filter(|pid| is_server_of(*pid, folder))
        .collect();
    for pid in &found {
        process::kill_tree(*pid);
    }
    let mut creators = found.clone();
    creators.extend(pids_in_lock_files(folder));
    remove_shared_memory(&creators);
    found.len()
}

fn is_server_of(pid: u32, folder: &Path) -> bool {
    process::is_of_postgresql(pid)
        && (process::working_directory(pid).is_some_and(|cwd| cwd.starts_with(folder))
            || process::has_argument_in(pid, folder))
}

/// The pids in the `postmaster.pid` files of data directories in the folder, at most three levels
/// down.
fn pids_in_lock_files(folder: &Path) -> Vec<u32> {
    let mut pids = Vec::new();
    let mut left: Vec<(PathBuf, u8)> = vec![(folder.to_path_buf(), 0)];
    while let Some((folder, depth)) = left.pop() {
        if let Ok(text) = std::fs::read_to_string(folder.join("postmaster.pid")) {
            pids.extend(
                text.lines()
                    .next()
                    .and_then(|line| line.trim().parse::<u32>().ok()),
            );
        } else if depth < 3 {
            let entries = std::fs::read_dir(&folder)
                .into_iter()
                .flatten()
                .filter_map(std::result::Result::ok);
            let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            left.extend(folders.map(|entry| (entry.path(), depth + 1)));
        }
    }
    pids
}

/// Removes the System V shared memory (56 bytes a server) of dead postmasters; without `ipcrm` it
/// stays until the next boot.
pub(crate) fn remove_shared_memory(creators: &[u32]) {
    let table = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    for (id, creator) in unused_segments(&table) {
        if creators.contains(&creator) && !process::is_alive(creator) {
            let _ = Command::new("ipcrm")
                .args(["-m", &id.to_string()])
                .stdin(Stdio::null())
                .output();
        }
    }
}

/// Identifier and creator of every segment that no process uses (`proc_sysvipc(5)`).
fn unused_segments(table: &str) -> Vec<(u32, u32)> {
    let parse = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u32>().ok();
        (number(6)? == 0).then_some((number(1)?, number(4)?))
    };
    table.lines().skip(1).filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_that_a_scratch_can_have_made_are_looked_at() {
        assert!(is_scratch_name("4711-3"));
        assert!(!is_scratch_name("seeds") && !is_scratch_name("4711") && !is_scratch_name("15-a"));
    }

    #[test]
    fn a_segment_in_use_is_never_removed() {
        let table = "       key      shmid perms                  size  cpid  lpid nattch   uid\n\
                     1234567  3   600  56  4711  4711      6   101\n\
                     1234568  4   600  56  4712  4712      0   101\n";
        assert_eq!(unused_segments(table), [(4, 4712)]);
    }
}
