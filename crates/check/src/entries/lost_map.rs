//! The visibility map of a table that `pg_class` knows and that is gone: a witness that cannot be
//! asked.

use crate::findings::Findings;
use crate::relation_check::RelationCx;
use pgclinic_model::plural;

/// The table lies at rest, and its map is gone.
pub(crate) fn is_lost(relation: &RelationCx<'_>) -> bool {
    let fork = relation.fork;
    let known = fork.cluster.zip(fork.relation);
    known.is_some_and(|(cluster, own)| cluster.has_lost_map(own, fork.files))
}

/// Tells what would settle it.
pub(crate) fn leave_open(relation: &RelationCx<'_>, what: &str, why: &str, out: &mut Findings) {
    let own = relation.fork.relation;
    let counted = own.map_or(0, |own| own.relallvisible);
    let why = format!(
        "{why}; by pg_class its visibility map marked {counted}, the map is missing, and no index names every row: a backup or a standby shows what stood there",
        counted = plural(counted, "page")
    );
    relation.not_checked(out, what, &why, false);
}
