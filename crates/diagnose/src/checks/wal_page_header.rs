//! A page of WAL does not belong where it stands.

use pgclinic_cluster::Cluster;
use pgclinic_cluster::wal::StartKind;
use pgclinic_format::Lsn;
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};
use crate::wal_breaks::{Teller, in_recovery, place_of};

/// The rule.
pub static WAL_PAGE_HEADER: Rule = Rule {
    name: "wal-page-header",
    severity: Severity::Damage,
    summary: "a page of the WAL has a header of another place, cluster or version",
    explain: "\
Every page of the write-ahead log begins with the number of its version, its own position, its timeline and \
flags; the first page of a segment also with the cluster's system identifier and the sizes of segments and \
pages. In WAL that was written completely, a page contradicts its place, or the file has not the length of a \
segment.

The server stops reading there: `invalid magic number`, `unexpected pageaddr`, `WAL file is from different \
database system`, `invalid info bits`. If that is before the checkpoint record, it does not start; \
if later, recovery ends early and committed transactions are lost. Segments behind the end of the WAL are \
old ones under new names, and are not meant.

Causes: files of another cluster or another time copied into `pg_wal`, a write to the wrong place, zeroed \
or lost blocks of a disk, a torn copy.

Put the segment back from the archive or a standby. If it is older than the redo point (a warning), this \
cluster does not need it; take a new base backup for standbys and archives that waited for it.",
};

/// See [`WAL_PAGE_HEADER`]; the heads of segments, and what recovery meets.
pub struct WalPageHeader;

impl ClusterCheck for WalPageHeader {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&WAL_PAGE_HEADER] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let (Some(recovery), Some(survey)) = (cluster.recovery(), cluster.wal_survey()) else {
            return;
        };
        let shape = &recovery.shape;
        let first = shape.segment_number(recovery.start.redo);
        if !survey.heads.is_empty() && cluster.wal_has_grown() {
            return;
        }
        for head in &survey.heads {
            let Some(at) = head.number.checked_mul(u64::from(shape.segment_bytes)) else {
                continue;
            };
            let message = match head.fault {
                Some(fault) => format!("the segment begins with a page that carries {fault}"),
                None => format!(
                    "the segment has {} bytes, not {}",
                    head.len, shape.segment_bytes
                ),
            };
            let draft = Draft::new(&WAL_PAGE_HEADER, message).place(place_of(recovery, Lsn(at)));
            let needed = head.number >= first
                && matches!(recovery.start.kind, StartKind::Settled | StartKind::Crash);
            out.add(match needed {
                true => draft,
                false => draft.severity(Severity::Warning),
            });
        }
        if let Some(found) = in_recovery(cluster).filter(|found| found.teller() == Teller::Page) {
            let at_head = shape.segment_of(found.end.at) == found.end.at;
            if !at_head || survey.heads.is_empty() {
                out.add(found.draft(&WAL_PAGE_HEADER, recovery));
            }
        }
    }
}
