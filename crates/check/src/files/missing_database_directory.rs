//! A folder in which a database must have files is not there.

use std::collections::BTreeMap;

use pgclinic_cluster::inventory::{Inventory, default_home, directory_of, filled_home, is_remade};
use pgclinic_cluster::{Comparison, Database, DatabaseContext};
use pgclinic_format::Oid;
use pgclinic_model::Rule;
use pgclinic_model::document::{FileKind, Level, Place};
use pgclinic_model::{plural, verb_of};
use pgclinic_source::Presence;

use crate::check::DatabaseCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static MISSING_DATABASE_DIRECTORY: Rule =
    Rule::from_page(include_str!("../../rules/missing-database-directory.md"));

/// See [`MISSING_DATABASE_DIRECTORY`].
pub struct MissingDatabaseDirectory;

impl DatabaseCheck for MissingDatabaseDirectory {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&MISSING_DATABASE_DIRECTORY] }
    }

    fn level(&self) -> Level {
        Level::Pages
    }

    fn asks_recovered(&self) -> bool {
        true
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
        let cluster = database.cluster;
        if !cluster.may_compare(Comparison::FilesWithCatalogs) {
            return;
        }
        let oid = database.catalog.database;
        let named = cluster
            .databases
            .get(&oid)
            .filter(|known| known.name.is_some() && !known.invalid);
        match named {
            Some(known) if filled_home(database).is_none() => {
                let folder = folder_of(database, known.tablespace);
                if !is_remade(cluster, oid) && !is_out_of_reach(database, &folder) {
                    out.add(lost_database(database, known));
                }
            }
            _ => lost_tablespaces(database, out),
        }
    }
}

fn lost_database(cx: &DatabaseContext<'_>, known: &Database) -> Draft {
    let folder = folder_of(cx, known.tablespace);
    let name = known.name.clone().unwrap_or_default();
    let (state, words) = match default_home(cx.cluster, cx.catalog.database) {
        None => (
            "missing",
            format!("FATAL:  database \"{name}\" does not exist"),
        ),
        Some(_) => (
            "empty",
            format!("FATAL:  \"{folder}\" is not a valid data directory"),
        ),
    };
    let message = format!("the directory of database {name} is {state}");
    let draft = Draft::new(&MISSING_DATABASE_DIRECTORY, message).place(place(cx, folder));
    // Recovery goes first, and may make the folder.
    match cx.cluster.recovered() {
        None => draft.server_says(words),
        Some(_) => draft,
    }
}

fn is_made_by_recovery(cx: &DatabaseContext<'_>, tablespace: Oid) -> bool {
    let recovered = cx.cluster.recovered();
    recovered.is_some_and(|after| after.grown_tablespaces.contains(&tablespace))
}

/// One finding for all relations that share a lost folder.
fn lost_tablespaces(cx: &DatabaseContext<'_>, out: &mut Findings) {
    let Some(inventory) = Inventory::comparable(cx) else {
        return;
    };
    let mut lost: BTreeMap<Oid, u64> = BTreeMap::new();
    for relation in inventory
        .relations()
        .filter(|relation| inventory.home(relation).is_none())
        .filter(|relation| !is_made_by_recovery(cx, relation.tablespace))
    {
        *lost.entry(relation.tablespace).or_default() += 1;
    }
    for (tablespace, relations) in lost {
        if is_out_of_reach(cx, &folder_of(cx, tablespace)) {
            continue;
        }
        let link = format!("pg_tblspc/{tablespace}");
        let trouble = cx
            .cluster
            .troubles
            .iter()
            .find(|trouble| trouble.what.starts_with(&link));
        let why = trouble.map_or_else(
            || "it is missing".into(),
            |trouble| format!("{}: {}", trouble.what, trouble.why),
        );
        let folder = folder_of(cx, tablespace);
        let message = format!(
            "{relations} {have} their files in {folder}: {why}",
            relations = plural(relations, "relation"),
            have = verb_of(relations, "have")
        );
        let draft = Draft::new(&MISSING_DATABASE_DIRECTORY, message).fact("relations", relations);
        out.add(
            draft
                .fact("tablespace", tablespace)
                .place(place(cx, folder)),
        );
    }
}

fn folder_of(cx: &DatabaseContext<'_>, tablespace: Oid) -> String {
    directory_of(cx.cluster, cx.catalog.database, tablespace)
}

/// It is there, or may be: what cannot be reached is told with what was not checked.
fn is_out_of_reach(cx: &DatabaseContext<'_>, folder: &str) -> bool {
    let presence = Presence::of_directory(cx.cluster.source().as_ref(), folder);
    presence.trouble().is_some()
}

fn place(cx: &DatabaseContext<'_>, folder: String) -> Place {
    Place {
        path: folder,
        database: cx.catalog.database_name.clone(),
        database_oid: Some(cx.catalog.database),
        kind: FileKind::File,
        ..Place::default()
    }
}
