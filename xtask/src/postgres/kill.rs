//! The end of a server as a power failure brings it: every process gone between two instructions.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::shell::{self, at};
use crate::task::Outcome;

/// Killed processes are gone after this long, or something is wrong.
const LIMIT: Duration = Duration::from_secs(20);

/// Kills the server whose `postmaster.pid` lies in `cluster`, and removes its shared memory.
pub(super) fn server_of(cluster: &Path) -> Outcome {
    let path = cluster.join("postmaster.pid");
    let text = std::fs::read_to_string(&path).map_err(at(&path))?;
    let postmaster = text
        .lines()
        .next()
        .and_then(|line| line.trim().parse::<u32>().ok())
        .ok_or_else(|| format!("{} names no process", path.display()))?;
    // Stopped first, so that it cannot react to the death of a child.
    signal("-STOP", &[postmaster])?;
    let mut all = children(postmaster);
    all.push(postmaster);
    signal("-KILL", &all)?;
    let end = Instant::now() + LIMIT;
    while all.iter().any(|pid| is_alive(*pid)) {
        if Instant::now() > end {
            return Err(format!("server {postmaster} does not die"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    if let Some(id) = shared_memory(&text) {
        // A leftover of 56 bytes, gone with the next boot at the latest.
        let _ = shell::output(Command::new("ipcrm").args(["-m", id]));
    }
    Ok(())
}

fn signal(name: &str, pids: &[u32]) -> Outcome {
    let pids = pids.iter().map(u32::to_string);
    // A child may have ended between the list and the signal.
    shell::output(Command::new("kill").arg(name).args(pids)).map(drop)
}

fn children(parent: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| status(*pid).is_some_and(|(_, of)| of == parent))
        .collect()
}

fn is_alive(pid: u32) -> bool {
    status(pid).is_some_and(|(state, _)| state != 'Z')
}

fn status(pid: u32) -> Option<(char, u32)> {
    parse_status(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// State and parent (`proc_pid_stat(5)`); the name before them may hold anything.
fn parse_status(line: &str) -> Option<(char, u32)> {
    let mut fields = line.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.next()?.parse().ok()?))
}

/// The identifier on the seventh line of `postmaster.pid`.
fn shared_memory(text: &str) -> Option<&str> {
    text.lines().nth(6)?.split_whitespace().nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        assert_eq!(parse_status("42 (a) b) S 7 42 42 0"), Some(('S', 7)));
        assert_eq!(parse_status("42"), None);
    }

    #[test]
    fn shared_memory_stands_on_the_seventh_line() {
        let text = "1\n/data\n5\n5432\n/run\n\n  16801   32768\nready   \n";
        assert_eq!(shared_memory(text), Some("32768"));
        assert_eq!(shared_memory("1\n"), None);
    }
}
