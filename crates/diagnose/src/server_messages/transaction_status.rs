//! `could not access status of transaction`: the commit log does not know it.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct TransactionStatus;

impl ServerMessage for TransactionStatus {
    fn name(&self) -> &'static str {
        "could-not-access-status-of-transaction"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["58P01", "58030", "XX000"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &["could not access status of transaction {xid}"]
    }

    fn meaning(&self) -> &'static str {
        "\
To know whether a row is visible the server looks its transaction up in the commit log, `pg_xact` (or in \
`pg_multixact`, `pg_subtrans`, `pg_commit_ts`: the DETAIL line names the file). The file is not there, \
is too short, or cannot be read.

There are two causes, and they ask for opposite answers. **The number is nonsense**: a tuple's `xmin` or \
`xmax` was overwritten, and the server looks for a transaction that never ran. That is the usual one, \
and the number is then far from those that the cluster uses. Nothing is wrong with transactions, only \
that page is damaged. **The file is missing**: somebody deleted files from `pg_xact`, or a restore left \
them out. Then many tables complain, and the numbers are plausible.

One damaged tuple header stops every scan of its table. The other rows are whole.

It does **not** mean that transaction wraparound has happened.

**Never** make the file up with zeros (`dd if=/dev/zero of=pg_xact/…`) because an article says so: zeros \
mean *not committed*, and rows silently vanish, or come back when the numbers are reached. If it must \
be, then only on a copy, to read the rest."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = names.look();
        steps.extend([names.restore(), "When only a few tuples are damaged, the extension pg_surgery (14 and later) can freeze or kill them by ctid, on a copy first: it cannot be undone".to_owned(), names.save_the_rest()]);
        steps
    }
}
