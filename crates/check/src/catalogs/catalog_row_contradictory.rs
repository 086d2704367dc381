//! A row of `pg_class` or `pg_attribute` that says what no server writes.

use pgclinic_cluster::inventory::Inventory;
use pgclinic_cluster::{Contradiction, DatabaseContext, file_place};
use pgclinic_format::Fork;
use pgclinic_model::Rule;
use pgclinic_model::document::{FileKind, Level, Place};

use crate::check::DatabaseCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static CATALOG_ROW_CONTRADICTORY: Rule =
    Rule::from_page(include_str!("../../rules/catalog-row-contradictory.md"));

/// See [`CATALOG_ROW_CONTRADICTORY`].
pub struct CatalogRowContradictory;

impl DatabaseCheck for CatalogRowContradictory {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&CATALOG_ROW_CONTRADICTORY] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
        // Each database describes the shared relations, too.
        if database.catalog.database == 0 {
            return;
        }
        for own in &database.catalog.contradictions {
            let message = format!("the row of {} in {}: {}", own.name, own.catalog, own.what);
            let draft = Draft::new(&CATALOG_ROW_CONTRADICTORY, message)
                .fact("relation", own.relation)
                .fact("catalog", own.catalog);
            out.add(draft.place(place_of(database, own)));
        }
    }
}

/// The file of the relation; that of one without files is the database's directory.
fn place_of(database: &DatabaseContext<'_>, own: &Contradiction) -> Place {
    let inventory = Inventory::new(database);
    let catalog = database.catalog;
    let relation = catalog.relations.get(&own.relation);
    let files = relation.and_then(|relation| inventory.fork(relation, Fork::Main));
    if let Some(files) = files {
        return inventory.place_of(files, 0);
    }
    let homes = &database.cluster.homes;
    let home = homes.iter().find(|home| home.database == catalog.database);
    Place {
        database: catalog.database_name.clone(),
        database_oid: Some(catalog.database),
        relation: Some(own.name.clone()),
        ..file_place(home.map_or("", |home| home.folder.as_str()), FileKind::File)
    }
}
