//! The progress of replication origins that the server will not read.

use pgclinic_cluster::{Cluster, file_place};
use pgclinic_format::replication::{ReplicationFault, origin_fault};
use pgclinic_model::Rule;
use pgclinic_model::document::{FileKind, Level, NotChecked};
use pgclinic_source::{SourceErrorKind, read_all};

use crate::check::ClusterCheck;
use crate::files::small_files::ORIGINS;
use crate::findings::{Draft, Findings};

/// 16 bytes for each of 65,535 origins, and more.
const ORIGINS_BYTES_MAX: u64 = 2 << 20;

/// The rule.
pub static REPLICATION_ORIGIN_FILE: Rule =
    Rule::from_page(include_str!("../../rules/replication-origin-file.md"));

/// See [`REPLICATION_ORIGIN_FILE`].
pub struct ReplicationOriginFile;

impl ClusterCheck for ReplicationOriginFile {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&REPLICATION_ORIGIN_FILE] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let bytes = match read_all(cluster.source().as_ref(), ORIGINS, ORIGINS_BYTES_MAX) {
            Ok(bytes) => bytes,
            // A server without slots writes none.
            Err(error) if error.kind == SourceErrorKind::NotFound => return,
            Err(error) => {
                return out.not_checked(NotChecked {
                    what: ORIGINS.into(),
                    why: error.to_string(),
                    inherent: false,
                });
            }
        };
        let Some(fault) = origin_fault(&bytes) else {
            return;
        };
        let (message, words) = told(fault);
        let draft = Draft::new(&REPLICATION_ORIGIN_FILE, message).rows(0);
        let draft = draft.place(file_place(ORIGINS, FileKind::File));
        out.add(match words {
            Some(words) => draft.server_says(format!("PANIC:  {words}")),
            None => draft,
        });
    }
}

fn told(fault: ReplicationFault) -> (String, Option<String>) {
    match fault {
        ReplicationFault::Size { bytes } => (
            format!("{bytes} bytes are no number of whole origins with magic word and checksum"),
            None,
        ),
        ReplicationFault::Magic { found, expected } => (
            format!("the magic word is {found:#010x}"),
            Some(format!(
                "replication checkpoint has wrong magic {found} instead of {expected}"
            )),
        ),
        ReplicationFault::Checksum { stored, computed } => (
            format!(
                "stored checksum {stored:#010x} of the file does not match computed checksum {computed:#010x}"
            ),
            Some(format!(
                "replication slot checkpoint has wrong checksum {computed}, expected {stored}"
            )),
        ),
        ReplicationFault::Version { found } => (format!("version {found} is unknown"), None),
    }
}
