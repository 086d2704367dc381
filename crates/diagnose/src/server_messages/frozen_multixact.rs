//! `found multixact … from before relminmxid`.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct FrozenMultixact;

impl ServerMessage for FrozenMultixact {
    fn name(&self) -> &'static str {
        "multixact-before-relminmxid"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX001"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "found multixact {multi} from before relminmxid {n}",
            "multixact {multi} contains update xid {n} from before relfrozenxid",
            "multixact {multi} contains committed update xid {n} from before removable cutoff",
            "multixact {multi} contains running locker xid {n} from before removable cutoff",
            "multixact {multi} from before cutoff {n} found to be still running",
            "multixact {multi} from before multi freeze cutoff {n} found to be still running",
            "from before relminmxid",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
`VACUUM` replaces old multixacts (several transactions that lock one row), and `relminmxid` in \
`pg_class` promises that none older is left in the table. It met one, or one whose members contradict \
the promise.

Either the tuple's header is damaged (a random `xmax` with the bit `HEAP_XMAX_IS_MULTI`), or an old page \
came back from a backup or through a lost write, or `pg_multixact` was damaged or replaced, for instance \
by `pg_resetwal`. Clusters that came through `pg_upgrade` from 9.3 have had it from bugs.

Every vacuum of the table fails from now on, so old multixacts stay. When they run out, the cluster \
refuses statements that need new ones. There is time, but not forever.

It does **not** mean that the row was deleted: a multixact mostly only locks. Reading the table mostly \
works.

**Never** change `relminmxid` by hand and never create files in `pg_multixact`: invented members decide \
over the life of rows."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = names.look();
        steps.extend([
            "See how long there is: `SELECT datname, mxid_age(datminmxid) FROM pg_database;`"
                .to_owned(),
            names.restore(),
        ]);
        steps
    }
}
