//! An unlogged relation without the fork that it is reset to after a crash.

use pgclinic_cluster::inventory::Inventory;
use pgclinic_cluster::{DatabaseContext, Persistence, RelKind};
use pgclinic_format::Fork;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;
use pgclinic_source::Presence;

use crate::check::DatabaseCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static MISSING_INIT_FORK: Rule =
    Rule::from_page(include_str!("../../rules/missing-init-fork.md"));

/// See [`MISSING_INIT_FORK`].
pub struct MissingInitFork;

impl DatabaseCheck for MissingInitFork {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&MISSING_INIT_FORK] }
    }

    fn level(&self) -> Level {
        Level::Pages
    }

    fn asks_recovered(&self) -> bool {
        true
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
        let Some(inventory) = Inventory::comparable(database) else {
            return;
        };
        // Before 15 a sequence is always logged, whatever its letter says.
        let sequences_too = database.cluster.layout.major >= 15;
        let unlogged = inventory
            .relations()
            .filter(|relation| relation.persistence == Persistence::Unlogged);
        let unlogged =
            unlogged.filter(|relation| relation.kind != RelKind::Sequence || sequences_too);
        for relation in unlogged {
            let there = inventory
                .fork(relation, Fork::Init)
                .and_then(|files| files.segments.first());
            let Some(home) = inventory.home(relation) else {
                continue;
            };
            if there.is_some_and(|first| first.number == 0) {
                continue;
            }
            let message = format!("unlogged {} has no init fork", relation.qualified_name());
            let place = inventory.place(relation, home, Fork::Init);
            // Out of reach is not absent.
            if !Presence::of_file(database.cluster.source().as_ref(), &place.path).is_missing() {
                continue;
            }
            out.add(Draft::new(&MISSING_INIT_FORK, message).place(place));
        }
    }
}
