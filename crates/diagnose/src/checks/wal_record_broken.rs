//! The chain of WAL records breaks.

use pgclinic_cluster::Cluster;
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};

use crate::check::ClusterCheck;
use crate::findings::Findings;
use crate::wal_breaks::{Teller, in_recovery};

/// The rule.
pub static WAL_RECORD_BROKEN: Rule = Rule {
    name: "wal-record-broken",
    severity: Severity::Damage,
    summary: "the chain of WAL records breaks before its end",
    explain: "\
Each record of the write-ahead log tells its length and where the one before begins, and goes on behind the \
header of the next page when it does not fit. In WAL that was written completely, this chain breaks: a \
length is impossible, a record does not point back to the one before, a page does not go on with the record \
of the page before it, or the parts of a record do not add up. (Behind the last record of a crashed cluster \
this is normal, and is not meant.)

The server says `invalid record length`, `record with incorrect prev-link`, `there is no contrecord flag` or \
`invalid contrecord length` and takes this place for the end of the WAL. In recovery everything that comes \
after it is lost; a standby or an archive recovery stops.

Causes: a lost or misplaced write, zeroed blocks, parts of an older segment of the same name, two servers \
that wrote into one data directory.

Put the segment back from the archive or a standby, whose copy is whole. It is damage where recovery of this \
cluster needs the record. It is a warning where the record is older than the redo point, because only \
standbys and archives may still wait for it (take a new base backup for them), and where sound WAL \
lies behind the place at which recovery of a crashed cluster ends.",
};

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
        let found = in_recovery(cluster).filter(|found| found.teller() == Teller::Record);
        if let (Some(found), Some(recovery)) = (found, cluster.recovery()) {
            out.add(found.draft(&WAL_RECORD_BROKEN, recovery));
        }
    }
}
