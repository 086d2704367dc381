//! The live rows of a database's catalogs, with the shared ones beside its own.

use std::collections::HashMap;

use pgclinic_cluster::Comparison;
use pgclinic_cluster::inventory::catalogs_are_sure;
use pgclinic_cluster::{
    Catalog, Column, DatabaseContext, ForkFiles, HeapScan, RawRow, RelKind, Relation, fork_place,
};
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{BlockNo, Fork, Oid};
use pgclinic_model::Rule;
use pgclinic_model::document::{NotChecked, Origin, Place};

use crate::findings::{Draft, Findings};

/// Rows of catalogs can be held against each other; a catalog that stands in the way is told.
pub(crate) fn catalogs_are_comparable(cx: &DatabaseContext<'_>, out: &mut Findings) -> bool {
    if !cx.cluster.may_compare(Comparison::FilesWithCatalogs) {
        return false;
    }
    let sure = catalogs_are_sure(cx);
    let what = match &cx.catalog.database_name {
        Some(name) => format!("catalogs of database {name} against each other"),
        None => "shared catalogs against each other".into(),
    };
    let databases = &cx.cluster.databases;
    let database = databases.get(&cx.catalog.database);
    let dropped = database.is_some_and(|database| database.invalid);
    if !sure && !dropped {
        let why = "pg_class cannot be read whole";
        out.not_checked(NotChecked {
            what,
            why: why.into(),
            inherent: false,
        });
    }
    sure
}

/// One catalog that can be read.
pub(crate) struct CatalogTable<'a> {
    /// Its row in `pg_class`.
    pub(crate) relation: &'a Relation,
    /// Its columns.
    pub(crate) columns: &'a [Column],
    files: &'a ForkFiles,
}

impl CatalogTable<'_> {
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.relation.name
    }

    /// The index of a column, from 0; some majors do not have it.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// The catalogs of a database: its own to be looked at, and all that these can refer to.
pub(crate) struct CatalogTables<'a> {
    cx: &'a DatabaseContext<'a>,
    tables: HashMap<Oid, CatalogTable<'a>>,
    names: HashMap<&'a str, Oid>,
}

/// The shared relations, held for as long as references into them are looked up.
pub(crate) struct Shared {
    catalog: Catalog,
    forks: Vec<ForkFiles>,
}

impl Shared {
    /// Reads their columns; nothing for `global` itself.
    pub(crate) fn read(cx: &DatabaseContext<'_>) -> Option<Shared> {
        if cx.catalog.database == 0 {
            return None;
        }
        let cluster = cx.cluster;
        let homes = cluster.homes.iter().filter(|home| home.database == 0);
        Some(Shared {
            catalog: cluster.catalog(0),
            forks: homes
                .filter_map(|home| cluster.files(home).ok())
                .flatten()
                .collect(),
        })
    }
}

impl<'a> CatalogTables<'a> {
    /// Of this database.
    pub(crate) fn new(cx: &'a DatabaseContext<'a>, shared: Option<&'a Shared>) -> Self {
        let mut tables = CatalogTables {
            cx,
            tables: HashMap::new(),
            names: HashMap::new(),
        };
        tables.add(cx.catalog, cx.forks);
        if let Some(shared) = shared {
            tables.add(&shared.catalog, &shared.forks);
        }
        tables
    }

    fn add(&mut self, catalog: &'a Catalog, forks: &'a [ForkFiles]) {
        let own = catalog.relations.values().filter(|relation| {
            relation.oid < FIRST_NORMAL_OID
                && relation.kind == RelKind::Table
                && relation.schema == "pg_catalog"
        });
        let files: HashMap<(Oid, Oid), &ForkFiles> = forks
            .iter()
            .filter(|files| files.fork == Fork::Main && files.temporary.is_none())
            .map(|files| ((files.home.tablespace, files.filenode), files))
            .collect();
        for relation in own {
            self.names.insert(&relation.name, relation.oid);
            let files = files.get(&(relation.tablespace, relation.filenode));
            if let (Some(columns), Some(files)) = (relation.columns.as_deref(), files) {
                let table = CatalogTable {
                    relation,
                    columns,
                    files,
                };
                self.tables.insert(relation.oid, table);
            }
        }
    }

    /// Those of the database itself, in order of their OIDs.
    pub(crate) fn own(&self) -> Vec<&CatalogTable<'a>> {
        let shared = self.cx.catalog.database == 0;
        let own = self.tables.values();
        let mut own: Vec<_> = own
            .filter(|table| table.relation.shared == shared)
            .collect();
        own.sort_by_key(|table| table.relation.oid);
        own
    }

    /// By its OID, if it can be read.
    pub(crate) fn table(&self, oid: Oid) -> Option<&CatalogTable<'a>> {
        self.tables.get(&oid)
    }

    /// Whether the database has a catalog with this OID, readable or not.
    pub(crate) fn is_catalog(&self, oid: Oid) -> bool {
        self.names.values().any(|known| *known == oid)
    }

    /// Whether the database has a catalog of this name, readable or not.
    pub(crate) fn oid_of(&self, name: &str) -> Option<Oid> {
        self.names.get(name).copied()
    }

    /// Hands out the live rows. False when some could not be read, so that a row that was not seen
    /// may be there.
    pub(crate) fn each_row(
        &self,
        table: &CatalogTable<'_>,
        mut each: impl FnMut(&RawRow<'_>),
    ) -> bool {
        let layouts = table.relation.layouts.as_deref().unwrap_or_default();
        let mut rows = HeapScan::new(self.cx.cluster, table.files, layouts);
        rows.each_that_may_count(|row| each(&row));
        rows.is_whole()
    }

    /// A draft about a row.
    pub(crate) fn draft(
        &self,
        rule: &'static Rule,
        table: &CatalogTable<'_>,
        (block, item): (BlockNo, u16),
        message: String,
    ) -> Draft {
        let build = self.cx.cluster.build;
        let segment = u64::from(block).checked_div(build.segment_blocks());
        let segment = segment.and_then(|segment| u32::try_from(segment).ok());
        let database = self.cx.catalog.database_name.as_deref();
        let place = Place {
            block: Some(block),
            ..fork_place(
                database,
                Some(table.relation),
                table.files,
                segment.unwrap_or(0),
            )
        };
        let mut draft = Draft::new(rule, message).item(item).place(place);
        draft.links.compared = true;
        draft
    }

    /// Any damage in this catalog would explain the finding.
    pub(crate) fn explained_by(&self, mut draft: Draft, table: Oid) -> Draft {
        if let Some(table) = self.table(table) {
            draft.links.follows.push(Origin {
                database: table.files.home.database,
                filenode: table.files.filenode,
                fork: Fork::Main,
                block: None,
            });
        }
        draft
    }

    /// Tells once what could not be looked at.
    pub(crate) fn not_checked(&self, out: &mut Findings, what: &str, why: &str) {
        let database = match &self.cx.catalog.database_name {
            Some(name) => format!("of database {name}"),
            None => "of the shared catalogs".into(),
        };
        out.not_checked(NotChecked {
            what: format!("{what} {database}"),
            why: why.into(),
            inherent: false,
        });
    }
}
