//! The state of a replication slot that the server will not read.

use pgclinic_cluster::{Cluster, file_place};
use pgclinic_format::replication::{ReplicationFault, SLOT_HEADER_BYTES, slot_fault};
use pgclinic_model::document::{Kind, Level, NotChecked};
use pgclinic_model::{Rule, Severity};
use pgclinic_source::{SourceErrorKind, read_all};

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};
use crate::small_files::slots;

/// No version has more than a few hundred bytes.
const STATE_BYTES_MAX: u64 = 64 << 10;

/// The rule.
pub static REPLICATION_SLOT_FILE: Rule = Rule {
    name: "replication-slot-file",
    severity: Severity::Damage,
    summary: "the state of a replication slot is damaged",
    explain: "\
`pg_replslot/<name>/state` keeps how far the consumer of a replication slot has come, with a magic word, a \
version and a checksum. It is missing, cut, or one of these is wrong.

The server does not start; it ends with a `PANIC`: `replication slot file … has wrong magic number`, `… has \
unsupported version`, `checksum mismatch for replication slot file …` or `could not read file …`.

Usual causes: a torn or lost write, a disk that was full, a copy of the folder from another cluster or major.

No rows are at risk. Copy the data directory, then move the folder of the slot away: the server starts without \
the slot. Its consumer must be given a new one: a standby goes on from the archive or is built anew, a logical \
subscriber copies its tables again.",
};

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
            let draft = draft.place(file_place(path, Kind::File));
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
            format!("the slot carries checksum {stored:#010x}, its bytes ask for {computed:#010x}"),
            Some(format!(
                "checksum mismatch for {file}: is {computed}, should be {stored}"
            )),
        ),
    }
}
