//! Databases that `pg_database` names and of which no file is left.

use pgclinic_cluster::{Catalog, Cluster, Comparison, Database, RelationFileName};
use pgclinic_format::Oid;
use pgclinic_format::oid::DEFAULT_TABLESPACE;
use pgclinic_model::document::{LostDatabase, NotChecked, SalvageReport};
use pgclinic_source::{Entry, SourceErrorKind};

use super::plan::not_salvaged;
use crate::shape::database_name;

/// What became of a database's directory.
pub(super) enum DirectoryState {
    /// It has files, or nobody says that it must.
    There,
    /// It is gone with everything in it.
    Lost(LostDatabase),
    /// Nothing tells whether it must be there, or what is in it.
    Unknown(NotChecked),
}

impl DirectoryState {
    /// Of a database. While a server runs, what one look misses may be on its way.
    pub(super) fn of(cluster: &Cluster, oid: Oid) -> Self {
        let named = cluster.databases.get(&oid);
        let compared = cluster.may_compare(Comparison::DatabasesWithDirectories);
        let named = named.filter(|database| !database.invalid && compared);
        let Some((database, name)) = named.and_then(|own| Some((own, own.name.as_ref()?))) else {
            return DirectoryState::There;
        };
        let directory = directory_of(cluster, database);
        let state = match cluster.source().list(&directory) {
            Ok(entries) if entries.iter().any(is_of_database) => return DirectoryState::There,
            Ok(_) => "empty",
            Err(error) if error.kind == SourceErrorKind::NotFound => "missing",
            Err(error) => {
                let what = format!("database {name}");
                return DirectoryState::Unknown(not_salvaged(&what, &error.to_string()));
            }
        };
        match open_question(cluster, oid) {
            Some(question) => {
                let why = format!("its directory {directory} is {state}, and {question}");
                DirectoryState::Unknown(not_salvaged(&format!("database {name}"), &why))
            }
            None => DirectoryState::Lost(LostDatabase {
                database: name.clone(),
                oid,
                why: format!(
                    "pg_database names it, and its directory {directory} is {state}: everything in it is lost"
                ),
                directory,
            }),
        }
    }
}

impl DirectoryState {
    /// Says what is not there.
    pub(super) fn add_to(self, account: &mut SalvageReport) {
        match self {
            DirectoryState::There => {}
            DirectoryState::Lost(lost) => account.lost_databases.push(lost),
            DirectoryState::Unknown(gap) => account.not_salvaged.push(gap),
        }
    }
}

/// A directory that no row of `pg_database` names. An interrupted CREATE or DROP DATABASE leaves
/// one behind; where no directory has a name, the rows themselves are lost, with the encoding, the
/// owner and the settings of every database.
pub(super) fn unnamed(cluster: &Cluster, oid: Oid) -> Option<NotChecked> {
    let own = cluster.databases.get(&oid)?;
    // What was taken out of a cluster without its shared catalogs never had names.
    let has_shared_catalogs = cluster.homes.iter().any(|home| home.database == 0);
    if own.name.is_some() || !has_shared_catalogs {
        return None;
    }
    let mut others = cluster.databases.values();
    let what = format!("the directory of database {oid}");
    if cluster
        .homes_lost_by_wal()
        .iter()
        .any(|home| home.database == oid)
    {
        let why = "no row of pg_database names it, and WAL has rows that committed transactions wrote to it: its row is lost, with the name, the encoding, the owner and the settings of the database; its tables are written under its number";
        return Some(not_salvaged(&what, why));
    }
    if others.any(|database| database.name.is_some()) {
        let why = "no row of pg_database names it: its tables are written under its number";
        return Some(NotChecked {
            inherent: true,
            ..not_salvaged(&what, why)
        });
    }
    let why = "pg_database has no row that can be read, and no index of it names one: the name, the encoding, the owner and the settings of the database are lost; its tables are written under its number";
    Some(not_salvaged(&what, why))
}

/// The catalogs of a database are there, were read, and hold nothing.
pub(super) fn lost_catalogs(cluster: &Cluster, catalog: &Catalog) -> Option<LostDatabase> {
    let own = cluster.databases.get(&catalog.database)?;
    let directory = directory_of(cluster, own);
    let may_come = cluster.is_partial() || cluster.needs_recovery() || cluster.is_running();
    let troubles = cluster.unreadable();
    let mut troubles = troubles.iter();
    if may_come || troubles.any(|own| own.what.starts_with(&directory)) {
        return None;
    }
    Some(LostDatabase {
        database: database_name(catalog),
        oid: own.oid,
        directory,
        why: "no row of pg_class can be read, and its file was: names and columns of the tables are lost".into(),
    })
}

/// What recovery may still do about it.
fn open_question(cluster: &Cluster, oid: Oid) -> Option<&'static str> {
    match cluster.recovered() {
        Some(after) if after.remade_databases.contains(&oid) => {
            Some("recovery copies or removes it, which is not done in memory")
        }
        None if cluster.needs_recovery() => {
            Some("WAL that could not be applied may make or remove it")
        }
        _ => None,
    }
}

fn is_of_database(entry: &Entry) -> bool {
    let small = ["PG_VERSION", "pg_filenode.map"];
    small.contains(&entry.name.as_str()) || RelationFileName::parse(&entry.name).is_some()
}

fn directory_of(cluster: &Cluster, database: &Database) -> String {
    let (layout, oid) = (cluster.layout, database.oid);
    match database.tablespace {
        DEFAULT_TABLESPACE => format!("base/{oid}"),
        other => format!(
            "pg_tblspc/{other}/PG_{}_{}/{oid}",
            layout.major, layout.catalog_version
        ),
    }
}

/// No file is left of a database, which the account then says.
pub(super) fn is_gone(cluster: &Cluster, database: Oid, account: &mut SalvageReport) -> bool {
    match DirectoryState::of(cluster, database) {
        DirectoryState::There => {
            account.not_salvaged.extend(unnamed(cluster, database));
            false
        }
        absent => {
            absent.add_to(account);
            true
        }
    }
}
