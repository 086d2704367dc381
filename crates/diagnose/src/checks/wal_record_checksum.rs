//! A record of the WAL does not fit its checksum.

use pgclinic_cluster::Cluster;
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};

use crate::check::ClusterCheck;
use crate::findings::Findings;
use crate::wal_breaks::{Teller, in_recovery};

/// The rule.
pub static WAL_RECORD_CHECKSUM: Rule = Rule {
    name: "wal-record-checksum",
    severity: Severity::Damage,
    summary: "a WAL record does not fit its checksum",
    explain: "\
Every record of the write-ahead log carries a checksum over all its bytes, with or without data checksums in \
the tables. In WAL that was written completely, one does not fit: some of the bytes are not what the \
server wrote. (Behind the last record of a crashed cluster this is normal, and is not meant.)

The server says `incorrect resource manager data checksum in record at …` and takes this place for the end \
of the WAL. In recovery everything that comes after it is lost; a standby or an archive recovery stops.

Causes: a flipped bit in memory or on disk, a lost or misplaced write, a copy of the file that was torn.

Put the segment back from the archive or a standby, whose copy is whole. It is damage where recovery of this \
cluster needs the record. It is a warning where the record is older than the redo point, because only \
standbys and archives may still wait for it (take a new base backup for them), and where sound WAL \
lies behind the place at which recovery of a crashed cluster ends.",
};

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
        let found = in_recovery(cluster).filter(|found| found.teller() == Teller::Checksum);
        if let (Some(found), Some(recovery)) = (found, cluster.recovery()) {
            out.add(found.draft(&WAL_RECORD_CHECKSUM, recovery));
        }
    }
}
