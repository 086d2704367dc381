//! What is known before pages are read: WAL, `pg_database`, and how far numbers may be believed.

use pgclinic_cluster::wal::WalCounters;
use pgclinic_cluster::{Cluster, Database};
use pgclinic_format::control_file::Checkpoint;
use pgclinic_format::{ControlFile, Lsn, MultiXactId, Oid, StatusLog, Xid};

use super::asked::Asked;
use super::oldest_numbers::{oldest_multi, oldest_xid};
use super::page_counters::Bounds;
use super::status_ends::Ends;
use crate::error::{Error, Result};

/// What the record of a checkpoint takes at most, with the head of a page within it.
const CHECKPOINT_RECORD_MAX: u64 = 256;

/// Transactions after what is known to be used that are still believed: those of a page of pg_xact.
const XIDS_AHEAD: u32 = 1 << 20;
/// Multixacts, likewise.
const MULTIS_AHEAD: u32 = 1 << 17;
/// Bytes of WAL after the last one known up to which an LSN is believed without proof.
const BYTES_AHEAD: u64 = 1 << 40;

/// A value and where it comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Known<T> {
    pub(super) value: T,
    pub(super) why: String,
}

impl<T> Known<T> {
    pub(super) fn new(value: T, why: impl Into<String>) -> Self {
        let why = why.into();
        Known { value, why }
    }
}

/// What is known before pages are read.
pub(super) struct Ground<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) wal: WalCounters,
    pub(super) oldest_xid: Known<Xid>,
    pub(super) oldest_xid_database: Oid,
    pub(super) oldest_multi: Known<MultiXactId>,
    pub(super) oldest_multi_database: Oid,
}

impl<'a> Ground<'a> {
    /// Reads WAL and `pg_database`.
    pub(super) fn read(cluster: &'a Cluster) -> Result<Self> {
        let wal = cluster.wal_counters().ok_or_else(|| Error::Cure {
            place: "pg_wal".into(),
            why: "the sizes in the control file are none that WAL can have".into(),
        })?;
        let (oldest_xid, oldest_xid_database) = oldest_xid(cluster, &wal);
        let (oldest_multi, oldest_multi_database) = oldest_multi(cluster, &wal);
        Ok(Ground {
            cluster,
            wal,
            oldest_xid,
            oldest_xid_database,
            oldest_multi,
            oldest_multi_database,
        })
    }

    /// Something says how old transactions of rows may be.
    pub(super) fn knows_oldest(&self) -> bool {
        let databases = self.cluster.databases.values();
        let is_dated = |own: &Database| own.name.is_some() && own.frozen_xid.is_some();
        self.last_checkpoint().is_some() || databases.into_iter().any(is_dated)
    }

    pub(super) fn control(&self) -> Option<&'a ControlFile> {
        self.cluster.control.trusted()
    }

    /// The last checkpoint that is known.
    pub(super) fn last_checkpoint(&self) -> Option<&Checkpoint> {
        let by_control = self.control().map(|control| &control.checkpoint);
        let by_wal = self.wal.checkpoint.as_ref().map(|(_, own)| own);
        match (by_control, by_wal) {
            (Some(control), Some(wal)) if wal.redo > control.redo => Some(wal),
            (control, wal) => control.or(wal),
        }
    }

    pub(super) fn is_control_last(&self) -> bool {
        let own = self.control().map(|control| control.checkpoint.redo);
        let by_wal = self.wal.checkpoint.as_ref().map(|(_, own)| own.redo);
        own >= by_wal && !self.has_records_after_control()
    }

    /// Records follow the checkpoint that the control file names: it is an older one.
    fn has_records_after_control(&self) -> bool {
        let checkpoint = self.control().map(|control| control.checkpoint_lsn.0);
        let ends = checkpoint.zip(self.wal.end);
        ends.is_some_and(|(at, end)| end.0 > at.saturating_add(CHECKPOINT_RECORD_MAX))
    }

    pub(super) fn ends(&self, log: StatusLog, oldest: u32) -> Option<Ends<'a>> {
        Ends::of(self.cluster, log, oldest)
    }

    /// How far pages may be believed, and of which transactions the status is lost.
    pub(super) fn bounds(&self) -> Bounds {
        let (xid, multi) = (self.oldest_xid.value, self.oldest_multi.value);
        let known = |next: Option<u32>, oldest: u32| next.map(|next| next.wrapping_sub(oldest));
        let by_wal = known(self.wal.next_xid.map(|xid| xid.0), xid.0);
        let checkpoint = self.last_checkpoint();
        let by_checkpoint = known(checkpoint.map(|own| own.next_xid().0), xid.0);
        let xact = self.ends(StatusLog::Xact, xid.0);
        let reach = xact.as_ref().and_then(Ends::reach);
        let far = |known: &[Option<u32>], ahead: u32| {
            let farthest = known.iter().flatten().max();
            farthest.map_or(u32::MAX / 2, |farthest| farthest.saturating_add(ahead))
        };
        let xids_max = far(&[reach, by_wal, by_checkpoint], XIDS_AHEAD).min(u32::MAX / 2);
        let offsets = self.ends(StatusLog::MultiOffsets, multi.0);
        let multis_max = far(
            &[
                offsets.as_ref().and_then(Ends::reach),
                known(checkpoint.map(|own| own.next_multi.0), multi.0),
                known(self.wal.next_multi.map(|(own, _)| own.0), multi.0),
            ],
            MULTIS_AHEAD,
        );
        let asked = xact.map_or_else(Vec::new, |xact| xact.missing(xids_max));
        let end = self.wal.end.map(|end| end.0);
        let end = end.max(self.control().map(|control| control.checkpoint_lsn.0));
        Bounds {
            oldest_xid: xid,
            xids_max,
            oldest_multi: multi,
            multis_max: multis_max.min(u32::MAX / 2),
            lsn_max: Lsn(end.unwrap_or(0).saturating_add(BYTES_AHEAD)),
            redo: checkpoint.map(|own| own.redo),
            asked: Asked::of(asked),
        }
    }
}
