//! A record of the WAL does not fit its checksum.

use pgclinic_cluster::Cluster;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::ClusterCheck;
use crate::findings::Findings;
use crate::wal::breaks::{WalRule, in_recovery};

/// The rule.
pub static WAL_RECORD_CHECKSUM: Rule =
    Rule::from_page(include_str!("../../rules/wal-record-checksum.md"));

/// See [`WAL_RECORD_CHECKSUM`]; what recovery meets.
pub struct WalRecordChecksum;

impl ClusterCheck for WalRecordChecksum {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&WAL_RECORD_CHECKSUM] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let found = in_recovery(cluster).filter(|found| found.teller() == WalRule::Checksum);
        if let (Some(found), Some(recovery)) = (found, cluster.recovery()) {
            out.add(found.draft(&WAL_RECORD_CHECKSUM, recovery));
        }
    }
}
