//! What lies in `pg_wal`: segments by number and timeline, and the histories of timelines.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pgclinic_format::Lsn;
use pgclinic_format::wal::{FIRST_TIMELINE, History, HistoryFault, Shape};
use pgclinic_source::{Entry, Presence, Source, SourceErrorKind, read_all};

use crate::error::ReadGap;
use crate::wal::timeline_switch::history_from_wal;

/// Bytes of a history file that are read.
pub(super) const HISTORY_BYTES: u64 = 1 << 20;

/// A whole segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WalFile {
    /// The timeline in its name.
    pub timeline: u32,
    /// Bytes; a segment's full size unless something went wrong.
    pub len: u64,
}

/// Segments and histories.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WalFiles {
    /// Segments by their number, each with its timelines in rising order.
    pub segments: BTreeMap<u64, Vec<WalFile>>,
    /// Histories by timeline, or what is wrong with them.
    pub histories: BTreeMap<u32, Result<History, HistoryFault>>,
    /// What segments themselves tell of timelines whose history file cannot be read.
    pub histories_from_wal: BTreeMap<u32, History>,
    /// What could not be read.
    pub troubles: Vec<ReadGap>,
    /// The folder cannot be listed, so that nothing is known of what lies there.
    pub is_unreadable: bool,
}

impl WalFiles {
    /// Lists `pg_wal` and reads the histories.
    pub fn list(source: &dyn Source, shape: &Shape) -> Self {
        let mut files = WalFiles::default();
        let entries = match source.list("pg_wal") {
            Ok(entries) => entries,
            // Without the folder, the server does not start: all that is needed of it is missing.
            Err(error) if error.kind == SourceErrorKind::NotFound => return files,
            Err(error) => {
                files.troubles.push(ReadGap::new("pg_wal", error));
                files.is_unreadable = true;
                return files;
            }
        };
        for entry in &entries {
            if let Some((timeline, number)) = shape.parse_name(&entry.name) {
                let len = files.len_of(source, shape, entry);
                let file = WalFile { timeline, len };
                files.segments.entry(number).or_default().push(file);
            } else if let Some(timeline) = history_name(&entry.name) {
                files.read_history(source, timeline);
            }
        }
        for timelines in files.segments.values_mut() {
            timelines.sort_by_key(|file| file.timeline);
        }
        files.read_switches(source, shape);
        files
    }

    /// A segment out of reach is there all the same: it is taken for a full one, and who reads it
    /// learns why it cannot be.
    fn len_of(&mut self, source: &dyn Source, shape: &Shape, entry: &Entry) -> u64 {
        match Presence::of_entry(source, "pg_wal", entry) {
            Presence::There(len) => len,
            // It went while the names were read.
            Presence::Missing => 0,
            Presence::Unreadable(error) => {
                self.troubles.push(ReadGap::from(&error));
                u64::from(shape.segment_bytes)
            }
        }
    }

    fn read_history(&mut self, source: &dyn Source, timeline: u32) {
        let path = history_path(timeline);
        match read_all(source, &path, HISTORY_BYTES) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let history = History::parse(timeline, &text);
                self.histories.insert(timeline, history);
            }
            Err(error) => self.troubles.push(ReadGap::new(path, error)),
        }
    }

    /// Asks the segments of timelines without a history.
    fn read_switches(&mut self, source: &dyn Source, shape: &Shape) {
        let all = self.segments.values().flatten().map(|file| file.timeline);
        let lacks =
            |timeline: &u32| *timeline > FIRST_TIMELINE && self.history(*timeline).is_none();
        let lacking: BTreeSet<u32> = all.filter(lacks).collect();
        if lacking.is_empty() {
            return;
        }
        let listed = Arc::new(self.clone());
        let histories = lacking.into_iter().filter_map(|timeline| {
            let history = history_from_wal(source, shape, &listed, timeline)?;
            Some((timeline, history))
        });
        self.histories_from_wal = histories.collect();
    }

    /// The history of a timeline, if its file is there and names others.
    pub fn history(&self, timeline: u32) -> Option<&History> {
        let read = self.histories.get(&timeline)?.as_ref().ok();
        read.filter(|history| !history.switches.is_empty())
    }

    /// The same, or what segments themselves tell. What they tell is no later than the history file
    /// has it, and by a record or two earlier at most.
    pub fn history_or_switches(&self, timeline: u32) -> Option<&History> {
        let read = self.history(timeline);
        read.or_else(|| self.histories_from_wal.get(&timeline))
    }

    /// Why the history file of a timeline tells nothing. The first timeline has none, and of one
    /// that is out of reach nothing is known.
    pub fn history_fault(&self, timeline: u32) -> Option<String> {
        let path = history_path(timeline);
        let is_out_of_reach =
            self.is_unreadable || self.troubles.iter().any(|own| own.what == path);
        match self.histories.get(&timeline) {
            _ if timeline <= FIRST_TIMELINE => None,
            Some(Ok(history)) if history.switches.is_empty() => Some("names no timeline".into()),
            Some(Ok(_)) => None,
            Some(Err(fault)) => Some(format!("cannot be read: {fault}")),
            None if is_out_of_reach => None,
            None => Some("is missing".into()),
        }
    }

    /// The segment's file of this timeline.
    pub fn file(&self, number: u64, timeline: u32) -> Option<WalFile> {
        let files = self.segments.get(&number)?;
        files.iter().find(|file| file.timeline == timeline).copied()
    }
}

/// `pg_wal/00000002.history`.
pub fn history_path(timeline: u32) -> String {
    format!("pg_wal/{timeline:08X}.history")
}

pub(super) fn history_name(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".history")?;
    let digit = |byte: u8| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte);
    (digits.len() == 8 && digits.bytes().all(digit)).then_some(())?;
    u32::from_str_radix(digits, 16).ok()
}

/// The way through the timelines to one of them: which file holds a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timelines {
    /// Newest first: a timeline, and the number of the segment in which it begins.
    way: Vec<(u32, u64)>,
    /// A history tells it, or there is nothing to tell.
    is_known: bool,
}

impl Timelines {
    /// The way to `target`. Without its history, it is the only timeline there is.
    pub fn to(target: u32, files: &WalFiles, shape: &Shape) -> Self {
        let mut way = Vec::new();
        let mut begin = 0;
        for switch in files
            .history_or_switches(target)
            .iter()
            .flat_map(|own| &own.switches)
        {
            way.push((switch.timeline, begin));
            begin = shape.segment_number(switch.at);
        }
        way.push((target, begin));
        way.reverse();
        Timelines {
            way,
            is_known: true,
        }
    }

    /// Only this one.
    pub(super) fn alone(timeline: u32) -> Self {
        Timelines {
            way: vec![(timeline, 0)],
            is_known: true,
        }
    }

    /// The way to `target` from an older timeline, when no history tells it: `target` began in the
    /// segment `begin` at the latest, and there may be others between the two.
    pub(super) fn guessed(target: u32, begin: u64, older: u32) -> Self {
        Timelines {
            way: vec![(target, begin), (older, 0)],
            is_known: false,
        }
    }

    /// Where each timeline was left is known, and not only that it was.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// The timeline whose file the server reads for a segment: the newest one on the way that has
    /// begun by then and whose file is there.
    pub fn choose(&self, files: &WalFiles, number: u64) -> Option<WalFile> {
        let begun = self.way.iter().filter(|(_, begin)| *begin <= number);
        begun
            .filter_map(|(timeline, _)| files.file(number, *timeline))
            .next()
    }

    /// The newest timeline on the way that has begun by then, whether or not its file is there.
    pub fn expected(&self, number: u64) -> Option<u32> {
        let mut begun = self.way.iter().filter(|(_, begin)| *begin <= number);
        begun.next().map(|(timeline, _)| *timeline)
    }

    /// Where the way left a timeline that it passes, if that is known; the last one is not left.
    pub(super) fn left(&self, timeline: u32, files: &WalFiles) -> Option<Lsn> {
        let history = files.history_or_switches(self.target())?;
        history.left(timeline)
    }

    /// The timeline at the end of the way.
    pub fn target(&self) -> u32 {
        self.way.first().map_or(1, |(timeline, _)| *timeline)
    }

    /// It lies on the way.
    pub fn passes(&self, timeline: u32) -> bool {
        self.way.iter().any(|(own, _)| *own == timeline)
    }
}
