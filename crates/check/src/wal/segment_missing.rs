//! A segment of WAL that recovery needs is not there.

use pgclinic_cluster::Cluster;
use pgclinic_cluster::wal::{CheckpointState, StartKind};
use pgclinic_format::Lsn;
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};
use crate::wal::breaks::{WalRule, in_recovery, place_of};
use crate::wal::checkpoint_record_missing::server_words;

/// The rule.
pub static WAL_SEGMENT_MISSING: Rule =
    Rule::from_page(include_str!("../../rules/wal-segment-missing.md"));

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
        if let Some(found) = told.filter(|found| found.teller() == WalRule::Segment) {
            out.add(found.draft(&WAL_SEGMENT_MISSING, recovery));
        }
    }
}
