//! `pg_class.relpages` says more pages than the file has.

use pgclinic_cluster::Persistence;
use pgclinic_format::oid::{PG_CLASS};
use pgclinic_format::Fork;

use crate::check::{DatabaseCheck, DatabaseCx};
use crate::document::Level;
use crate::findings::{Draft, Findings};
use crate::inventory::Inventory;
use crate::rule::{Rule, Severity};


/// The rule.
pub static PAGES_BEYOND_END: Rule = Rule {
    name: "pages-beyond-end",
    severity: Severity::Note,
    summary: "relpages counts more pages than the file has",
    explain: "\
`VACUUM`, `ANALYZE` and `CREATE INDEX` note in `pg_class.relpages` how many pages a relation has. The file \
has fewer now.

The number is an estimate for the planner, and nothing fails because of it. There are harmless ways to \
this state. But a relation rarely shrinks between two vacuums without `relpages` being written again, so \
this can be the only trace of a file that was cut at a block's boundary, emptied, or replaced by an older \
and shorter copy. The server gives no message for rows that were lost this way.

Compare the length of the file with a backup or a standby, and count rows where you know how many there \
should be. Look at the indexes of the table: entries that lead behind the end of the table say \
`could not read block …`. If all is well, `ANALYZE` of the table writes a fresh number.",
};

/// See [`PAGES_BEYOND_END`].
pub struct PagesBeyondEnd;

impl DatabaseCheck for PagesBeyondEnd {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&PAGES_BEYOND_END] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, database: &DatabaseCx<'_>, out: &mut Findings) {
        let Some(inventory) = Inventory::comparable(database) else {
            return;
        };
        let build = database.cluster.build;
        // A reset after a crash leaves the old number behind in unlogged relations.
        let logged = inventory
            .relations()
            .filter(|relation| relation.persistence == Persistence::Permanent)
            // VACUUM FULL of pg_class itself cannot write a new number into its own row.
            .filter(|relation| relation.oid != PG_CLASS);
        for relation in logged {
            let Some(files) = inventory.fork(relation, Fork::Main) else {
                continue;
            };
            if files.segments.is_empty() {
                continue;
            }
            let blocks = files.blocks(build.block_size, build.segment_bytes);
            let Ok(relpages) = u64::try_from(relation.relpages) else {
                continue;
            };
            if relpages <= blocks {
                continue;
            }
            let message = format!("relpages is {relpages}, the file has {blocks} blocks");
            let draft = Draft::new(&PAGES_BEYOND_END, message)
                .fact("relpages", relpages)
                .fact("blocks", blocks);
            out.add(draft.place(inventory.place_of(files, 0)));
        }
    }
}
