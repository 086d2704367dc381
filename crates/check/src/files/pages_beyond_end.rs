//! `pg_class.relpages` says more pages than the file has.

use pgclinic_cluster::inventory::Inventory;
use pgclinic_cluster::{DatabaseContext, Persistence};
use pgclinic_format::Fork;
use pgclinic_format::oid::PG_CLASS;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;
use pgclinic_model::plural;

use crate::check::DatabaseCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static PAGES_BEYOND_END: Rule =
    Rule::from_page(include_str!("../../rules/pages-beyond-end.md"));

/// See [`PAGES_BEYOND_END`].
pub struct PagesBeyondEnd;

impl DatabaseCheck for PagesBeyondEnd {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&PAGES_BEYOND_END] }
    }

    fn level(&self) -> Level {
        Level::Pages
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
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
            let message = format!(
                "relpages is {relpages}, the file has {blocks}",
                blocks = plural(blocks, "block")
            );
            let draft = Draft::new(&PAGES_BEYOND_END, message)
                .fact("relpages", relpages)
                .fact("blocks", blocks);
            out.add(draft.place(inventory.place_of(files, 0)));
        }
    }
}
