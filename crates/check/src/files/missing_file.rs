//! A relation of the catalogs, or one that WAL knows, has no file.

use std::collections::BTreeMap;

use pgclinic_cluster::inventory::Inventory;
use pgclinic_cluster::{Cluster, DatabaseContext, Persistence, Relation, State, file_place};
use pgclinic_format::control_file::State as ControlState;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{Fork, Oid};
use pgclinic_model::Rule;
use pgclinic_model::document::{FileKind, Level};
use pgclinic_source::Presence;

use crate::check::DatabaseCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static MISSING_FILE: Rule = Rule::from_page(include_str!("../../rules/missing-file.md"));

/// See [`MISSING_FILE`].
pub struct MissingFile;

impl DatabaseCheck for MissingFile {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&MISSING_FILE] }
    }

    fn level(&self) -> Level {
        Level::Pages
    }

    fn asks_recovered(&self) -> bool {
        true
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
        report_of_server(database, out);
        let Some(inventory) = Inventory::comparable(database) else {
            return;
        };
        // Each file once, also when damaged catalogs name it twice.
        let mut missing: BTreeMap<(Oid, Oid), &Relation> = BTreeMap::new();
        let recovered = database.cluster.recovered().is_some();
        let has_all = !recovered || has_unlogged_files(database.cluster);
        let kept = |relation: &&Relation| has_all || relation.persistence == Persistence::Permanent;
        for relation in inventory.relations().filter(kept) {
            let main = inventory.fork(relation, Fork::Main);
            let begins = main
                .and_then(|files| files.segments.first())
                .is_some_and(|first| first.number == 0);
            if !begins
                && is_settled(database.cluster, relation)
                && is_absent(database, &inventory, relation)
            {
                missing
                    .entry((relation.tablespace, relation.filenode))
                    .or_insert(relation);
            }
        }
        report_logged(database, &inventory, out);
        for relation in missing.into_values() {
            // Without its folder it is counted by the rule missing-database-directory.
            let Some(home) = inventory.home(relation) else {
                continue;
            };
            let place = inventory.place(relation, home, Fork::Main);
            let message = format!("the file of {} is missing", relation.qualified_name());
            let words = format!(
                "ERROR:  could not open file \"{}\": No such file or directory",
                place.path
            );
            let draft = Draft::new(&MISSING_FILE, message)
                .fact("relpages", relation.relpages)
                .place(place);
            let plain = relation.oid >= FIRST_NORMAL_OID && !recovered;
            out.add(if plain {
                draft.server_says(words)
            } else {
                draft
            });
        }
    }
}

/// Files that did not come with a stream, and that the server which sent it does not have.
fn report_of_server(database: &DatabaseContext<'_>, out: &mut Findings) {
    let State::Streamed(files) = database.cluster.state() else {
        return;
    };
    let inventory = Inventory::new(database);
    for ((own, oid), path) in &files.without_file {
        let relation = database.catalog.relations.get(oid);
        let Some(relation) = relation.filter(|_| *own == database.catalog.database) else {
            continue;
        };
        let message = format!("the file of {} is missing", relation.qualified_name());
        let place = match inventory.home(relation) {
            Some(home) => inventory.place(relation, home, Fork::Main),
            None => file_place(path, FileKind::Unknown),
        };
        let words = format!("ERROR:  could not open file \"{path}\": No such file or directory");
        let draft = Draft::new(&MISSING_FILE, message).fact("relpages", relation.relpages);
        out.add(draft.place(place).server_says(words));
    }
}

/// Files that no row of `pg_class` names, and that WAL knows.
fn report_logged(database: &DatabaseContext<'_>, inventory: &Inventory<'_>, out: &mut Findings) {
    for files in database.cluster.files_missing_by_wal(database.catalog) {
        let message = format!(
            "the file {path} is missing: WAL has rows that committed transactions wrote to it, and no record that removes it",
            path = files.path(0),
        );
        let draft = Draft::new(&MISSING_FILE, message);
        out.add(draft.place(inventory.place_of(&files, 0)));
    }
}

/// A server that takes writes made the files of unlogged relations with them, or again at its
/// start. After a crash recovery makes them anew, a standby has none, and a base backup leaves them
/// out.
fn has_unlogged_files(cluster: &Cluster) -> bool {
    let control = cluster.control.trusted();
    cluster.is_running() && control.is_some_and(|own| own.state == ControlState::InProduction)
}

/// A server that crashed since it was first looked at removes the files of unlogged relations and
/// makes them again at the end of its recovery: only of one in production is their absence one, and
/// the file has to be looked for after this.
fn is_settled(cluster: &Cluster, relation: &Relation) -> bool {
    relation.persistence != Persistence::Unlogged
        || !cluster.is_running()
        || cluster.is_in_production_now()
}

/// Nothing has its name. A link to a file serves the server, and what is out of reach may be whole:
/// both are told elsewhere.
fn is_absent(cx: &DatabaseContext<'_>, inventory: &Inventory<'_>, relation: &Relation) -> bool {
    let Some(home) = inventory.home(relation) else {
        return true;
    };
    let path = inventory.place(relation, home, Fork::Main).path;
    Presence::of_file(cx.cluster.source().as_ref(), &path).is_missing()
}
