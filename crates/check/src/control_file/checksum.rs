//! The checksum of `global/pg_control` is wrong.

use pgclinic_cluster::{Cluster, ControlState, file_place};
use pgclinic_model::Rule;
use pgclinic_model::document::{FileKind, Level};

use crate::check::ClusterCheck;
use crate::control_file::unreadable::CONTROL_FILE;
use crate::findings::{Draft, Findings};

/// The rule.
pub static CONTROL_FILE_CHECKSUM: Rule =
    Rule::from_page(include_str!("../../rules/control-file-checksum.md"));

/// See [`CONTROL_FILE_CHECKSUM`].
pub struct ControlFileChecksum;

impl ClusterCheck for ControlFileChecksum {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&CONTROL_FILE_CHECKSUM] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let ControlState::WrongCrc(control) = &cluster.control else {
            return;
        };
        let (stored, computed) = (control.crc_stored, control.crc_computed);
        let message = format!(
            "stored checksum {stored:#010x} of the control file does not match computed checksum {computed:#010x}"
        );
        let draft =
            Draft::new(&CONTROL_FILE_CHECKSUM, message).bytes(control.crc_at, control.crc_at + 4);
        let draft = draft.fact("stored", stored).fact("computed", computed);
        let draft = draft.server_says("FATAL:  incorrect checksum in control file");
        out.add(draft.place(file_place(CONTROL_FILE, FileKind::ControlFile)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_trial::{ClusterTrial, sound_control_file};

    #[test]
    fn a_flipped_bit_is_enough() {
        let mut bytes = sound_control_file();
        assert!(
            ClusterTrial::with_control_file(Some(bytes.clone()))
                .drafts(&ControlFileChecksum)
                .is_empty()
        );
        bytes[100] ^= 1;
        assert_eq!(
            ClusterTrial::with_control_file(Some(bytes))
                .drafts(&ControlFileChecksum)
                .len(),
            1
        );
    }
}
