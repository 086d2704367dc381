//! `ignoring checksum failure …`: a wrong page is taken for a right one.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct IgnoringChecksumFailure;

impl ServerMessage for IgnoringChecksumFailure {
    fn name(&self) -> &'static str {
        "ignoring-checksum-failure"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX001"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "ignoring checksum failure in block {block} of relation {path}",
            "ignoring {n} checksum failures among blocks {first}..{last} of relation {path}",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
`ignore_checksum_failure` is on. The checksum of this page is wrong, its header passes the other tests, \
and the server went on with the bytes as they are. PostgreSQL 18 words it like this; older majors only \
print `page verification failed` and go on.

What the query returns from this page may be wrong: values may be garbage, rows may be missing or be \
seen twice, and the session can crash. If the page is changed, it is written back **with a true checksum \
over wrong bytes**: from then on nothing tells that it was damaged.

The setting has one good use: reading rows out of a *copy* of the cluster, in a session that only reads.

It does not mean that the page is sound because no error came, and it does not repair anything.

**Never** use it on the only copy, never while something writes, never in postgresql.conf."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = vec!["Turn it off again: `SET ignore_checksum_failure = off;`".to_owned()];
        steps.extend(names.look());
        steps.extend([names.mend()]);
        steps
    }
}
