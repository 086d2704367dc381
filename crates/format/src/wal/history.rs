//! A timeline's history file: which timelines it descends from, and where each was left.
//!
//! ```text
//! 1<TAB>0/3000148<TAB>no recovery target specified
//! ```
//!
//! Truth: `readTimeLineHistory` in `src/backend/access/transam/timeline.c`.

use std::fmt;

use crate::types::Lsn;

/// The timeline that `initdb` begins, which descends from none and has no history.
pub const FIRST_TIMELINE: u32 = 1;
/// More lines than any cluster's life has.
const LINES_MAX: usize = 100_000;

/// Where a timeline was left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switch {
    /// The timeline that was left.
    pub timeline: u32,
    /// Its WAL counts up to here.
    pub at: Lsn,
}

/// The timelines before one, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct History {
    /// Oldest first.
    pub switches: Vec<Switch>,
}

/// What is wrong with a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HistoryFault {
    /// From 1.
    pub line: usize,
    /// Why.
    pub why: &'static str,
}

impl fmt::Display for HistoryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl History {
    /// Reads the history of `timeline`.
    pub fn parse(timeline: u32, text: &str) -> Result<Self, HistoryFault> {
        let mut switches: Vec<Switch> = Vec::new();
        for (content, line) in text.lines().zip(1..) {
            let fault = |why| Err(HistoryFault { line, why });
            let content = content.trim_start();
            // A line ends at a zero for the server, so that a file of zeros says nothing.
            if content.is_empty() || content.starts_with(['#', '\0']) {
                continue;
            }
            let mut words = content.split_ascii_whitespace();
            let Some(left) = words.next().and_then(|word| word.parse::<u32>().ok()) else {
                return fault("it does not begin with the number of a timeline");
            };
            let Some(at) = words.next().and_then(parse_lsn) else {
                return fault("no WAL position stands after the timeline");
            };
            if switches.last().is_some_and(|last| last.timeline >= left) {
                return fault("timelines do not rise");
            }
            if left >= timeline {
                return fault("it does not come before the timeline of the file");
            }
            if switches.len() >= LINES_MAX {
                return fault("there are too many lines");
            }
            switches.push(Switch { timeline: left, at });
        }
        Ok(History { switches })
    }

    /// Where `timeline` was left on the way to the timeline of this file, if it lies on the way.
    pub fn left(&self, timeline: u32) -> Option<Lsn> {
        let mut found = self.switches.iter();
        found
            .find(|switch| switch.timeline == timeline)
            .map(|switch| switch.at)
    }
}

/// `0/3000148`.
pub fn parse_lsn(word: &str) -> Option<Lsn> {
    let (high, low) = word.split_once('/')?;
    let part = |digits: &str| {
        let hex = (1..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
        hex.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
    };
    Some(Lsn(part(high)? << 32 | part(low)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_reasons_are_passed_over() {
        let text = "1\t0/3000148\tno recovery target specified\n\n# odd\n2\t1/A0 before x\n";
        let history = History::parse(3, text).expect("a history");
        assert_eq!(history.left(1), Some(Lsn(0x300_0148)));
        assert_eq!(history.left(2), Some(Lsn(0x1_0000_00A0)));
        assert_eq!(history.left(3), None);
        assert_eq!(History::parse(3, "\0\0\0"), Ok(History::default()));
    }

    #[test]
    fn what_no_server_writes_is_told_with_its_line() {
        let why = |text: &str| History::parse(3, text).expect_err("no history").to_string();
        assert_eq!(
            why("one\t0/1"),
            "line 1: it does not begin with the number of a timeline"
        );
        assert_eq!(
            why("1\n"),
            "line 1: no WAL position stands after the timeline"
        );
        assert_eq!(why("2\t0/1\n1\t0/2"), "line 2: timelines do not rise");
        assert_eq!(
            why("3\t0/1"),
            "line 1: it does not come before the timeline of the file"
        );
    }
}
