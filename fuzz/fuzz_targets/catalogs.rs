//! Any rows in the catalogs: they are read, and types and orders of keys put together from them,
//! however they refer to each other.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use pgclinic_cluster::{Catalog, Cluster, Relation};
use pgclinic_fuzz::{Choice, DATABASE, Files};

fuzz_target!(|bytes: &[u8]| {
    let mut files = Files::new();
    let mut choice = Choice(bytes);
    while files.any_row(&mut choice).is_some() {}
    let cluster = Cluster::open(Arc::new(files.cluster())).expect("a cluster");
    let catalog = cluster.catalog(DATABASE);
    assert!(!catalog.is_blind(), "pg_class was made whole");
    for relation in catalog.relations.values() {
        look(relation, &catalog);
    }
});

fn look(relation: &Relation, catalog: &Catalog) {
    let _ = (relation.page_method(), relation.sql_name());
    assert!(!relation.qualified_name().is_empty());
    let columns = relation.columns.as_deref().unwrap_or_default();
    let layouts = relation.layouts.as_deref().unwrap_or_default();
    assert_eq!(columns.len(), layouts.len());
    for (number, column) in columns.iter().enumerate() {
        let ty = catalog.type_info(column.type_oid);
        if let Some(index) = &relation.index {
            let _ = catalog
                .key_order(index, number, &ty)
                .map(|order| order.is_ok());
            let _ = catalog
                .key_equality(index, number, &ty)
                .map(|order| order.is_ok());
        }
    }
    if let Some(index) = &relation.index {
        let _ = index.is_equal_image(|oid| Some(catalog.collation(oid)?.deterministic));
    }
}
