//! What is wrong with files that are no relations, without a pass over pages: for a look before and
//! after something is done about them.

use pgclinic_cluster::{Cluster, file_place};
use pgclinic_model::document::{FileKind, Finding, Level};

use crate::check::ClusterCheck;
use crate::consequences::complete_file;
use crate::findings::Findings;
use crate::walker::system_identifier;
use crate::{slru, wal};

/// Of the files of `pg_xact`, `pg_multixact` and `pg_commit_ts`.
pub fn check_status_files(cluster: &Cluster) -> Vec<Finding> {
    findings(cluster, slru::CLUSTER_CHECKS)
}

/// Of the WAL that the server reads when it starts.
pub fn check_wal_files(cluster: &Cluster) -> Vec<Finding> {
    findings(cluster, wal::CLUSTER_CHECKS)
}

fn findings(cluster: &Cluster, checks: &[&dyn ClusterCheck]) -> Vec<Finding> {
    let mut out = Findings::default();
    let own = checks
        .iter()
        .filter(|check| check.level() <= Level::Structure);
    own.for_each(|check| check.check(cluster, &mut out));
    let nowhere = file_place("", FileKind::File);
    let finished = out.take_drafts().into_iter().map(|mut draft| {
        complete_file(&mut draft);
        draft.finish(&nowhere, system_identifier(cluster))
    });
    finished.collect()
}
