//! A visibility map that VACUUM wrote and that is gone: a witness that cannot be asked.
//!
//! Its marks prove that blocks held rows. Without it, and without an index that names every row,
//! `pg_class` alone raises the question, and nothing here settles it.

use pgclinic_cluster::{ForkFiles, Persistence};
use pgclinic_format::Fork;
use pgclinic_source::Presence;

use crate::findings::Findings;
use crate::relation_check::RelationCx;

/// From this major on statistics are restored beside rows that have no map yet
/// (`pg_restore_relation_stats`).
const STATISTICS_RESTORED: u16 = 18;

/// `pg_class` counts all-visible pages of a table that lies at rest, and the map is missing.
pub(crate) fn is_lost(relation: &RelationCx<'_>) -> bool {
    let fork = relation.fork;
    let counted = fork
        .relation
        .is_some_and(|own| own.relallvisible > 0 && own.persistence == Persistence::Permanent);
    // A selection of forks may leave the map out.
    let is_missing = || {
        let map = ForkFiles {
            fork: Fork::Vm,
            ..fork.files.clone()
        };
        Presence::of_file(relation.source, &map.path(0)).is_missing()
    };
    let major = fork.cluster.map_or(0, |cluster| cluster.layout.major);
    let may_be_restored = major >= STATISTICS_RESTORED;
    counted && !may_be_restored && !fork.replay_is_due() && is_missing()
}

/// Tells what would settle it.
pub(crate) fn leave_open(relation: &RelationCx<'_>, what: &str, why: &str, out: &mut Findings) {
    let own = relation.fork.relation;
    let counted = own.map_or(0, |own| own.relallvisible);
    let why = format!(
        "{why}; by pg_class its visibility map marked {counted} pages, the map is missing, and no index names every row: a backup or a standby shows what stood there"
    );
    relation.not_checked(out, what, &why, false);
}
