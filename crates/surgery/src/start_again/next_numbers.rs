//! The next transaction, multixact and OID, the timeline, and the place in WAL that comes after all
//! that is known.

use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{Lsn, MultiXactId, Oid, StatusLog, Xid};

use super::ground::{Ground, Known};
use super::numbers::{Highest, Numbers};
use super::status_ends::{last_ended, next_multixact};
use crate::error::{Error, Result};

impl Ground<'_> {
    pub(super) fn next_xid(&self, numbers: &Numbers) -> Known<Xid> {
        let oldest = self.oldest_xid.value.0;
        let mut all = Vec::new();
        if let Some(control) = self.control() {
            let next = control.checkpoint.next_xid();
            all.push(Known::new(next, "the control file"));
        }
        if let Some((at, checkpoint)) = &self.wal.checkpoint {
            let why = format!("the checkpoint record at {at}");
            all.push(Known::new(checkpoint.next_xid(), why));
        }
        if let Some(next) = self.wal.next_xid {
            all.push(Known::new(next, "the last transaction in WAL"));
        }
        if let Some(Highest { value, at }) = &numbers.xid {
            let last = Xid(oldest.wrapping_add(*value));
            all.push(Known::new(last.next(), format!("the row at {at}")));
        }
        let last = self
            .ends(StatusLog::Xact, oldest)
            .as_mut()
            .and_then(last_ended);
        if let Some(last) = last {
            all.push(Known::new(
                last.next(),
                "the last transaction that pg_xact knows to have ended",
            ));
        }
        let distance = |known: &Known<Xid>| known.value.0.wrapping_sub(oldest);
        all.retain(|own| distance(own) <= u32::MAX / 2);
        let highest = all.into_iter().max_by_key(distance);
        let first = Xid(self.oldest_xid.value.0.max(Xid::FIRST_NORMAL.0));
        let known = highest.unwrap_or_else(|| Known::new(first, "no row has a transaction"));
        Known {
            value: Xid(known.value.0.max(Xid::FIRST_NORMAL.0)),
            ..known
        }
    }

    /// Epochs stand in control file and WAL only.
    pub(super) fn with_epoch(&self, next: Xid) -> (u64, String) {
        let Some(known) = self.last_checkpoint() else {
            let is_wrapped = self.oldest_xid.value.0 > next.0;
            let epoch = u64::from(is_wrapped);
            let why = "the epoch is unknown, and the lowest possible one is taken".to_owned();
            return (epoch << 32 | u64::from(next.0), why);
        };
        let ahead = next.0.wrapping_sub(known.next_xid().0);
        let full = if ahead <= u32::MAX / 2 {
            known.next_full_xid.saturating_add(u64::from(ahead))
        } else {
            known.next_full_xid
        };
        (full, "epoch of the last known checkpoint".into())
    }

    pub(super) fn next_multi(&self, numbers: &Numbers) -> Known<(MultiXactId, u32)> {
        let oldest = self.oldest_multi.value.0;
        let mut all = Vec::new();
        if let Some(control) = self.control() {
            let own = &control.checkpoint;
            let next = (own.next_multi, own.next_multi_offset);
            all.push(Known::new(next, "the control file"));
        }
        if let Some(next) = self.wal.next_multi {
            all.push(Known::new(next, "the last multixact in WAL"));
        }
        if let Some(next) = next_multixact(self.cluster, oldest) {
            all.push(Known::new(next, "the last entry of pg_multixact"));
        }
        if let Some(Highest { value, at }) = &numbers.multi {
            let last = MultiXactId(oldest.wrapping_add(*value));
            all.push(Known::new((last.next(), 0), format!("the row at {at}")));
        }
        let distance = |known: &Known<(MultiXactId, u32)>| known.value.0.0.wrapping_sub(oldest);
        all.retain(|own| distance(own) <= u32::MAX / 2);
        // Members of those that only rows know are lost, and their places are free. Places wrap, so
        // that those of the last multixact count, and not the highest number.
        let places = all.iter().filter(|own| own.value.1 != 0);
        let last = places.max_by_key(|own| (distance(own), own.value.1));
        let offset = last.map_or(0, |own| own.value.1);
        let highest = all.into_iter().max_by_key(distance);
        let none = || {
            Known::new(
                (MultiXactId(oldest.max(MultiXactId::FIRST.0)), 0),
                "no multixact is known",
            )
        };
        let known = highest.unwrap_or_else(none);
        Known {
            value: (known.value.0, offset),
            ..known
        }
    }

    pub(super) fn next_oid(&self, numbers: &Numbers) -> Known<Oid> {
        let mut all = vec![Known::new(
            FIRST_NORMAL_OID,
            "the first OID that users' objects have",
        )];
        if let Some(control) = self.control() {
            all.push(Known::new(control.checkpoint.next_oid, "the control file"));
        }
        all.push(Known::new(self.wal.next_oid, "the last reservation in WAL"));
        if let Some(Highest { value, at }) = &numbers.oid {
            let why = format!("the row at {at}");
            all.push(Known::new(value.saturating_add(1), why));
        }
        let highest = all.into_iter().max_by_key(|own| own.value);
        highest.unwrap_or_else(|| Known::new(FIRST_NORMAL_OID, ""))
    }

    pub(super) fn timeline(&self) -> Known<u32> {
        let control = self.control();
        let own = control.map_or(1, |control| {
            control
                .checkpoint
                .timeline
                .max(control.min_recovery_timeline)
        });
        match self.wal.timeline {
            Some(timeline) if timeline > own || control.is_none() => {
                Known::new(timeline, "names of files in pg_wal")
            }
            _ if control.is_some() => Known::new(own, "the control file"),
            _ => Known::new(own, "nothing says otherwise: the first one"),
        }
    }

    /// No page on disk and no record is later.
    pub(super) fn position(&self, numbers: &Numbers) -> Known<Lsn> {
        let mut all = vec![Known::new(Lsn(0), "the first segment")];
        if let Some(control) = self.control() {
            let at = control.checkpoint_lsn.max(control.min_recovery_point);
            all.push(Known::new(at, "after the control file's last place"));
        }
        if let Some(end) = self.wal.end {
            all.push(Known::new(end, "after the last record of WAL"));
        }
        if let Some(Highest { value, at }) = &numbers.lsn {
            let why = format!("after the largest LSN of a page, {value} at {at}");
            all.push(Known::new(*value, why));
        }
        if let Some(number) = self.wal.last_segment {
            let size = u64::from(self.wal.shape.segment_bytes);
            let at = Lsn(number.saturating_mul(size));
            all.push(Known::new(at, "after the last name in pg_wal"));
        }
        let highest = all.into_iter().max_by_key(|own| own.value);
        highest.unwrap_or_else(|| Known::new(Lsn(0), ""))
    }

    pub(super) fn segment_after(&self, position: Lsn) -> Result<Lsn> {
        let next = self.wal.shape.segment_number(position).saturating_add(1);
        let at = next.checked_mul(u64::from(self.wal.shape.segment_bytes));
        at.map(Lsn).ok_or_else(|| Error::Cure {
            place: "pg_wal".into(),
            why: format!("no segment comes after {position}"),
        })
    }
}
