//! Which parts of a cluster a selection takes: what it says of names and numbers, asked of what
//! bears them.

use std::collections::BTreeSet;

use pgclinic_format::Oid;
use pgclinic_model::Selection;
use pgclinic_model::document::{NotChecked, Place};

use crate::{Catalog, Cluster, ForkFiles, Relation};

/// The database, or 0 for the shared relations, is asked for.
pub fn database(selection: &Selection, cluster: &Cluster, oid: Oid) -> bool {
    let database = cluster.databases.get(&oid);
    selection.takes_database(oid, database.and_then(|database| database.name.as_deref()))
}

/// Databases that are asked for, with 0 for the shared relations before them: what an interrupted
/// `CREATE DATABASE` left only where it is named.
pub fn databases(selection: &Selection, cluster: &Cluster) -> Vec<Oid> {
    let left = left_behind(selection, cluster);
    let all = std::iter::once(0).chain(cluster.databases.keys().copied());
    let asked = all.filter(|oid| database(selection, cluster, *oid));
    asked.filter(|oid| !left.contains(oid)).collect()
}

/// What an interrupted `CREATE DATABASE` left, or is in the making while files pass, and nobody
/// asked for by its number.
pub fn left_behind(selection: &Selection, cluster: &Cluster) -> BTreeSet<Oid> {
    if selection.databases.is_empty() {
        cluster.leftover_databases() | &cluster.made_or_dropped()
    } else {
        BTreeSet::new()
    }
}

/// Says of such directories that they are passed over: nothing can be lost in them.
pub fn passed_over(cluster: &Cluster, left: &BTreeSet<Oid>) -> Vec<NotChecked> {
    let passing = cluster.made_or_dropped();
    let gap = |oid: &Oid| {
        let mut homes = cluster.homes.iter();
        let home = homes.find(|home| home.database == *oid);
        let directory = home.map_or_else(|| oid.to_string(), |home| home.folder.clone());
        if passing.contains(oid) {
            return NotChecked {
                what: format!("database {oid}"),
                why: "it was made or dropped while the server sent its files".into(),
                inherent: true,
            };
        }
        let why = format!(
            "an interrupted CREATE DATABASE left it: neither pg_database nor its indexes name it, and all relations of users in it stand in another database. No server opens it; --database {oid} reads it"
        );
        NotChecked {
            what: format!("the directory {directory}"),
            why,
            inherent: true,
        }
    };
    left.iter().map(gap).collect()
}

/// The fork is asked for.
pub fn fork(selection: &Selection, files: &ForkFiles, relation: Option<&Relation>) -> bool {
    let names = relation.map(|relation| (relation.schema.as_str(), relation.name.as_str()));
    selection.takes_fork(files.filenode, files.fork, names)
}

/// The fork is asked for, by itself or as an index or the TOAST relation of a table that is.
pub fn dependent(selection: &Selection, files: &ForkFiles, catalog: &Catalog) -> bool {
    let own = catalog.by_file(files.home.tablespace, files.filenode);
    with_owners(own, catalog).any(|relation| fork(selection, files, relation))
}

/// A place without a page is asked for, by itself or as part of a table that is.
pub fn dependent_place(selection: &Selection, place: &Place, catalog: &Catalog) -> bool {
    let own = place
        .relation_oid
        .and_then(|oid| catalog.relations.get(&oid));
    let owners = with_owners(own, catalog).flatten();
    let of_owner = |owner: &Relation| Place {
        schema: Some(owner.schema.clone()),
        relation: Some(owner.name.clone()),
        ..place.clone()
    };
    let mut of_owners = owners.map(of_owner);
    selection.takes_place(place) || of_owners.any(|place| selection.takes_place(&place))
}

/// Steps from an index of a TOAST relation to its table.
const OWNERS_MAX: usize = 2;

/// The relation, the table it belongs to, and the table that one belongs to.
fn with_owners<'a>(
    own: Option<&'a Relation>,
    catalog: &'a Catalog,
) -> impl Iterator<Item = Option<&'a Relation>> {
    let owner = |relation: &Relation| match &relation.index {
        Some(index) => catalog.relations.get(&index.table),
        None => catalog.relations.get(&relation.toast_of),
    };
    let owners = std::iter::successors(own, move |relation| owner(relation));
    std::iter::once(own).chain(owners.skip(1).take(OWNERS_MAX).map(Some))
}
