//! A connection is an open file: the limit of this process is raised as far as it may be.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are open besides connections: libraries, journals, timers' own doors.
const OTHERS: u64 = 64;

/// Makes room for this many connections with one open file each, or says how many there may be.
pub fn make_room_for(connections: u32) -> Result<(), String> {
    make_room(u64::from(connections))
}

/// Makes room for this many open files, or says how many there may be.
pub(super) fn make_room(files: u64) -> Result<(), String> {
    let wanted = files.saturating_add(OTHERS);
    let limit = getrlimit(Resource::Nofile);
    let enough = |current: Option<u64>| current.is_none_or(|current| current >= wanted);
    if enough(limit.current) {
        return Ok(());
    }
    let raised = Rlimit {
        current: Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted))),
        maximum: limit.maximum,
    };
    let _ = setrlimit(Resource::Nofile, raised);
    match getrlimit(Resource::Nofile).current {
        Some(current) if current < wanted => Err(format!(
            "{wanted} open files are needed and this process may have {current} (see ulimit -n)"
        )),
        _ => Ok(()),
    }
}
