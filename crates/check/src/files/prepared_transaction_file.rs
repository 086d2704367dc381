//! The file of a prepared transaction that the server will not read.

use pgclinic_cluster::{Cluster, Comparison, file_place};
use pgclinic_format::two_phase::TwoPhaseFault;
use pgclinic_format::{TwoPhase, Xid};
use pgclinic_model::document::{FileKind, Level, NotChecked};
use pgclinic_model::{Rule, Severity};
use pgclinic_source::{SourceErrorKind, read_all};

use crate::check::ClusterCheck;
use crate::files::small_files::PREPARED_BYTES_MAX;
use crate::findings::{Draft, Findings};

/// The rule.
pub static PREPARED_TRANSACTION_FILE: Rule =
    Rule::from_page(include_str!("../../rules/prepared-transaction-file.md"));

/// See [`PREPARED_TRANSACTION_FILE`].
pub struct PreparedTransactionFile;

impl ClusterCheck for PreparedTransactionFile {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&PREPARED_TRANSACTION_FILE] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        for (path, xid) in cluster.prepared_files() {
            let bytes = match read_all(cluster.source().as_ref(), &path, PREPARED_BYTES_MAX) {
                Ok(bytes) => bytes,
                Err(error) if error.kind == SourceErrorKind::NotFound => continue,
                Err(error) => {
                    out.not_checked(NotChecked {
                        what: path,
                        why: error.to_string(),
                        inherent: false,
                    });
                    continue;
                }
            };
            let Some((message, words)) = fault(&bytes, xid, cluster.layout.major, &path) else {
                continue;
            };
            let settled = cluster.may_compare(Comparison::FilesWithCatalogs);
            let draft = Draft::new(&PREPARED_TRANSACTION_FILE, message)
                .fact("transaction", xid.0)
                .place(file_place(path, FileKind::File));
            // A crash can leave a file half written.
            out.add(if settled {
                draft.server_says(format!("FATAL:  {words}"))
            } else {
                draft.severity(Severity::Note)
            });
        }
    }
}

/// What is wrong, in our words and in the server's.
fn fault(bytes: &[u8], xid: Xid, major: u16, path: &str) -> Option<(String, String)> {
    let file = match TwoPhase::parse(bytes, major) {
        Ok(file) => file,
        Err(fault) => {
            let words = match fault {
                TwoPhaseFault::Size { bytes } => {
                    let unit = if bytes == 1 { "byte" } else { "bytes" };
                    format!("incorrect size of file \"{path}\": {bytes} {unit}")
                }
                TwoPhaseFault::Alignment => {
                    format!("incorrect alignment of CRC offset for file \"{path}\"")
                }
                TwoPhaseFault::Magic { .. } => {
                    format!("invalid magic number stored in file \"{path}\"")
                }
            };
            return Some((
                format!("the file of prepared transaction {xid}: {fault}"),
                words,
            ));
        }
    };
    if usize::try_from(file.total_len) != Ok(bytes.len()) {
        let message = format!(
            "the file of prepared transaction {xid} says that it has {} bytes, it has {}",
            file.total_len,
            bytes.len()
        );
        return Some((message, format!("invalid size stored in file \"{path}\"")));
    }
    if file.crc_stored != file.crc_computed {
        let message = format!(
            "stored checksum {:#010x} of prepared transaction {xid} does not match computed checksum {:#010x}",
            file.crc_stored, file.crc_computed
        );
        let words =
            format!("calculated CRC checksum does not match value stored in file \"{path}\"");
        return Some((message, words));
    }
    (file.xid != xid).then(|| {
        let message = format!("the file of prepared transaction {xid} is of {}", file.xid);
        (
            message,
            format!("corrupted two-phase state file for transaction {xid}"),
        )
    })
}
