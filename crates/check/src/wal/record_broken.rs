//! The chain of WAL records breaks.

use pgclinic_cluster::Cluster;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::ClusterCheck;
use crate::findings::Findings;
use crate::wal::breaks::{WalRule, in_recovery};

/// The rule.
pub static WAL_RECORD_BROKEN: Rule =
    Rule::from_page(include_str!("../../rules/wal-record-broken.md"));

/// See [`WAL_RECORD_BROKEN`]; what recovery meets.
pub struct WalRecordBroken;

impl ClusterCheck for WalRecordBroken {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&WAL_RECORD_BROKEN] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let found = in_recovery(cluster).filter(|found| found.teller() == WalRule::Record);
        if let (Some(found), Some(recovery)) = (found, cluster.recovery()) {
            out.add(found.draft(&WAL_RECORD_BROKEN, recovery));
        }
    }
}
