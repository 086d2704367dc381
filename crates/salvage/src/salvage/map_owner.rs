//! Tables in whose files another table's rows stand, by the visibility maps that were met.

use std::collections::BTreeMap;

use pgclinic_format::Oid;
use pgclinic_model::document::{LossPlace, TableAccount};

use super::witnesses::Witnesses;

/// What a person should know of a table whose file is another one's.
const EXCHANGED: &str = "the file is not the table's own: its rows are uncertain";

impl Witnesses<'_> {
    /// Puts into the accounts which tables have another one's file, or have given theirs away.
    pub(super) fn note_owners(&self, tables: &mut [TableAccount]) {
        let mut foreign: BTreeMap<Oid, String> = BTreeMap::new();
        let mut given_away: BTreeMap<Oid, String> = BTreeMap::new();
        for table in tables.iter().filter(|table| !table.pages.has_own_map) {
            let Some((tablespace, number)) = table.pages.other_map else {
                continue;
            };
            let Some(other) = self.catalog.by_file(tablespace, number) else {
                continue;
            };
            let name = other.qualified_name();
            foreign.insert(table.oid, format!(
                "a page of the file has the LSN of the visibility map of {name}: the file is that of {name}, and so are its rows"
            ));
            given_away.insert(other.oid, format!(
                "no page of the file has the LSN of its visibility map, and a page in the file of {}.{} has it: the file is another table's",
                table.schema, table.table
            ));
        }
        for table in tables {
            let own = foreign.get(&table.oid);
            let given = given_away.get(&table.oid);
            let given = given.filter(|_| !table.pages.has_own_map);
            if let Some(why) = own.or(given) {
                table.places.push(LossPlace::page(0, why));
                table.rows.uncertain = table.rows.written;
                table.notes.push(EXCHANGED.into());
                table.settle();
            }
        }
    }
}
