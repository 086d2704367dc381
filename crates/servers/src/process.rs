//! Other processes, seen through `/proc` (`proc(5)`).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// What `/proc/PID/stat` says that matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    state: char,
    parent: u32,
    start_ticks: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The command name stands in parentheses and may hold anything, so the fields are counted from the
/// last one.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        start_ticks: fields.get(19)?.parse().ok()?,
    })
}

/// When a process started, in clock ticks since boot; with the pid it names a process for good.
pub(crate) fn start_ticks(pid: u32) -> Option<u64> {
    stat(pid).map(|stat| stat.start_ticks)
}

/// Whether the process still runs; a zombie does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// Every process of the machine that this one may see.
pub(crate) fn all() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// The direct children of a process.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    all()
        .into_iter()
        .filter(|pid| stat(*pid).is_some_and(|stat| stat.parent == parent))
        .collect()
}

/// Whether the program of a process is a server or one of its tools (`initdb`, `pg_…`), replaced or
/// deleted on disk or not.
pub(crate) fn is_of_postgresql(pid: u32) -> bool {
    let Ok(program) = std::fs::read_link(format!("/proc/{pid}/exe")) else {
        return false;
    };
    let name = program
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    is_tool(name.strip_suffix(" (deleted)").unwrap_or(name))
}

fn is_tool(name: &str) -> bool {
    matches!(name, "postgres" | "initdb") || name.starts_with("pg_")
}

/// The working directory of a process; postmaster and backends stand in their data directory.
pub(crate) fn working_directory(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// Whether an argument of a process names `folder` or something in it.
pub(crate) fn has_argument_in(pid: u32, folder: &Path) -> bool {
    let Some(folder) = folder.to_str() else {
        return false;
    };
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&arguments)
        .split('\0')
        .any(|argument| names_path_in(argument, folder))
}

fn names_path_in(argument: &str, folder: &str) -> bool {
    let path = argument
        .split_once('=')
        .map_or(argument, |(_, value)| value);
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Sends a signal; a process that is gone is no error.
pub(crate) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Waits until none of the processes runs; false when `limit` passed first.
pub(crate) fn wait_until_gone(pids: &[u32], limit: Duration) -> bool {
    let end = Instant::now() + limit;
    while pids.iter().any(|pid| is_alive(*pid)) {
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    true
}

/// Kills a postmaster and its children with SIGKILL, so that none of them can react to the other's
/// death.
pub(crate) fn kill_tree(postmaster: u32) -> bool {
    signal(postmaster, Signal::STOP);
    let mut killed = children(postmaster);
    killed.push(postmaster);
    for pid in &killed {
        signal(*pid, Signal::KILL);
    }
    wait_until_gone(&killed, Duration::from_secs(10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_with_parentheses_does_not_shift_the_fields() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2";
        assert_eq!(
            parse_stat(line),
            Some(Stat {
                state: 'S',
                parent: 7,
                start_ticks: 987_654
            })
        );
        assert_eq!(parse_stat("42 (x"), None);
    }

    #[test]
    fn a_longer_folder_name_is_another_folder() {
        assert!(names_path_in("unix_socket_directories=/s/1", "/s/1"));
        assert!(names_path_in("/s/1/data", "/s/1"));
        assert!(!names_path_in("/s/10/data", "/s/1"));
    }

    #[test]
    fn we_are_alive_and_no_postgres() {
        assert!(is_alive(std::process::id()) && !is_of_postgresql(std::process::id()));
        assert!(start_ticks(std::process::id()).is_some());
    }
}
