//! A prepared transaction of which only WAL knows any more.

use std::collections::BTreeSet;

use pgclinic_cluster::{Cluster, Comparison, file_place};
use pgclinic_format::two_phase;
use pgclinic_model::Rule;
use pgclinic_model::document::{FileKind, Level};
use pgclinic_source::Presence;

use crate::check::ClusterCheck;
use crate::files::prepared_transaction_file::PREPARED_TRANSACTION_FILE;
use crate::files::small_files::prepared;
use crate::findings::{Draft, Findings};

/// Tells `prepared-transaction-file` of files that are missing. When it shuts down, the server
/// writes the files of all transactions that are prepared then (`CheckPointTwoPhase` in
/// `src/backend/access/transam/twophase.c`).
pub struct LostPreparedTransaction;

impl ClusterCheck for LostPreparedTransaction {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[] }
    }

    fn borrows(&self) -> &'static [&'static Rule] {
        const { &[&PREPARED_TRANSACTION_FILE] }
    }

    fn level(&self) -> Level {
        Level::Full
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        if !cluster.may_compare(Comparison::FilesWithCatalogs) {
            return;
        }
        let waiting = cluster.older_wal().map(|older| &older.prepared);
        let Some(waiting) = waiting.filter(|waiting| !waiting.is_empty()) else {
            return;
        };
        let directory = Presence::of_directory(cluster.source().as_ref(), "pg_twophase");
        if directory.trouble().is_some() {
            return;
        }
        let there = prepared(cluster).into_iter().map(|(_, xid)| xid.0);
        let there: BTreeSet<u32> = there.collect();
        for xid in waiting.difference(&there) {
            let message = format!(
                "the file of prepared transaction {xid} is missing: WAL has its PREPARE TRANSACTION, and no end of it"
            );
            let name = two_phase::name_of_xid(full_xid(cluster, *xid), cluster.layout.major);
            let path = format!("pg_twophase/{name}");
            let draft = Draft::new(&PREPARED_TRANSACTION_FILE, message).fact("transaction", *xid);
            out.add(draft.place(file_place(path, FileKind::File)));
        }
    }
}

/// With the epoch: it is older than the next one.
fn full_xid(cluster: &Cluster, xid: u32) -> u64 {
    let control = cluster.control.trusted();
    let next = control.map_or(0, |control| control.checkpoint.next_full_xid);
    let low = u32::try_from(next & u64::from(u32::MAX)).unwrap_or(0);
    next.saturating_sub(u64::from(low.wrapping_sub(xid)))
}
