//! A prepared transaction of which only WAL knows any more.

use pgclinic_cluster::{Cluster, file_place};
use pgclinic_model::Rule;
use pgclinic_model::document::{FileKind, Level};

use crate::check::ClusterCheck;
use crate::files::prepared_transaction_file::PREPARED_TRANSACTION_FILE;
use crate::findings::{Draft, Findings};

/// Tells `prepared-transaction-file` of files that are missing.
pub struct LostPreparedTransaction;

impl ClusterCheck for LostPreparedTransaction {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[] }
    }

    fn borrows(&self) -> &'static [&'static Rule] {
        const { &[&PREPARED_TRANSACTION_FILE] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        for xid in cluster.lost_prepared() {
            let message = format!(
                "the file of prepared transaction {xid} is missing: WAL has its PREPARE TRANSACTION, and no end of it"
            );
            let place = file_place(cluster.prepared_path(xid), FileKind::File);
            let draft = Draft::new(&PREPARED_TRANSACTION_FILE, message);
            out.add(draft.fact("transaction", xid.0).place(place));
        }
    }
}
