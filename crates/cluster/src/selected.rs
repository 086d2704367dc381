//! Which parts of a cluster a selection takes: what it says of names and numbers, asked of what
//! bears them.

use pgclinic_format::Oid;
use pgclinic_model::Selection;
use pgclinic_model::document::Place;

use crate::{Catalog, Cluster, ForkFiles, Relation};

/// The database, or 0 for the shared relations, is asked for.
pub fn database(selection: &Selection, cluster: &Cluster, oid: Oid) -> bool {
    let database = cluster.databases.get(&oid);
    selection.takes_database(oid, database.and_then(|database| database.name.as_deref()))
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
