//! The progress of replication origins that the server will not read.

use pgclinic_cluster::{Cluster, file_place};
use pgclinic_format::replication::{ReplicationFault, origin_fault};
use pgclinic_model::document::{Kind, Level, NotChecked};
use pgclinic_model::{Rule, Severity};
use pgclinic_source::{SourceErrorKind, read_all};

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};
use crate::small_files::ORIGINS;

/// 16 bytes for each of 65,535 origins, and more.
const ORIGINS_BYTES_MAX: u64 = 2 << 20;

/// The rule.
pub static REPLICATION_ORIGIN_FILE: Rule = Rule {
    name: "replication-origin-file",
    severity: Severity::Damage,
    summary: "the progress of replication origins is damaged",
    explain: "\
`pg_logical/replorigin_checkpoint` keeps how far each subscription has applied the changes of its publisher, \
with a magic word and a checksum. Every checkpoint writes it anew, also when there is no subscription. It is cut, \
or one of the two is wrong.

The server does not start; it ends with a `PANIC`: `replication checkpoint has wrong magic …`, `replication slot \
checkpoint has wrong checksum …` or `could not read file …`.

Usual causes: a torn or lost write, a disk that was full, an edit by hand.

No rows are at risk. Copy the data directory. If the cluster has no subscriptions (`pg_replication_origin_status` \
was empty), move the file away: the server starts without it. If it has some, take the file from a backup of the \
same moment; without it each subscription begins again where its slot on the publisher stands, and may apply \
changes twice.",
};

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
        let draft = draft.place(file_place(ORIGINS, Kind::File));
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
            format!("the file carries checksum {stored:#010x}, its bytes ask for {computed:#010x}"),
            Some(format!(
                "replication slot checkpoint has wrong checksum {computed}, expected {stored}"
            )),
        ),
        ReplicationFault::Version { found } => (format!("version {found} is unknown"), None),
    }
}
