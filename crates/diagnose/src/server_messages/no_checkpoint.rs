//! `invalid primary checkpoint record`, `could not locate a valid checkpoint record`.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct NoCheckpoint;

impl ServerMessage for NoCheckpoint {
    fn name(&self) -> &'static str {
        "no-valid-checkpoint-record"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX000", "58P01"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "could not locate a valid checkpoint record",
            "could not locate required checkpoint record",
            "invalid primary checkpoint record",
            "invalid checkpoint record",
            "invalid length of checkpoint record",
            "invalid length of primary checkpoint record",
            "invalid resource manager id in checkpoint record",
            "invalid resource manager id in primary checkpoint record",
            "invalid xl_info in checkpoint record",
            "could not find redo location",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
At start the server reads from `pg_control` where the last checkpoint stands in the WAL, and replays \
from there. At this place there is no checkpoint record: the WAL file is missing, cut, overwritten or \
from another cluster.

Usual causes: somebody deleted files in `pg_wal` to make room; a backup was copied without its WAL; \
**`backup_label` was removed** from a backup before its first start (then the server looks for the wrong \
checkpoint); a snapshot did not take all disks in one moment; the WAL's disk is broken.

The tables are on disk, but in a state between two moments: pages written since the checkpoint and pages \
not written yet. Only the WAL makes them one whole.

It does **not** mean that the tables are damaged. With the WAL back, the start goes on as if nothing had \
been.

At risk without the WAL: everything that was changed since the checkpoint, and the consistency of all \
that was touched then.

**Never** take `pg_resetwal` first: it makes the server start **and** leaves it torn, with indexes that \
do not fit and rows half there. If it is the last way, then on a copy, dump everything, load it into a \
new cluster."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        vec!["Look whether the WAL file is somewhere: `pg_controldata` names it (REDO WAL file); search `pg_wal`, the archive, the standby. Put it back and start the copy".to_owned(), "If this is a restored backup: put its `backup_label` back and set restore_command".to_owned(), "See the state of the files: `".to_owned() + &names.check_all_command() + "`", names.restore()]
    }
}
