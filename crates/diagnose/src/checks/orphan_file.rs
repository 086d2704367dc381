//! A file that looks like a relation's and belongs to none.

use std::collections::BTreeSet;

use pgclinic_format::{Oid, TwoPhase};
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};

use crate::check::{DatabaseCheck, DatabaseCx};
use crate::findings::{Draft, Findings};
use crate::inventory::Inventory;
use crate::small_files::{prepared, read_prepared};

/// The rule.
pub static ORPHAN_FILE: Rule = Rule {
    name: "orphan-file",
    severity: Severity::Note,
    summary: "a relation file that no catalog names",
    explain: "\
The file has the name of a relation's file, and no relation of this database has that number. `pg_class` was read whole, \
and every entry of its index met its row: the row that named the file is not lost, there is none.

The server never opens it; it only takes up space. Such files stay behind when the server crashes in a \
transaction that has created or rewritten a relation (`CREATE TABLE`, `VACUUM FULL`, `REINDEX`, a large \
`COPY` into a new table): nobody removes them afterwards. They can also be the traces of a mistake: a file \
copied into the wrong directory. Together with a missing file this is worth a second look.

Nothing needs to be done. To win the space back, be certain first: the server is stopped or no long \
transaction is running, `pg_filenode_relation()` knows no relation of this number in the right \
tablespace, and the file is not young. Then move it out of the data directory, keep it for a few weeks, \
and delete it later.",
};

/// See [`ORPHAN_FILE`].
pub struct OrphanFile;

impl DatabaseCheck for OrphanFile {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&ORPHAN_FILE] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, database: &DatabaseCx<'_>, out: &mut Findings) {
        let Some(inventory) = Inventory::comparable(database) else {
            return;
        };
        // The commit of a prepared transaction will name the files that it made.
        let cluster = database.cluster;
        let prepared = prepared(cluster).into_iter();
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
            let message = format!("no relation has this file of {bytes} bytes");
            let draft = Draft::new(&ORPHAN_FILE, message)
                .fact("bytes", bytes)
                .fact("segments", files.segments.len());
            out.add(draft.place(inventory.place_of(files, first.number)));
        }
    }
}
