//! Where a timeline parted from the one before, as WAL itself tells it: for a timeline whose
//! history file is missing or makes no sense.
//!
//! ```text
//! 000000020000000000000004   copied from timeline 1 │ END_OF_RECOVERY: 2, before 1 │ timeline 2 …
//!                                                   └ the switch
//! ```
//!
//! The first segment of a timeline begins with a copy of the segment that it leaves, up to the
//! switch, and the record that ends the recovery names both. Truth: `XLogInitNewTimeline`,
//! `CreateEndOfRecoveryRecord` and `CreateCheckPoint` in `src/backend/access/transam/xlog.c`.

use std::sync::Arc;

use pgclinic_format::Lsn;
use pgclinic_format::wal::{
    Event, FIRST_TIMELINE, History, PageHeader, Record, Shape, Switch, WalPages, WalReader,
};
use pgclinic_source::Source;

use super::files::{Timelines, WalFiles};
use super::pages::SegmentPages;

/// Where a segment begins with its timeline, the record that tells it is among the first ones.
const FIRST_RECORDS: usize = 4;

/// What the history file of `timeline` would say, as far as segments tell; nothing where the first
/// segment of the timeline that is there does not hold the switch.
pub(super) fn history_from_wal(
    source: &dyn Source,
    shape: &Shape,
    files: &Arc<WalFiles>,
    timeline: u32,
) -> Option<History> {
    let mut switches: Vec<Switch> = Vec::new();
    let mut next = timeline;
    // Each timeline is older than the one before.
    while next > FIRST_TIMELINE {
        let own = match files.history_or_switches(next).filter(|_| next != timeline) {
            Some(history) => history.switches.clone(),
            None => switches_in_segment(source, shape, files, next),
        };
        let Some(first) = own.first() else { break };
        next = first.timeline;
        switches.splice(0..0, own);
    }
    (!switches.is_empty()).then_some(History { switches })
}

/// The switches up to `timeline` in its first segment, oldest first; none where it does not hold
/// that to `timeline`.
fn switches_in_segment(
    source: &dyn Source,
    shape: &Shape,
    files: &Arc<WalFiles>,
    timeline: u32,
) -> Vec<Switch> {
    let found = first_segment(files, shape, timeline).and_then(|begin| {
        let alone = Timelines::alone(timeline);
        let mut pages = SegmentPages::new(source, *shape, Arc::clone(files), alone);
        let head = pages.page(begin).and_then(PageHeader::parse)?;
        head.check(begin, shape).ok()?;
        let records_max = match head.timeline {
            own if own == timeline => FIRST_RECORDS,
            _ => usize::MAX,
        };
        let mut reader = WalReader::new(pages, *shape, begin);
        let first = reader.find_first().ok()?;
        let behind_head = Lsn(begin.0.saturating_add(head.bytes()));
        let at = if first == behind_head { begin } else { first };
        let end = Lsn(begin.0.saturating_add(u64::from(shape.segment_bytes)));
        let mut trail = SwitchTrail::from(at);
        for _ in 0..records_max {
            let record = reader.read().ok().filter(|record| record.lsn < end)?;
            trail.note(&record, shape.major);
            if trail.reached == Some(timeline) {
                return Some(trail.switches);
            }
        }
        None
    });
    found.unwrap_or_default()
}

/// Where the first segment of a timeline begins.
fn first_segment(files: &WalFiles, shape: &Shape, timeline: u32) -> Option<Lsn> {
    let mut numbers = files.segments.keys().copied();
    let number = numbers.find(|number| files.file(*number, timeline).is_some())?;
    number.checked_mul(u64::from(shape.segment_bytes)).map(Lsn)
}

/// Switches that hang together.
struct SwitchTrail {
    switches: Vec<Switch>,
    /// The timeline after the last of them.
    reached: Option<u32>,
    /// Where the last record ends that the timeline before wrote.
    at: Lsn,
}

impl SwitchTrail {
    fn from(at: Lsn) -> Self {
        SwitchTrail {
            switches: Vec::new(),
            reached: None,
            at,
        }
    }

    fn note(&mut self, record: &Record<'_>, major: u16) {
        let event = Event::of(record, major);
        if let Some((previous, timeline)) = switch_in(&event) {
            if self.reached.is_some_and(|own| own != previous) {
                self.switches.clear();
            }
            self.switches.push(Switch {
                timeline: previous,
                at: self.at,
            });
            self.reached = Some(timeline);
        }
        // A server that ends its recovery may write these two before the record that says so.
        if !matches!(event, Event::FullPageWrites(_) | Event::Overwritten(_)) {
            self.at = record.end;
        }
    }
}

/// The timelines before and after the end of a recovery; most recoveries stay on theirs.
fn switch_in(event: &Event<'_>) -> Option<(u32, u32)> {
    let (previous, timeline) = match event {
        Event::EndOfRecovery { timeline, previous } => (*previous, *timeline),
        Event::Checkpoint {
            checkpoint,
            previous_timeline,
            ..
        } => (*previous_timeline, checkpoint.timeline),
        _ => return None,
    };
    (previous < timeline).then_some((previous, timeline))
}
