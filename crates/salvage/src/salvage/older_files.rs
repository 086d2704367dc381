//! What WAL from before the last checkpoint says of a database beside its tables: its catalogs are
//! older than that, or files are missing which no catalog names.

use pgclinic_cluster::{Catalog, Cluster};
use pgclinic_format::Fork;
use pgclinic_format::oid::{PG_ATTRIBUTE, PG_CLASS};
use pgclinic_model::document::NotChecked;
use pgclinic_model::plural;
use pgclinic_source::Presence;

use super::options::SalvageOptions;
use super::plan::not_salvaged;

/// Tables of which nothing else knows.
pub(super) fn gaps(
    cluster: &Cluster,
    catalog: &Catalog,
    options: &SalvageOptions,
) -> Vec<NotChecked> {
    let mut gaps: Vec<NotChecked> = [PG_CLASS, PG_ATTRIBUTE]
        .into_iter()
        .filter_map(|oid| older_catalog(cluster, catalog, oid))
        .collect();
    if options.selection.relations.is_empty() {
        gaps.extend(missing_files(cluster, catalog));
    }
    gaps
}

fn older_catalog(cluster: &Cluster, catalog: &Catalog, oid: u32) -> Option<NotChecked> {
    let relation = catalog.relations.get(&oid)?;
    let mut homes = cluster.homes.iter();
    let home = homes
        .find(|home| home.database == catalog.database && home.tablespace == relation.tablespace)?;
    let files = cluster.fork_files(home, relation.filenode, Fork::Main);
    let outdated = cluster.outdated_blocks(&files).len() as u64;
    let pages = plural(outdated, "page");
    let why = format!(
        "{pages} of it are older than WAL: an older copy stands there, and tables that were made or changed since are not known"
    );
    (outdated > 0).then(|| not_salvaged(&format!("catalog {}", files.path(0)), &why))
}

/// Files to which committed transactions wrote rows, and that nothing has removed.
fn missing_files(cluster: &Cluster, catalog: &Catalog) -> Vec<NotChecked> {
    let logged = cluster.files_with_logged_rows(catalog.database);
    let unknown = logged
        .into_iter()
        .filter(|file| catalog.by_file(file.tablespace, file.filenode).is_none());
    let missing = unknown.filter_map(|file| {
        let mut homes = cluster.homes.iter();
        let home = homes
            .find(|home| home.database == file.database && home.tablespace == file.tablespace)?;
        let path = cluster
            .fork_files(home, file.filenode, Fork::Main)
            .path(0);
        let is_missing = Presence::of_file(cluster.source().as_ref(), &path).is_missing();
        let why = "it is missing and no catalog names it, and WAL has rows that committed transactions wrote to it: they are lost";
        is_missing.then(|| not_salvaged(&format!("the file {path}"), why))
    });
    missing.collect()
}
