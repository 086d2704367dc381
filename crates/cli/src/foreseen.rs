//! How much lies ahead of a run, for its progress bar.

use pgclinic_cluster::{Cluster, selected};
use pgclinic_model::{Progress, Selection};

/// Says before the run how many bytes lie ahead of it, so many times those of the files that were
/// asked for; nothing where only catalogs could say which these are, or where listing has a price.
pub(crate) fn tell(cluster: &Cluster, selection: &Selection, times: u64, progress: &dyn Progress) {
    expect(cluster, selection, times, progress);
    progress.foresee();
}

/// The same of one of several clusters.
pub(crate) fn expect(
    cluster: &Cluster,
    selection: &Selection,
    times: u64,
    progress: &dyn Progress,
) {
    let is_blind = !selection.relations.is_empty()
        || selection.blocks.is_some()
        || cluster.source().spec().is_server();
    if is_blind {
        return;
    }
    let homes = cluster.homes.iter();
    let homes = homes.filter(|home| selected::database(selection, cluster, home.database));
    let bytes = homes.map(|home| {
        let files = cluster.files(home).unwrap_or_default();
        let taken = files
            .iter()
            .filter(|files| selected::fork(selection, files, None));
        taken.map(|files| files.bytes()).sum::<u64>()
    });
    progress.expect(bytes.sum::<u64>().saturating_mul(times));
}
