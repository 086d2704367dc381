//! Roles and schemas whose rows are lost, as the indexes of `pg_authid` and `pg_namespace` name
//! them. Only those that something else needs are taken: entries of dropped ones stay in an index.

use std::collections::BTreeMap;

use pgclinic_cluster::{Catalog, Cluster};
use pgclinic_format::Oid;
use pgclinic_format::oid::PG_NAMESPACE;
use pgclinic_model::{plural, verb_of};

use super::Catalogs;
use super::rebuilt_rows::Values;
use super::siblings::Gap;

impl Catalogs<'_> {
    /// Puts them among the rows of the catalogs that lost some.
    pub(super) fn add_rebuilt_names(&mut self, cluster: &Cluster, shared: &Catalog, gaps: &[Gap]) {
        let has_gap = |name: &str| gaps.iter().any(|gap| gap.name == name);
        if has_gap("pg_authid") {
            let roles = cluster.roles_by_indexes(shared);
            self.add_names("pg_authid", roles, |_, oid, name| {
                vec![("oid", oid.to_le_bytes().into()), ("rolname", name)]
            });
        }
        if has_gap("pg_namespace") {
            let mut schemas = cluster.schemas_by_indexes(self.catalog);
            schemas.retain(|oid, _| self.has_something_in(*oid));
            self.add_names("pg_namespace", schemas, |catalogs, oid, name| {
                let owner = catalogs.owner_of(PG_NAMESPACE, oid);
                vec![
                    ("oid", oid.to_le_bytes().into()),
                    ("nspname", name),
                    ("nspowner", owner.to_le_bytes().into()),
                ]
            });
        }
    }

    fn add_names(
        &mut self,
        catalog: &'static str,
        names: BTreeMap<Oid, String>,
        values: impl Fn(&Self, Oid, Vec<u8>) -> Values,
    ) {
        let lost = names
            .into_iter()
            .filter(|(oid, _)| self.row(catalog, *oid).is_none());
        let rows = lost.filter_map(|(oid, name)| Some(values(self, oid, self.words.bytes(&name)?)));
        let rows: Vec<Values> = rows.collect();
        self.add_rows(catalog, &rows);
        if !rows.is_empty() {
            self.troubles.push(format!(
                "{catalog}: {rows} {are} put together from its indexes: all but the names is lost",
                rows = plural(rows.len(), "row"),
                are = verb_of(rows.len(), "are"),
            ));
        }
    }

    fn has_something_in(&self, schema: Oid) -> bool {
        let places = [
            ("pg_class", "relnamespace"),
            ("pg_type", "typnamespace"),
            ("pg_proc", "pronamespace"),
        ];
        places.into_iter().any(|(catalog, column)| {
            let mut rows = self.table(catalog).iter();
            rows.any(|row| row.oid(column) == schema)
        })
    }
}
