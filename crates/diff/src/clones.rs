//! Clones that parted on one timeline: two servers were started from one copy, neither was
//! promoted, and each wrote WAL of its own.
//!
//! ```text
//! A  1 ──────────┬──────────── end
//! B  1 ──────────┴──── end          the same names in pg_wal, and other bytes in them
//! ```
//!
//! A record carries the place and the checksum of what is before it, so what differs once differs
//! from there on: the end of what both have is looked at, and only where it differs the place is
//! searched.

use std::ops::Range;

use pgclinic_cluster::Cluster;
use pgclinic_cluster::wal::Recovery;
use pgclinic_format::Lsn;

use crate::position::Position;

/// Bytes at the end of what both have, or of a segment, that are compared first.
const TAIL_BYTES: u64 = 128 << 10;
/// Bytes of a segment that are compared at a time.
const STEP_BYTES: u64 = 128 << 10;

/// Where the WAL of two copies of one timeline begins to differ; nothing where all that both still
/// have is the same.
pub(crate) fn parting(a: (&Cluster, Position), b: (&Cluster, Position)) -> Option<Lsn> {
    let (recovery_a, recovery_b) = (a.0.recovery()?, b.0.recovery()?);
    let shared = Shared {
        a: a.0,
        b: b.0,
        recovery: recovery_a,
        timeline: a.1.timeline,
        end: a.1.end.min(b.1.end).0,
        segment_bytes: u64::from(recovery_a.shape.segment_bytes),
    };
    if a.1.timeline != b.1.timeline
        || recovery_a.shape.segment_bytes != recovery_b.shape.segment_bytes
    {
        return None;
    }
    let numbers = shared.numbers(recovery_b);
    let last = numbers.last()?;
    if shared.is_same(*last, shared.tail(*last))? {
        return None;
    }
    let same = |number: &u64| shared.is_same(*number, shared.tail(*number)) != Some(false);
    let first = numbers.get(numbers.partition_point(same))?;
    shared.first_difference(*first)
}

/// The segments that both copies have.
struct Shared<'a> {
    a: &'a Cluster,
    b: &'a Cluster,
    recovery: &'a Recovery,
    timeline: u32,
    /// The end of WAL in the copy that has less.
    end: u64,
    segment_bytes: u64,
}

impl Shared<'_> {
    /// Segments of both, rising, without those behind the end: they are recycled ones.
    fn numbers(&self, other: &Recovery) -> Vec<u64> {
        let has = |recovery: &Recovery, number| {
            let file = recovery.files.file(number, self.timeline);
            file.is_some_and(|file| file.len == self.segment_bytes)
        };
        let own = self.recovery.files.segments.keys().copied();
        let in_use = |number: &u64| !self.used(*number).is_empty();
        let both = own.filter(|number| has(self.recovery, *number) && has(other, *number));
        both.filter(in_use).collect()
    }

    /// The bytes of a segment that lie before the end.
    fn used(&self, number: u64) -> Range<u64> {
        let start = number.saturating_mul(self.segment_bytes);
        0..self.end.saturating_sub(start).min(self.segment_bytes)
    }

    fn tail(&self, number: u64) -> Range<u64> {
        let used = self.used(number);
        used.end.saturating_sub(TAIL_BYTES)..used.end
    }

    /// Nothing where one of both cannot be read.
    fn is_same(&self, number: u64, range: Range<u64>) -> Option<bool> {
        let (a, b) = self.read(number, range)?;
        Some(a == b)
    }

    fn read(&self, number: u64, range: Range<u64>) -> Option<(Vec<u8>, Vec<u8>)> {
        let name = self.recovery.shape.segment_name(self.timeline, number);
        let path = format!("pg_wal/{name}");
        let len = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        let of = |cluster: &Cluster| {
            let mut bytes = vec![0; len];
            let read = cluster.source().read_at(&path, range.start, &mut bytes);
            (read.ok()? == len).then_some(bytes)
        };
        Some((of(self.a)?, of(self.b)?))
    }

    fn first_difference(&self, number: u64) -> Option<Lsn> {
        let mut used = self.used(number);
        let start = number.checked_mul(self.segment_bytes)?;
        while used.start < used.end {
            let step = used.start..used.end.min(used.start.checked_add(STEP_BYTES)?);
            let (a, b) = self.read(number, step.clone())?;
            let at = a.iter().zip(&b).position(|(a, b)| a != b);
            if let Some(at) = at {
                let at = step.start.checked_add(u64::try_from(at).ok()?)?;
                return start.checked_add(at).map(Lsn);
            }
            used.start = step.end;
        }
        None
    }
}
