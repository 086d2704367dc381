//! What a database's catalogs ask for, held against the files that are there.

use std::collections::HashMap;

use pgclinic_format::oid::DEFAULT_TABLESPACE;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{Fork, Oid, RelationMap};
use pgclinic_model::document::Place;
use pgclinic_source::Presence;

use crate::cluster::Cluster;
use crate::comparison::Comparison;
use crate::context::{DatabaseContext, ForkContext};
use crate::files::{DatabaseDirectory, ForkFiles};
use crate::places::fork_place;
use crate::relation::{Persistence, Relation};

/// Recovery removes or copies the folder of this database: what lies there now proves nothing.
pub fn is_remade(cluster: &Cluster, database: Oid) -> bool {
    let recovered = cluster.recovered();
    recovered.is_some_and(|after| after.remade_databases.contains(&database))
}

/// The folder with a database's catalogs, or `global` for 0. Before recovery, `pg_database` may
/// still have the tablespace from before `ALTER DATABASE … SET TABLESPACE`, where nothing is left.
pub fn default_home(cluster: &Cluster, database: Oid) -> Option<&DatabaseDirectory> {
    let known = cluster.databases.get(&database);
    let tablespace = known.map(|known| known.tablespace);
    let own = cluster.homes.iter();
    let own = own.filter(|home| home.database == database);
    let named = own
        .clone()
        .find(|home| database == 0 || Some(home.tablespace) == tablespace);
    let may_have_moved = database != 0 && cluster.needs_recovery();
    if !may_have_moved || named.is_some_and(|home| has_catalogs(cluster, home)) {
        return named;
    }
    let mut moved = own.filter(|home| has_catalogs(cluster, home));
    let only = moved.next().filter(|_| moved.next().is_none());
    only.or(named)
}

/// Files that only the directory in the database's own tablespace has.
const OF_CATALOGS: [&str; 2] = ["PG_VERSION", "pg_filenode.map"];

/// It has one of them, or a file with a number from initdb. A directory that cannot be reached may
/// hold all of it.
fn has_catalogs(cluster: &Cluster, home: &DatabaseDirectory) -> bool {
    let source = cluster.source().as_ref();
    let is_of_initdb = |name: &str| {
        name.parse()
            .is_ok_and(|number: Oid| number < FIRST_NORMAL_OID)
    };
    match source.list(&home.folder) {
        Ok(entries) => entries
            .iter()
            .any(|entry| OF_CATALOGS.contains(&entry.name.as_str()) || is_of_initdb(&entry.name)),
        Err(error) => !error.is_absent(),
    }
}

/// The folder with the database's catalogs, or `global`, if anything of it is left.
pub fn filled_home<'a>(cx: &DatabaseContext<'a>) -> Option<&'a DatabaseDirectory> {
    let source = cx.cluster.source();
    let holds = |home: &DatabaseDirectory| {
        // A directory that cannot be reached may hold all of it.
        let may_be_there = |name: &str| {
            let path = format!("{}/{name}", home.folder);
            !Presence::of_file(source.as_ref(), &path).is_missing()
        };
        cx.forks.iter().any(|files| files.home == *home)
            || OF_CATALOGS.into_iter().any(may_be_there)
    };
    default_home(cx.cluster, cx.catalog.database).filter(|home| holds(home))
}

/// The directory in which a database has its files of a tablespace, whether or not it is there.
pub fn directory_of(cluster: &Cluster, database: Oid, tablespace: Oid) -> String {
    let layout = cluster.layout;
    match (database, tablespace) {
        (0, _) => "global".into(),
        (_, DEFAULT_TABLESPACE) => format!("base/{database}"),
        _ => format!(
            "pg_tblspc/{tablespace}/PG_{}_{}/{database}",
            layout.major, layout.catalog_version
        ),
    }
}

/// A database's forks by the relations they belong to.
pub struct Inventory<'a> {
    cx: &'a DatabaseContext<'a>,
    forks: HashMap<(Oid, Oid, Fork), &'a ForkFiles>,
}

impl<'a> Inventory<'a> {
    /// All forks but those of temporary relations.
    pub fn new(cx: &'a DatabaseContext<'a>) -> Self {
        let forks = cx.forks.iter().filter(|files| files.temporary.is_none());
        let key =
            |files: &'a ForkFiles| ((files.home.tablespace, files.filenode, files.fork), files);
        Inventory {
            cx,
            forks: forks.map(key).collect(),
        }
    }

    /// The same, if files and catalogs must agree and the catalogs can be trusted to name every
    /// relation; otherwise a missing or nameless file proves nothing.
    pub fn comparable(cx: &'a DatabaseContext<'a>) -> Option<Self> {
        let remade = is_remade(cx.cluster, cx.catalog.database);
        (cx.cluster.may_compare(Comparison::FilesWithCatalogs) && catalogs_are_sure(cx) && !remade)
            .then(|| Inventory::new(cx))
    }

    /// The same, and where recovery is due or a server runs those forks alone to which no record
    /// since the last checkpoint leads.
    pub fn comparable_at_rest(cx: &'a DatabaseContext<'a>) -> Option<Self> {
        let at_rest = || {
            let is_known = cx.cluster.may_compare(Comparison::PagesThatWalLeftAlone);
            let forks = Inventory::new(cx).forks;
            (is_known && catalogs_are_sure(cx)).then(|| Inventory {
                cx,
                forks: forks
                    .into_iter()
                    .filter(|(_, files)| ForkContext::new(cx, files).rests())
                    .collect(),
            })
        };
        Inventory::comparable(cx).or_else(at_rest)
    }

    /// Every relation that has files of its own for as long as it lives.
    pub fn relations(&self) -> impl Iterator<Item = &'a Relation> {
        let all = self.cx.catalog.relations.values();
        all.filter(|relation| {
            relation.kind.has_storage()
                && relation.filenode != 0
                && relation.persistence != Persistence::Temporary
                // Such an extension may keep its bytes elsewhere.
                && relation.unknown_storage().is_none()
        })
    }

    /// The folder that holds a relation's files, if it is there.
    pub fn home(&self, relation: &Relation) -> Option<&'a DatabaseDirectory> {
        let database = self.cx.catalog.database;
        let mut homes = self.cx.cluster.homes.iter();
        homes.find(|home| home.tablespace == relation.tablespace && home.database == database)
    }

    /// A fork of a relation.
    pub fn fork(&self, relation: &Relation, fork: Fork) -> Option<&'a ForkFiles> {
        self.forks
            .get(&(relation.tablespace, relation.filenode, fork))
            .copied()
    }

    /// Where a fork of a relation is or should be.
    pub fn place(&self, relation: &Relation, home: &DatabaseDirectory, fork: Fork) -> Place {
        self.place_of(&self.files(relation, home, fork), 0)
    }

    /// The names of a fork's files, whether or not they are there.
    pub fn files(&self, relation: &Relation, home: &DatabaseDirectory, fork: Fork) -> ForkFiles {
        ForkFiles {
            home: home.clone(),
            filenode: relation.filenode,
            fork,
            temporary: None,
            segments: Vec::new(),
        }
    }

    /// Where a segment is.
    pub fn place_of(&self, files: &ForkFiles, segment: u32) -> Place {
        fork_place(
            self.cx.catalog.database_name.as_deref(),
            self.relation(files),
            files,
            segment,
        )
    }

    /// The relation a fork belongs to.
    pub fn relation(&self, files: &ForkFiles) -> Option<&'a Relation> {
        self.cx
            .catalog
            .by_file(files.home.tablespace, files.filenode)
    }
}

/// The server will never look at a fork that sure catalogs do not name.
pub fn is_orphan(cx: &DatabaseContext<'_>, files: &ForkFiles) -> bool {
    let named = cx
        .catalog
        .by_file(files.home.tablespace, files.filenode)
        .is_some();
    !named && files.temporary.is_none() && catalogs_are_sure(cx)
}

/// `pg_class` was read whole, under a relation map that is right.
pub fn catalogs_are_sure(cx: &DatabaseContext<'_>) -> bool {
    let catalog = cx.catalog;
    let invalid = cx
        .cluster
        .databases
        .get(&catalog.database)
        .is_some_and(|database| database.invalid);
    let map = default_home(cx.cluster, catalog.database).map(|home| cx.cluster.relation_map(home));
    let mapped = map.is_some_and(|map| map.is_ok_and(|map| RelationMap::is_right(&map)));
    catalog.names_are_complete() && !invalid && mapped
}
