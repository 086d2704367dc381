//! Prepared transactions: their files in `pg_twophase`, and those of which only WAL knows any more.

use std::collections::BTreeSet;

use pgclinic_format::{Xid, two_phase};
use pgclinic_source::Presence;

use crate::{Cluster, Comparison, XactStatus};

const PREPARED: &str = "pg_twophase";
/// No record of WAL is shorter.
const RECORD_BYTES: u64 = 24;

impl Cluster {
    /// The files of prepared transactions, with the transaction in their names.
    pub fn prepared_files(&self) -> Vec<(String, Xid)> {
        let entries = self.source().list(PREPARED).unwrap_or_default();
        // One that is no regular file is there all the same: who reads it learns why it cannot be.
        entries
            .into_iter()
            .filter_map(|entry| {
                let xid = two_phase::xid_of_name(&entry.name, self.layout.major)?;
                Some((format!("{PREPARED}/{}", entry.name), xid))
            })
            .collect()
    }

    /// Where the file of a prepared transaction stands.
    pub fn prepared_path(&self, xid: Xid) -> String {
        let name = two_phase::name_of_xid(self.full_xid(xid), self.layout.major);
        format!("{PREPARED}/{name}")
    }

    /// Prepared transactions whose file is missing. When it shuts down, the server writes the files
    /// of all that are prepared then (`CheckPointTwoPhase` in
    /// `src/backend/access/transam/twophase.c`). The WAL from before is read only where a
    /// transaction of its time was left open.
    pub fn lost_prepared(&self) -> Vec<Xid> {
        let is_settled = self.may_compare(Comparison::FilesWithCatalogs);
        if !is_settled || !self.left_transactions_open() {
            return Vec::new();
        }
        let waiting = self.older_wal().map(|older| &older.prepared);
        let Some(waiting) = waiting.filter(|waiting| !waiting.is_empty()) else {
            return Vec::new();
        };
        if Presence::of_directory(self.source().as_ref(), PREPARED)
            .trouble()
            .is_some()
        {
            return Vec::new();
        }
        let there = self.prepared_files().into_iter().map(|(_, xid)| xid.0);
        let there: BTreeSet<u32> = there.collect();
        waiting.difference(&there).copied().map(Xid).collect()
    }

    /// One of the transactions that WAL before the redo point can tell of neither committed nor
    /// rolled back; unknown counts as open.
    fn left_transactions_open(&self) -> bool {
        let (Some(control), Some(older)) = (self.control.trusted(), self.older_wal_bytes()) else {
            return false;
        };
        let next = control.checkpoint.next_xid();
        let log = self.transactions.reader();
        let numbers = 1..=u32::try_from(older / RECORD_BYTES).unwrap_or(u32::MAX);
        let numbers = numbers.map(|back| Xid(next.0.wrapping_sub(back)));
        let oldest = control.checkpoint.oldest_xid;
        numbers
            .filter(|xid| xid.is_normal())
            .take_while(|xid| !xid.precedes(oldest))
            .any(|xid| {
                !matches!(
                    log.status(xid),
                    Some(XactStatus::Committed | XactStatus::Aborted)
                )
            })
    }

    /// With the epoch: it is older than the next one.
    fn full_xid(&self, xid: Xid) -> u64 {
        let control = self.control.trusted();
        let next = control.map_or(0, |control| control.checkpoint.next_full_xid);
        let low = u32::try_from(next & u64::from(u32::MAX)).unwrap_or(0);
        next.saturating_sub(u64::from(low.wrapping_sub(xid.0)))
    }
}
