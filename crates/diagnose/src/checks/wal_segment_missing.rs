//! A segment of WAL that recovery needs is not there.

use pgclinic_cluster::Cluster;
use pgclinic_cluster::wal::{CheckpointState, StartKind};
use pgclinic_format::Lsn;
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};

use crate::check::ClusterCheck;
use crate::checks::checkpoint_record_missing::server_words;
use crate::findings::{Draft, Findings};
use crate::wal_breaks::{Teller, in_recovery, place_of};

/// The rule.
pub static WAL_SEGMENT_MISSING: Rule = Rule {
    name: "wal-segment-missing",
    severity: Severity::Damage,
    summary: "a WAL segment that is needed is not in pg_wal",
    explain: "\
Between the redo point and the last checkpoint, every segment of the write-ahead log has to lie in \
`pg_wal`: the server begins there when it starts, even after a shutdown in good order, when it only reads \
the checkpoint record. One of these files is missing.

The server does not start: `could not locate a valid checkpoint record`, or `could not find redo location \
referenced by checkpoint record`. In a cluster that crashed, changes that were committed are only in the WAL, \
and without it tables and indexes contradict each other.

Nearly always somebody removed files from `pg_wal` to win space. Other causes are a copy or backup without \
WAL, a file system check, and a `restore_command` or archive script that moves files away.

Look for the file in the archive, on a standby, in a backup, in the trash of the file system, and put it back \
with its owner and mode. For a base backup or a standby this is a note only: `restore_command` or the primary \
is expected to give the WAL. If it is gone for good, restore a backup; `pg_resetwal` makes the server \
start on a copy, but the data must then be dumped and is not consistent.",
};

/// See [`WAL_SEGMENT_MISSING`]; what recovery needs.
pub struct WalSegmentMissing;

impl ClusterCheck for WalSegmentMissing {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&WAL_SEGMENT_MISSING] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let (Some(recovery), Some(survey)) = (cluster.recovery(), cluster.wal_survey()) else {
            return;
        };
        let kind = recovery.start.kind;
        let elsewhere = matches!(kind, StartKind::Backup | StartKind::Archive);
        for number in &survey.missing {
            let shape = &recovery.shape;
            let Some(at) = number.checked_mul(u64::from(shape.segment_bytes)) else {
                continue;
            };
            let mut place = place_of(recovery, Lsn(at));
            place.bytes = None;
            let (redo, checkpoint) = (recovery.start.redo, recovery.start.checkpoint);
            let message = format!(
                "the segment is missing; recovery begins at {redo}, and the checkpoint is at {checkpoint}"
            );
            let draft = Draft::new(&WAL_SEGMENT_MISSING, message).place(place);
            let draft = draft.fact("redo", redo.to_string());
            out.add(match (elsewhere, &survey.checkpoint) {
                (true, _) => draft.severity(Severity::Note),
                (_, CheckpointState::NoSegment) => draft.server_says(server_words(cluster)),
                _ => draft,
            });
        }
        let told = in_recovery(cluster).filter(|_| survey.missing.is_empty());
        if let Some(found) = told.filter(|found| found.teller() == Teller::Segment) {
            out.add(found.draft(&WAL_SEGMENT_MISSING, recovery));
        }
    }
}
