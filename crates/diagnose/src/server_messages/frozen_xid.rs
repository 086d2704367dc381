//! `found xmin … from before relfrozenxid`: vacuum cannot freeze.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct FrozenXid;

impl ServerMessage for FrozenXid {
    fn name(&self) -> &'static str {
        "xid-before-relfrozenxid"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX001"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "found xmin {xid} from before relfrozenxid {n}",
            "xmin {xid} from before relfrozenxid {n}",
            "found xmax {xid} from before relfrozenxid {n}",
            "found update xid {xid} from before relfrozenxid {n}",
            "found update xid {xid} from before xid cutoff {n}",
            "uncommitted xmin {xid} from before xid cutoff {n} needs to be frozen",
            "uncommitted xmin {xid} needs to be frozen",
            "from before relfrozenxid",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
`VACUUM` marks old rows as frozen, and `relfrozenxid` in `pg_class` promises that no row with an older \
transaction is left unfrozen. It met one. (\"Uncommitted xmin needs to be frozen\" is its sibling: an \
old row whose transaction never committed should have been removed long ago.)

Either the row's `xmin` or `xmax` is damaged, or an **old page came back**: a block or file from an \
older backup, a lost write, a standby promoted with old blocks. Bugs of old minor releases (9.3-9.6, and \
10-12 with shared catalogs) did it too. Or `relfrozenxid` itself was damaged.

It matters because vacuum of this table fails each time. Freezing then stops, and after two billion \
transactions the whole cluster refuses to write. There is time, but not forever.

It does **not** mean that a wraparound has happened, and reading the table mostly works.

At risk: rows of an old page are outdated, and newer versions are lost.

**Never** update `pg_class.relfrozenxid` by hand to an older value: `pg_xact` for it may be gone \
already."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = names.look();
        steps.extend(["See how long there is: `SELECT datname, age(datfrozenxid) FROM pg_database;` (at 2 billion the server stops giving out transactions)".to_owned(), "If the rows are right and only the number is wrong: on a copy first, pg_surgery's `heap_force_freeze` for the named tuples, or dump and reload the table".to_owned(), names.restore()]);
        steps
    }
}
