//! A cluster of which a part is known not to be there, as of an archive that was cut.
//!
//! What its files say of each other is not asked (`is_settled`, `may_disagree`). What is left are rules of single files that
//! also speak where the file is missing or ends too early.

use pgclinic_cluster::Cluster;

use crate::consequences::leave_to_the_whole;
use crate::document::NotChecked;
use crate::findings::Draft;
use crate::walker::books::Books;

/// Rules of files that a cut can fire. Those of a manifest are not among them: it says what must be there.
const OF_MISSING_BYTES: [&str; 14] = [
    "control-file-unreadable",
    "relation-map-unreadable",
    "version-file",
    "partial-block",
    "status-file-missing",
    "status-file-cut",
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
    if cluster.is_partial && OF_MISSING_BYTES.contains(&draft.rule.name) {
        leave_to_the_whole(draft);
    }
}

/// Tells what is not looked at.
pub(super) fn tell(cluster: &Cluster, books: &mut Books) {
    if cluster.is_partial {
        books.not_checked(NotChecked {
            what: "pages, maps, catalogs, status files and relation files against each other"
                .into(),
            why: "not all of the files are there: what is missed may be in the part that is not"
                .into(),
            inherent: false,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::OF_MISSING_BYTES;
    use crate::checks::rule_named;

    #[test]
    fn the_rules_are_there() {
        for name in OF_MISSING_BYTES {
            assert!(rule_named(name).is_some(), "{name}");
        }
    }
}
