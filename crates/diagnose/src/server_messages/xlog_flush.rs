//! `xlog flush request … is not satisfied`: a page from the future.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct XlogFlush;

impl ServerMessage for XlogFlush {
    fn name(&self) -> &'static str {
        "xlog-flush-not-satisfied"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX000"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &["xlog flush request {n}/{n} is not satisfied"]
    }

    fn meaning(&self) -> &'static str {
        "\
Before a changed page is written, the WAL up to the page's LSN (the position in its header) must be on \
disk. The server saw a page whose LSN lies **beyond the end of the WAL**, and could not flush what does \
not exist.

Either the page's first eight bytes are damaged: the number is then absurd. Or the page is from *another \
history*: the WAL was reset with `pg_resetwal`, files of a newer backup or another cluster were mixed \
in, a cluster was started without the `backup_label` of its backup, or WAL was lost in a crash with \
`fsync = off`. The number is then a little ahead of the WAL's end, and many pages have it.

The CONTEXT line names the block: `writing block N of relation base/…`.

With few pages and absurd numbers only these pages are damaged. With many, the whole cluster is a mix of \
two states: data that look right may be outdated.

It does **not** mean that the WAL's disk is full.

**Never** push the WAL position ahead (`pg_resetwal -l`) just to silence it: the mixed state stays, \
without its only symptom."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        vec![
            "Find the pages whose LSN lies beyond the WAL's end: `".to_owned()
                + &names.check_all_command()
                + "`",
            names.restore(),
        ]
    }
}
