//! A file that looks like a relation's and belongs to none.

use std::collections::BTreeSet;

use pgclinic_cluster::DatabaseContext;
use pgclinic_cluster::inventory::Inventory;
use pgclinic_format::{Oid, TwoPhase};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;
use pgclinic_model::plural;

use crate::check::DatabaseCheck;
use crate::files::small_files::read_prepared;
use crate::findings::{Draft, Findings};

/// The rule.
pub static ORPHAN_FILE: Rule = Rule::from_page(include_str!("../../rules/orphan-file.md"));

/// See [`ORPHAN_FILE`].
pub struct OrphanFile;

impl DatabaseCheck for OrphanFile {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&ORPHAN_FILE] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
        let Some(inventory) = Inventory::comparable(database) else {
            return;
        };
        // The commit of a prepared transaction will name the files that it made.
        let cluster = database.cluster;
        let prepared = cluster.prepared_files().into_iter();
        let prepared: Option<Vec<TwoPhase>> = prepared
            .map(|(path, _)| read_prepared(cluster, &path))
            .collect();
        let Some(prepared) = prepared else {
            return;
        };
        let promised: BTreeSet<(Oid, Oid)> = prepared
            .into_iter()
            .flat_map(|transaction| transaction.created)
            .map(|(tablespace, _, filenode)| (tablespace, filenode))
            .collect();
        let lasting = database
            .forks
            .iter()
            .filter(|files| files.temporary.is_none())
            .filter(|files| !promised.contains(&(files.home.tablespace, files.filenode)));
        for files in lasting.filter(|files| inventory.relation(files).is_none()) {
            let Some(first) = files.segments.first() else {
                continue;
            };
            let bytes = files.bytes();
            let message = format!("no relation has this file of {}", plural(bytes, "byte"));
            let draft = Draft::new(&ORPHAN_FILE, message)
                .fact("bytes", bytes)
                .fact("segments", files.segments.len());
            out.add(draft.place(inventory.place_of(files, first.number)));
        }
    }
}
