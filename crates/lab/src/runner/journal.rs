//! The journal: one line of JSON for everything that happened, appended and synced, never
//! rewritten.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::cell::{Cell, RunResult};
use crate::error::{Error, Result};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The first run of this folder is about to begin.
    Began,
    /// Work goes on in a folder that has results.
    Resumed,
    /// A run began.
    RunBegan,
    /// A run has its result in its folder.
    RunEnded,
    /// Planned blocks were dropped: the budget does not hold them.
    Dropped,
    /// Nothing is left to run.
    Ended,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Seconds since 1970 by the machine's clock, which may jump.
    pub at: u64,
    /// What happened.
    pub event: Event,
    /// The run it happened to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// The first block that was dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<u32>,
    /// How the run ended, or why blocks were dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

impl Entry {
    pub(super) fn new(event: Event) -> Self {
        Self {
            at: now(),
            event,
            cell: None,
            block: None,
            outcome: None,
        }
    }

    pub(super) fn of_run(event: Event, cell: &Cell) -> Self {
        Self {
            cell: Some(cell.id.clone()),
            ..Self::new(event)
        }
    }

    pub(super) fn of_blocks(first: u32, why: &str) -> Self {
        Self {
            block: Some(first),
            outcome: Some(why.to_owned()),
            ..Self::new(Event::Dropped)
        }
    }

    pub(super) fn of_result(result: &RunResult) -> Self {
        Self {
            outcome: Some(result.outcome.words()),
            ..Self::of_run(Event::RunEnded, &result.cell)
        }
    }
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Appends one line and syncs it. A line that a kill cut off is ended first, so that it spoils no
/// other.
pub(super) fn append(path: &Path, entry: &Entry) -> Result<()> {
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(path)
        .map_err(Error::io("open", path))?;
    let mut line = serde_json::to_string(entry).expect("plain data can be written as JSON");
    line.push('\n');
    if ends_in_the_middle(path) {
        line.insert(0, '\n');
    }
    file.write_all(line.as_bytes())
        .and_then(|()| file.sync_data())
        .map_err(Error::io("write", path))
}

fn ends_in_the_middle(path: &Path) -> bool {
    let text = std::fs::read(path).unwrap_or_default();
    text.last().is_some_and(|last| *last != b'\n')
}

/// The entries that can be read; a line that a kill cut off is none, even where the cut went
/// through a character.
pub(super) fn read(path: &Path) -> Vec<Entry> {
    let bytes = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_cut_off_by_a_kill_spoils_no_other() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("journal.jsonl");
        append(&path, &Entry::new(Event::Began)).expect("a line");
        // The second ends inside of a character of two bytes.
        for cut in [&b"{\"at\":17,\"eve"[..], b"{\"at\":17,\"outcome\":\"fl\xc3"] {
            let mut bytes = std::fs::read(&path).expect("the journal");
            bytes.extend_from_slice(cut);
            std::fs::write(&path, bytes).expect("the journal");
            append(&path, &Entry::new(Event::Resumed)).expect("a line");
        }
        let events: Vec<Event> = read(&path).into_iter().map(|entry| entry.event).collect();
        assert_eq!(events, [Event::Began, Event::Resumed, Event::Resumed]);
    }
}
