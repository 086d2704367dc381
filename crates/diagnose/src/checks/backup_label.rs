//! `backup_label` cannot be read.

use pgclinic_cluster::wal::LabelState;
use pgclinic_cluster::{Cluster, file_place};
use pgclinic_model::document::{Kind, Level, NotChecked};
use pgclinic_model::{Rule, Severity};

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static BACKUP_LABEL: Rule = Rule {
    name: "backup-label",
    severity: Severity::Damage,
    summary: "backup_label cannot be read, or contradicts the name of its first segment",
    explain: "\
A base backup holds the file `backup_label`, which says at which position of the WAL its recovery has to begin. \
The server reads the first two lines strictly. Here they are not as the server writes them, or the position \
does not lie in the segment that is named beside it.

The server does not start: `invalid data in file \"backup_label\"`. Never remove the file to make it start: \
recovery would then begin at a later checkpoint, and the cluster would come up with changes missing and with \
tables and indexes that contradict each other.

Causes: the file was edited, written with other line ends, or cut; it belongs to another backup.

Take the file from the same backup again. Its words are also what `pg_backup_stop()` gave back when the backup \
ended, and stand in the backup history file `….backup` in the archive.",
};

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
        let draft = draft.place(file_place("backup_label", Kind::File));
        out.add(match refused {
            true => draft.server_says("FATAL:  invalid data in file \"backup_label\""),
            false => draft,
        });
    }
}
