//! An unlogged relation without the fork that it is reset to after a crash.

use pgclinic_cluster::{Persistence, RelKind};
use pgclinic_format::Fork;
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};
use pgclinic_source::Presence;

use crate::check::{DatabaseCheck, DatabaseCx};
use crate::findings::{Draft, Findings};
use crate::inventory::Inventory;

/// The rule.
pub static MISSING_INIT_FORK: Rule = Rule {
    name: "missing-init-fork",
    severity: Severity::Damage,
    summary: "an unlogged relation has no init fork",
    explain: "\
Changes of an unlogged relation are not in the WAL, so after a crash its content cannot be trusted. The \
server then throws the relation's files away and puts a copy of its `init` fork in their place. That file \
(`…_init`) is missing here.

While the server runs and is stopped in good order, nobody notices. After a crash the relation is not \
reset: it keeps half-written pages, and queries fail or give wrong rows. On a standby that is promoted \
its main file is missing altogether: `could not open file \"…\"`. The server also knows by this file that \
the relation is unlogged when it takes a base backup.

The file was removed, or a copy left it out.

The rows are whole as long as the server does not crash: save them now, with `COPY` or `CREATE TABLE … \
AS`. `ALTER TABLE … SET LOGGED` and back to `SET UNLOGGED` writes all forks anew; `REINDEX` does so for an \
index.",
};

/// See [`MISSING_INIT_FORK`].
pub struct MissingInitFork;

impl DatabaseCheck for MissingInitFork {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&MISSING_INIT_FORK] }
    }

    fn level(&self) -> Level {
        Level::Pages
    }

    fn check(&self, database: &DatabaseCx<'_>, out: &mut Findings) {
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
