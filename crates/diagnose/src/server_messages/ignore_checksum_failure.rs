//! The setting `ignore_checksum_failure`.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct IgnoreChecksumFailure;

impl ServerMessage for IgnoreChecksumFailure {
    fn name(&self) -> &'static str {
        "ignore-checksum-failure-setting"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &[]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &["ignore_checksum_failure", "ignore checksum failure"]
    }

    fn meaning(&self) -> &'static str {
        "\
A developer setting, off by default, for superusers. With it, a page whose checksum is wrong but whose \
header looks sane is taken as it is, with a warning.

What it is good for: reading rows out of a *copy* with one session that only reads. If one byte of a \
text is wrong, the other rows of the page can be saved this way, while `zero_damaged_pages` would throw \
all of them away.

What it risks: the bytes are wrong somewhere, and nobody tells where. Values may be garbage, the session \
may crash or return rows twice. If the page is changed, for instance only by a hint bit, it is written \
back with a **true checksum over wrong bytes**, and from then on nothing shows that it was damaged; base \
backups and standbys take it over.

It does **not** help with pages whose header is wrong: those are still refused. And it does not repair.

Do it so: copy the cluster, start the copy with `default_transaction_read_only = on` and autovacuum off, \
dump, compare with a backup.

**Never** set it in postgresql.conf, never in the only copy."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        vec!["See where it is set: `SELECT * FROM pg_settings WHERE name = 'ignore_checksum_failure';` and turn it off there".to_owned(), "See which pages are wrong: `".to_owned() + &names.check_all_command() + " --level pages`"]
    }
}
