//! The state of a replication slot that the server will not read.

use pgclinic_cluster::{Cluster, file_place};
use pgclinic_format::replication::{ReplicationFault, SLOT_HEADER_BYTES, slot_fault};
use pgclinic_model::Rule;
use pgclinic_model::document::{FileKind, Level, NotChecked};
use pgclinic_source::{SourceErrorKind, read_all};

use crate::check::ClusterCheck;
use crate::files::small_files::slots;
use crate::findings::{Draft, Findings};

/// No version has more than a few hundred bytes.
const STATE_BYTES_MAX: u64 = 64 << 10;

/// The rule.
pub static REPLICATION_SLOT_FILE: Rule =
    Rule::from_page(include_str!("../../rules/replication-slot-file.md"));

/// See [`REPLICATION_SLOT_FILE`].
pub struct ReplicationSlotFile;

impl ClusterCheck for ReplicationSlotFile {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&REPLICATION_SLOT_FILE] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        for path in slots(cluster) {
            let (message, words) = match read_all(cluster.source().as_ref(), &path, STATE_BYTES_MAX)
            {
                Ok(bytes) => match slot_fault(&bytes) {
                    Some(fault) => told(fault, &path),
                    None => continue,
                },
                Err(error) if error.kind == SourceErrorKind::NotFound => {
                    let words =
                        format!("could not open file \"{path}\": No such file or directory");
                    ("the slot has no state".into(), Some(words))
                }
                Err(error) => {
                    out.not_checked(NotChecked {
                        what: path,
                        why: error.to_string(),
                        inherent: false,
                    });
                    continue;
                }
            };
            let draft = Draft::new(&REPLICATION_SLOT_FILE, message).rows(0);
            let draft = draft.place(file_place(path, FileKind::File));
            out.add(match words {
                Some(words) => draft.server_says(format!("PANIC:  {words}")),
                None => draft,
            });
        }
    }
}

fn told(fault: ReplicationFault, path: &str) -> (String, Option<String>) {
    let file = format!("replication slot file \"{path}\"");
    match fault {
        ReplicationFault::Size { bytes } => {
            let words =
                format!("could not read file \"{path}\": read {bytes} of {SLOT_HEADER_BYTES}");
            (
                format!("the slot's state has only {bytes} bytes"),
                (bytes < SLOT_HEADER_BYTES).then_some(words),
            )
        }
        ReplicationFault::Magic { found, expected } => (
            format!("the slot's magic word is {found:#010x}"),
            Some(format!(
                "{file} has wrong magic number: {found} instead of {expected}"
            )),
        ),
        ReplicationFault::Version { found } => (
            format!("the slot's version {found} is unknown"),
            Some(format!("{file} has unsupported version {found}")),
        ),
        ReplicationFault::Checksum { stored, computed } => (
            format!(
                "stored checksum {stored:#010x} of the slot does not match computed checksum {computed:#010x}"
            ),
            Some(format!(
                "checksum mismatch for {file}: is {computed}, should be {stored}"
            )),
        ),
    }
}
