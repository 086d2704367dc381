//! `backup_label` cannot be read.

use pgclinic_cluster::wal::LabelState;
use pgclinic_cluster::{Cluster, file_place};
use pgclinic_model::Rule;
use pgclinic_model::document::{FileKind, Level, NotChecked};

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static BACKUP_LABEL: Rule = Rule::from_page(include_str!("../../rules/backup-label.md"));

/// See [`BACKUP_LABEL`].
pub struct BackupLabelCheck;

impl ClusterCheck for BackupLabelCheck {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&BACKUP_LABEL] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let Some(recovery) = cluster.recovery() else {
            return;
        };
        let (message, refused) = match &recovery.label {
            LabelState::None => return,
            LabelState::Unreadable(why) => {
                return out.not_checked(NotChecked {
                    what: "backup_label".into(),
                    why: why.clone(),
                    inherent: false,
                });
            }
            LabelState::Wrong(line) => (
                format!("line {line} of backup_label is not as the server writes it"),
                true,
            ),
            LabelState::Read(label) => {
                let number = recovery.shape.segment_number(label.start);
                let named = recovery.shape.parse_name(&label.segment);
                if named.is_some_and(|(_, named)| named == number) {
                    return;
                }
                let (start, segment) = (label.start, &label.segment);
                (
                    format!(
                        "backup_label begins at {start}, which does not lie in segment {segment}"
                    ),
                    false,
                )
            }
        };
        let draft = Draft::new(&BACKUP_LABEL, message);
        let draft = draft.place(file_place("backup_label", FileKind::File));
        out.add(if refused {
            draft.server_says("FATAL:  invalid data in file \"backup_label\"")
        } else {
            draft
        });
    }
}
