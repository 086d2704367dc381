//! The way of a copy through the timelines, and where the ways of two copies part.
//!
//! ```text
//! A  1 ──────────┬──────────── end
//! B  1 ──────────┘ 2 ──── end            00000002.history: 1 was left here
//! ```
//!
//! Truth: `readTimeLineHistory` in `src/backend/access/transam/timeline.c`,
//! `findCommonAncestorTimeline` in `src/bin/pg_rewind/pg_rewind.c`.

use pgclinic_cluster::Cluster;
use pgclinic_cluster::wal::{Recovery, StartKind};
use pgclinic_format::Lsn;
use pgclinic_format::wal::{FIRST_TIMELINE, Switch};

use crate::position::Position;

/// `SizeOfXLogLongPHD`: a record may begin behind the header of a page, and the one before it ended
/// at the page's start.
const WAL_PAGE_HEADER_BYTES: u64 = 40;
/// `SizeOfXLogRecord`: no checkpoint record is shorter.
const RECORD_BYTES: u64 = 24;

/// How the ways of two copies lie to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kinship {
    /// One copy can become the other by replay.
    Line,
    /// Each went on by itself from here.
    Parted(Lsn),
    /// Their timelines differ, and no history tells where they parted.
    Unknown,
}

/// The timelines that a copy came through.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Way {
    /// Those before the last one; nothing where no history tells.
    before: Option<Vec<Switch>>,
    timeline: u32,
    /// The copy holds changes up to here.
    reached: Lsn,
    wal_page_bytes: u64,
}

/// The timeline at `end`, on the way to the timeline that recovery would go to.
pub(crate) fn timeline_at(recovery: &Recovery, end: Lsn) -> u32 {
    let target = recovery.timelines.target();
    if recovery.start.kind == StartKind::Settled {
        return target;
    }
    let history = recovery.files.history(target);
    let mut left = history.iter().flat_map(|history| &history.switches);
    let found = left.find(|own| own.timeline >= recovery.start.timeline && end <= own.at);
    found.map_or(target, |own| own.timeline)
}

impl Way {
    /// Nothing without a control file to trust.
    pub(crate) fn of(cluster: &Cluster, position: Position) -> Option<Self> {
        let (control, recovery) = (cluster.control.trusted()?, cluster.recovery()?);
        let history = [recovery.timelines.target(), position.timeline]
            .into_iter()
            .find_map(|timeline| recovery.files.history(timeline));
        let before = match history {
            Some(history) => {
                let switches = history.switches.iter().copied();
                let before = switches.filter(|own| own.timeline < position.timeline);
                Some(before.collect())
            }
            None => (position.timeline == FIRST_TIMELINE).then(Vec::new),
        };
        let reached = match recovery.start.kind {
            // The checkpoint record itself was written.
            StartKind::Settled => Lsn(position.end.0.saturating_add(RECORD_BYTES)),
            // WAL that was received and not replayed is in no file yet.
            StartKind::Archive => control.min_recovery_point.max(position.redo),
            StartKind::Crash | StartKind::Backup => position.end,
        };
        Some(Way {
            before,
            timeline: position.timeline,
            reached,
            wal_page_bytes: u64::from(recovery.shape.page_bytes),
        })
    }

    /// Where a timeline was left on this way.
    fn left(&self, timeline: u32) -> Option<Lsn> {
        let mut switches = self.before.iter().flatten();
        let found = switches.find(|own| own.timeline == timeline);
        found.map(|own| own.at)
    }

    /// The copy was no further than this when another way left its timeline.
    fn is_within(&self, at: Lsn) -> bool {
        self.is_no_later(self.reached, at)
    }

    fn is_no_later(&self, lsn: Lsn, at: Lsn) -> bool {
        let into_page = lsn.0.checked_rem(self.wal_page_bytes).unwrap_or(0);
        let end = if into_page <= WAL_PAGE_HEADER_BYTES {
            Lsn(lsn.0 - into_page)
        } else {
            lsn
        };
        end <= at
    }

    /// Each timeline with where it was left; the last one is not.
    fn legs(&self) -> Option<impl Iterator<Item = (u32, Option<Lsn>)>> {
        let before = self.before.as_ref()?.iter();
        let before = before.map(|own| (own.timeline, Some(own.at)));
        Some(before.chain([(self.timeline, None)]))
    }
}

/// Copies without a position count as those of one line: what cannot be told of them is told
/// elsewhere.
pub(crate) fn kinship(a: Option<&Way>, b: Option<&Way>) -> Kinship {
    let (Some(a), Some(b)) = (a, b) else {
        return Kinship::Line;
    };
    match (a.legs(), b.legs()) {
        (Some(legs_a), Some(legs_b)) => along(legs_a.zip(legs_b), a, b),
        _ if a.timeline == b.timeline => Kinship::Line,
        (Some(_), None) => by_number(b, a),
        (None, Some(_)) => by_number(a, b),
        (None, None) => Kinship::Unknown,
    }
}

/// By the number of the timeline alone, of a copy that has lost its history.
fn by_number(without: &Way, with: &Way) -> Kinship {
    match with.left(without.timeline) {
        Some(at) if without.is_within(at) => Kinship::Line,
        Some(at) => Kinship::Parted(at),
        None => Kinship::Unknown,
    }
}

type Leg = (u32, Option<Lsn>);

fn along(legs: impl Iterator<Item = (Leg, Leg)>, a: &Way, b: &Way) -> Kinship {
    let mut common = None;
    for ((timeline_a, left_a), (timeline_b, left_b)) in legs {
        if timeline_a != timeline_b {
            return common.map_or(Kinship::Unknown, Kinship::Parted);
        }
        match (left_a, left_b) {
            (Some(at_a), Some(at_b)) if at_a == at_b => common = Some(at_a),
            (Some(at_a), Some(at_b)) => return Kinship::Parted(at_a.min(at_b)),
            (Some(at), None) if !b.is_within(at) => return Kinship::Parted(at),
            (None, Some(at)) if !a.is_within(at) => return Kinship::Parted(at),
            _ => return Kinship::Line,
        }
    }
    Kinship::Line
}

/// WAL that a copy received of its timeline behind the place where the other copy left it is not on
/// its way.
pub(crate) fn on_the_way(position: Position, own: &Way, other: &Way) -> Position {
    let left = other.left(position.timeline);
    match left.filter(|at| !own.is_no_later(position.end, *at)) {
        Some(at) => Position {
            end: at.max(position.redo),
            elsewhere: true,
            ..position
        },
        None => position,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTING: Lsn = Lsn(0x100_0000);

    fn way(before: &[(u32, u64)], timeline: u32, reached: u64) -> Way {
        let switches = before.iter().map(|(timeline, at)| Switch {
            timeline: *timeline,
            at: Lsn(*at),
        });
        Way {
            before: Some(switches.collect()),
            timeline,
            reached: Lsn(reached),
            wal_page_bytes: 8192,
        }
    }

    fn both_ways(a: &Way, b: &Way) -> Kinship {
        let told = kinship(Some(a), Some(b));
        assert_eq!(kinship(Some(b), Some(a)), told, "the order tells nothing");
        told
    }

    #[test]
    fn a_primary_that_went_on_has_parted_from_its_promoted_standby() {
        let promoted = way(&[(1, PARTING.0)], 2, 0x200_0000);
        let went_on = way(&[], 1, 0x22E_8CA0);
        assert_eq!(both_ways(&went_on, &promoted), Kinship::Parted(PARTING));
        let stopped = way(&[], 1, 0xFF_FF00);
        assert_eq!(both_ways(&stopped, &promoted), Kinship::Line);
    }

    #[test]
    fn the_header_of_a_page_is_no_change() {
        let promoted = way(&[(1, PARTING.0)], 2, 0x200_0000);
        let at = |reached| both_ways(&way(&[], 1, reached), &promoted);
        assert_eq!(at(PARTING.0), Kinship::Line);
        assert_eq!(at(PARTING.0 + 40), Kinship::Line);
        assert_eq!(at(PARTING.0 + 64), Kinship::Parted(PARTING));
    }

    #[test]
    fn two_that_were_promoted_parted_where_the_first_left() {
        let first = way(&[(1, 100 << 20)], 2, 300 << 20);
        let second = way(&[(1, 200 << 20)], 3, 300 << 20);
        assert_eq!(
            both_ways(&first, &second),
            Kinship::Parted(Lsn(100 << 20)),
            "of one primary"
        );
        let same = way(&[(1, 200 << 20)], 2, 300 << 20);
        assert_eq!(
            both_ways(&first, &same),
            Kinship::Parted(Lsn(100 << 20)),
            "one number, two ways"
        );
        let brother = way(&[(1, 100 << 20)], 3, 300 << 20);
        assert_eq!(both_ways(&first, &brother), Kinship::Parted(Lsn(100 << 20)));
        let child = way(&[(1, 100 << 20), (2, 400 << 20)], 3, 500 << 20);
        assert_eq!(both_ways(&first, &child), Kinship::Line);
        assert_eq!(both_ways(&brother, &child), Kinship::Parted(Lsn(100 << 20)));
    }

    #[test]
    fn without_a_history_nothing_is_claimed() {
        let lost = |timeline| Way {
            before: None,
            ..way(&[], timeline, 300 << 20)
        };
        let first = way(&[], 1, 100 << 20);
        assert_eq!(both_ways(&first, &lost(2)), Kinship::Unknown);
        assert_eq!(both_ways(&lost(2), &lost(3)), Kinship::Unknown);
        assert_eq!(both_ways(&lost(2), &lost(2)), Kinship::Line);
        // The other copy's history names the timeline.
        let child = way(&[(1, 100 << 20), (2, 400 << 20)], 3, 500 << 20);
        assert_eq!(both_ways(&lost(2), &child), Kinship::Line);
        let shorter = way(&[(1, 100 << 20), (2, 200 << 20)], 3, 500 << 20);
        assert_eq!(
            both_ways(&lost(2), &shorter),
            Kinship::Parted(Lsn(200 << 20))
        );
        assert_eq!(kinship(None, Some(&first)), Kinship::Line);
    }
}
