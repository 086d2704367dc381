//! `incorrect checksum in control file`.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct ControlFileMessage;

impl ServerMessage for ControlFileMessage {
    fn name(&self) -> &'static str {
        "control-file-checksum"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX000", "XX001"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "incorrect checksum in control file",
            "invalid checksum in control file",
            "calculated crc checksum does not match value stored",
            "invalid primary checkpoint link in control file",
            "global/pg_control",
            "invalid wal segment size in control file",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
`global/pg_control` is the first file that the server reads: 8 kB with the state, the last checkpoint, \
the build's sizes and a CRC at its end. The CRC does not fit the bytes.

The file was overwritten, zeroed, cut, or belongs to another major version (then sizes and places of \
fields differ, and the CRC is looked for at the wrong place: try `pg_controldata` of the version in \
`PG_VERSION`). It is written often and in one piece of 512 bytes, so torn writes are rare on sound \
storage.

The server cannot start. **The data are not touched**: every table is as it was. What is missing is \
where the WAL replay must begin.

It does **not** mean that the cluster is lost. A standby or a backup with WAL is the way out. Without \
one, the values can be worked out from the WAL and `pg_xact`, and `pg_resetwal` writes a new file.

**Never** run `pg_resetwal` on the only copy: it throws away the WAL that a crashed cluster needs, so \
that afterwards indexes, tables and commit log do not fit together. Never put a control file of another \
cluster or day there."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        vec!["See what is readable: `".to_owned() + &names.check_all_command() + "` (it works without a control file)", "Restore `global/pg_control` only together with the cluster it belongs to: from a full backup with its WAL, never from another day alone".to_owned(), "Without any backup, on a copy only: `pg_resetwal -n` shows the values it would guess; pgclinic's list of files tells the highest transaction and WAL file in use".to_owned()]
    }
}
