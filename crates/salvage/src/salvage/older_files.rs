//! What WAL from before the last checkpoint says of a database beside its tables: its catalogs are
//! older than that, or files are missing which no catalog names.

use pgclinic_cluster::{Catalog, Cluster};
use pgclinic_format::Oid;
use pgclinic_format::oid::{PG_ATTRIBUTE, PG_CLASS};
use pgclinic_model::document::NotChecked;
use pgclinic_model::{plural, verb_of};

use super::options::SalvageOptions;
use super::plan::not_salvaged;
use crate::shape::MainForks;

/// Tables of which nothing else knows.
pub(super) fn gaps(
    cluster: &Cluster,
    (catalog, files): (&Catalog, &MainForks),
    options: &SalvageOptions,
) -> Vec<NotChecked> {
    let older = [PG_CLASS, PG_ATTRIBUTE].into_iter();
    let older = older.filter_map(|oid| older_catalog(cluster, (catalog, files), oid));
    let mut gaps: Vec<NotChecked> = older.collect();
    if options.selection.relations.is_empty() {
        gaps.extend(missing_files(cluster, catalog));
    }
    gaps
}

fn older_catalog(
    cluster: &Cluster,
    (catalog, files): (&Catalog, &MainForks),
    oid: Oid,
) -> Option<NotChecked> {
    let own = files.of(catalog, catalog.relations.get(&oid)?);
    let outdated = cluster.outdated_blocks(&own).len();
    let (pages, are) = (plural(outdated, "page"), verb_of(outdated, "are"));
    let why = format!(
        "{pages} of it {are} older than WAL: an older copy stands there, and tables that were made or changed since are not known"
    );
    (outdated > 0).then(|| not_salvaged(&format!("catalog {}", own.path(0)), &why))
}

fn missing_files(cluster: &Cluster, catalog: &Catalog) -> Vec<NotChecked> {
    let why = "it is missing and no catalog names it, and WAL has rows that committed transactions wrote to it: they are lost";
    let missing = cluster.files_missing_by_wal(catalog).into_iter();
    let told = missing.map(|files| not_salvaged(&format!("the file {}", files.path(0)), why));
    told.collect()
}
