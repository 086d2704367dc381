//! The control file names a checkpoint record that is not there.

use pgclinic_cluster::wal::{CheckpointState, StartKind};
use pgclinic_cluster::{Cluster, Comparison};
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};
use crate::wal::breaks::place_of;

/// The rule.
pub static CHECKPOINT_RECORD_MISSING: Rule =
    Rule::from_page(include_str!("../../rules/checkpoint-record-missing.md"));

/// See [`CHECKPOINT_RECORD_MISSING`].
pub struct CheckpointRecordMissing;

/// What the server says when it does not find the record that the control file names.
pub(crate) fn server_words(cluster: &Cluster) -> String {
    let words = "PANIC:  could not locate a valid checkpoint record";
    let checkpoint = cluster
        .control
        .trusted()
        .map(|control| control.checkpoint_lsn);
    match checkpoint {
        Some(lsn) if cluster.layout.major >= 17 => format!("{words} at {lsn}"),
        _ => words.into(),
    }
}

impl ClusterCheck for CheckpointRecordMissing {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&CHECKPOINT_RECORD_MISSING] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let (Some(recovery), Some(survey)) = (cluster.recovery(), cluster.wal_survey()) else {
            return;
        };
        let Some(control) = cluster.control.trusted() else {
            return;
        };
        let start = recovery.start;
        let whose = match start.kind {
            StartKind::Backup => "backup_label",
            _ => "the control file",
        };
        let at = start.checkpoint;
        let (message, found) = match &survey.checkpoint {
            // What is out of reach is told with what was not checked.
            CheckpointState::NoSegment | CheckpointState::Unreadable(_) => return,
            CheckpointState::NoRecord(end) => (
                format!("{end}; {whose} says that a checkpoint stands there"),
                false,
            ),
            CheckpointState::Other { manager, info } => (
                format!(
                    "the record at {at} is no checkpoint (resource manager {manager}, info {info:#04x}), as {whose} says"
                ),
                false,
            ),
            CheckpointState::Found { .. } if start.kind == StartKind::Backup => return,
            CheckpointState::Found { .. } => {
                let Some((field, record, file)) = survey.checkpoint.difference(control) else {
                    return;
                };
                (
                    format!(
                        "the checkpoint record at {at} says {field} {record}, and the control file {file}"
                    ),
                    true,
                )
            }
        };
        if !cluster.may_compare(Comparison::ControlFileWithWal) {
            return;
        }
        let draft = Draft::new(&CHECKPOINT_RECORD_MISSING, message).place(place_of(recovery, at));
        let draft = draft.fact("checkpoint", at.to_string());
        out.add(match (start.kind, found) {
            // The WAL may come from elsewhere, and what lies here be half of a segment.
            (StartKind::Backup | StartKind::Archive, false) => draft.severity(Severity::Warning),
            (_, false) => draft.server_says(server_words(cluster)),
            (_, true) => draft,
        });
    }
}
