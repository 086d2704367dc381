//! A cluster of which a part is known not to be there, as of an archive that was cut.
//!
//! What its files say of each other is not asked (`Cluster::may_compare`). What is left are rules
//! of single files that also speak where the file is missing or ends too early.

use pgclinic_cluster::{Cluster, ReadGap};
use pgclinic_model::document::{CheckDocument, NotChecked, Target};
use pgclinic_source::{EntryKind, Source};

use crate::consequences::leave_to_the_whole;
use crate::findings::Draft;
use crate::walker::run_ledger::RunLedger;
use crate::walker::{CheckOptions, document};

/// Folders of what is left that are counted.
const FOLDERS_MAX: usize = 1_000_000;

/// Rules of files that a cut can fire. Those of a manifest are not among them: it says what must be
/// there.
const OF_MISSING_BYTES: [&str; 14] = [
    "control-file-unreadable",
    "relation-map-unreadable",
    "version-file",
    "partial-block",
    "slru-file-missing",
    "slru-file-truncated",
    "prepared-transaction-file",
    "replication-slot-file",
    "replication-origin-file",
    "wal-segment-missing",
    "wal-page-header",
    "wal-record-broken",
    "checkpoint-record-missing",
    "timeline-history",
];

/// Makes a note of what the missing part explains.
pub(super) fn forgive(cluster: &Cluster, draft: &mut Draft) {
    if cluster.is_partial() && OF_MISSING_BYTES.contains(&draft.rule.name) {
        leave_to_the_whole(draft);
    }
}

/// Tells what is not looked at.
pub(super) fn tell(cluster: &Cluster, books: &mut RunLedger) {
    if cluster.is_partial() {
        books.not_checked(NotChecked {
            what: "pages, maps, catalogs, SLRU files and relation files against each other".into(),
            why: "not all of the files are there: what is missed may be in the part that is not"
                .into(),
            inherent: false,
        });
    }
}

/// The document of what is left of a backup in archives when nothing in front of the cut tells its
/// major: nothing of it can be looked at.
pub fn account_for_remains(
    source: &dyn Source,
    troubles: &[ReadGap],
    options: &CheckOptions,
) -> CheckDocument {
    let mut books = RunLedger::new();
    books.coverage.bytes_seen = bytes_of(source);
    books.coverage.bytes_skipped = books.coverage.bytes_seen;
    books.troubles(troubles);
    books.not_checked(NotChecked {
        what: "everything that is there".into(),
        why: "nothing in front of the truncation tells the version of PostgreSQL: neither PG_VERSION nor the control file, a database or WAL".into(),
        inherent: false,
    });
    let target = Target {
        spec: options.spec.clone(),
        kind: "tar-backup".into(),
        ..Target::default()
    };
    document::assemble(target, false, options, books)
}

/// Of all files.
fn bytes_of(source: &dyn Source) -> u64 {
    let (mut bytes, mut left, mut seen) = (0u64, vec![String::new()], 0);
    while let Some(folder) = left.pop().filter(|_| seen < FOLDERS_MAX) {
        seen += 1;
        for entry in source.list(&folder).unwrap_or_default() {
            bytes = bytes.saturating_add(entry.len);
            if entry.kind == EntryKind::Folder {
                let slash = if folder.is_empty() { "" } else { "/" };
                left.push(format!("{folder}{slash}{}", entry.name));
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::OF_MISSING_BYTES;
    use crate::register::rule_named;

    #[test]
    fn the_rules_are_there() {
        for name in OF_MISSING_BYTES {
            assert!(rule_named(name).is_some(), "{name}");
        }
    }
}
