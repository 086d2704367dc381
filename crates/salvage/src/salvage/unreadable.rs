//! Whatever was asked for on the way and could not be reached: nothing is whole before it is
//! reported, nothing of it is lost, and what would settle it is said.

use pgclinic_cluster::{Cluster, ReadGap};
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_model::document::{SalvageReport, TableAccount};
use pgclinic_model::plural;

use super::plan::not_salvaged;
use crate::shape::database_name;

/// How the system words it.
const DENIED: &str = "permission denied";

/// At the end of a run: the tables that it puts in doubt, and the paths.
pub(super) fn tell(cluster: &Cluster, account: &mut SalvageReport) {
    let troubles = cluster.unreadable();
    for trouble in &troubles {
        doubt_tables(cluster, &trouble.what, &mut account.tables);
        let mut known = account.not_salvaged.iter();
        if !known.any(|gap| gap.what == trouble.what && !gap.inherent) {
            let gap = not_salvaged(&trouble.what, &trouble.why);
            account.not_salvaged.push(gap);
        }
    }
    tell_denied(&troubles, account);
}

/// What is missing of a table may follow from what could not be read.
fn doubt_tables(cluster: &Cluster, path: &str, tables: &mut [TableAccount]) {
    let database = if decides_on_rows(path) {
        None
    } else if let Some(database) = database_of_catalog(cluster, path) {
        Some(database)
    } else {
        return;
    };
    let is_of = |table: &&mut TableAccount| {
        database.is_none() || database.as_deref() == Some(table.database.as_str())
    };
    let doubtful = tables.iter_mut().filter(is_of);
    let doubtful = doubtful.filter(|table| !table.is_whole());
    doubtful.for_each(|table| table.out_of_reach = true);
}

/// Which rows count, or which file is which catalog, stands there: without it a row may be in doubt
/// that is whole.
fn decides_on_rows(path: &str) -> bool {
    path.starts_with("pg_xact")
        || path.starts_with("pg_multixact")
        || path.ends_with("pg_filenode.map")
}

/// The database of which the file holds a catalog: columns and types may be unknown without it.
fn database_of_catalog(cluster: &Cluster, path: &str) -> Option<String> {
    let (folder, name) = path.rsplit_once('/')?;
    let home = cluster.homes.iter().find(|home| home.folder == folder)?;
    let end = name.find(|letter: char| !letter.is_ascii_digit());
    let number: u32 = name.get(..end.unwrap_or(name.len()))?.parse().ok()?;
    let catalog = cluster.catalog(home.database);
    let relation = catalog.by_file(home.tablespace, number);
    let oid = relation.map_or(number, |relation| relation.oid);
    (oid < FIRST_NORMAL_OID).then(|| database_name(&catalog))
}

/// How what permissions keep from this run is read.
fn tell_denied(troubles: &[ReadGap], account: &mut SalvageReport) {
    let denied = troubles.iter().filter(|own| own.why.contains(DENIED));
    let denied: Vec<&ReadGap> = denied.collect();
    let Some(first) = denied.first() else {
        return;
    };
    let what = format!(
        "what this user may not read, {} such as {}",
        plural(denied.len(), "path"),
        first.what
    );
    let why = "nothing of it is known to be lost: run pgclinic as the owner of the data directory (sudo -u postgres pgclinic …), or give the right to read it (chmod u+r, of a directory u+rx)";
    // It comes first: it settles what stands below.
    account.not_salvaged.insert(0, not_salvaged(&what, why));
}
