//! Hint bits that say of a transaction what the commit log denies.

use pgclinic_cluster::{MemberStatus, XactStatus};
use pgclinic_format::heap_tuple::{
    HEAP_MOVED, HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI, HEAP_XMIN_COMMITTED,
    HEAP_XMIN_FROZEN, HEAP_XMIN_INVALID,
};
use pgclinic_format::{HeapTuple, MultiXactId, Page, Xid};
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::fates::Fates;
use crate::findings::Findings;
use crate::tuples::{INFOMASK, StoredTuple, tuples};

/// The rule.
pub static XMIN_HINT_WRONG: Rule = Rule {
    name: "xmin-hint-wrong",
    severity: Severity::Damage,
    summary: "a hint bit says of the inserting transaction what the commit log denies",
    explain: "\
Whoever looks up in `pg_xact` what became of the transaction that inserted a row notes the answer in the \
row, so that nobody has to look again: `HEAP_XMIN_COMMITTED` or `HEAP_XMIN_INVALID`. The answer never \
changes. Here the row says the opposite of what the commit log says today.

The server believes the row. A row marked invalid is invisible for ever though its transaction committed, \
and VACUUM removes it; a row marked committed is shown though it was rolled back. There is no message, and \
no tool of the server compares the two.

One row or one page: a bit of `t_infomask` flipped, or `xmin` was overwritten. Many pages and the same few \
transactions: the files of `pg_xact` are of another day than the table, were filled with zeros to get a \
server to start, or the cluster went through `pg_resetwal` without its WAL.

Copy the cluster first, and keep VACUUM away from it. Compare with a backup or a standby which of the two \
is right: then take the page, or the file of `pg_xact`, from there. `heap_force_freeze` of the extension \
`pg_surgery` (14 and later) makes a single row visible again.",
};

/// The rule.
pub static XMAX_HINT_WRONG: Rule = Rule {
    name: "xmax-hint-wrong",
    severity: Severity::Damage,
    summary: "a hint bit says of the deleting transaction what the commit log denies",
    explain: "\
Whoever looks up in `pg_xact` what became of the transaction that deleted or updated a row notes the answer \
in the row: `HEAP_XMAX_COMMITTED`, the row is gone, or `HEAP_XMAX_INVALID`, it was rolled back. The answer \
never changes. Here the row says the opposite of what the commit log says today.

The server believes the row. A row marked invalid lives on though it was deleted, beside its newer version \
if it was updated, and unique keys appear twice; a row marked committed is gone though its deletion was \
rolled back, and VACUUM removes it. There is no message, and no tool of the server compares the two.

One row or one page: a bit of `t_infomask` flipped, or `xmax` was overwritten. Many pages and the same few \
transactions: the files of `pg_xact` are of another day than the table, were filled with zeros to get a \
server to start, or the cluster went through `pg_resetwal` without its WAL.

Copy the cluster first, and keep VACUUM away from it. Compare with a backup or a standby which of the two \
is right, and take the page, or the file of `pg_xact`, from there.",
};

/// The rule, told when all pages are known (`walker/contradicted_status.rs`).
pub static TRANSACTION_STATUS_CONTRADICTED: Rule = Rule {
    name: "transaction-status-contradicted",
    severity: Severity::Damage,
    summary: "pg_xact says of transactions what the rows of many pages deny",
    explain: "\
`pg_xact` keeps two bits for each transaction: in progress, committed, rolled back, or a subtransaction's end. Whoever \
looks them up for a row notes the answer in the row, as a hint bit. Rows on several pages, mostly of different \
tables, say of the same range of transactions what `pg_xact` denies today. Pages do not go wrong together: the one \
file they all disagree with is the one that is wrong.

Rows with hint bits are still shown as they always were. But rows without them are judged by the wrong bits: committed \
rows vanish, rolled back ones appear, and VACUUM removes for good what it takes for rolled back. There is no message.

Bytes of the file were overwritten, the file is of another day than the tables, or somebody filled it up to get a server \
to start, or ran `pg_resetwal` without the WAL.

Stop the server, and keep VACUUM away from the cluster. Copy everything. Take the file from a backup, a standby or a \
snapshot: the status of a finished transaction never changes, so a copy of any later day fits. Do not restore the tables: \
their pages are sound. Where there is no copy, the hint bits of the rows tell how most of these transactions ended.",
};

/// See [`XMIN_HINT_WRONG`] and [`XMAX_HINT_WRONG`].
pub struct HintBits;

impl PageCheck for HintBits {
    fn rules(&self) -> &'static [&'static Rule] {
        const {
            &[
                &XMIN_HINT_WRONG,
                &XMAX_HINT_WRONG,
                &TRANSACTION_STATUS_CONTRADICTED,
            ]
        }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn passes_plain_rows_only(&self) -> bool {
        true
    }

    /// A frozen row keeps the number of any transaction it once had, of which the log tells nothing.
    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let Some(fates) = Fates::of(cx.fork) else {
            return;
        };
        for stored in tuples(page) {
            xmin(stored, &fates, out);
            xmax(stored, &fates, out);
        }
    }
}

fn xmin(stored: StoredTuple<'_>, fates: &Fates<'_>, out: &mut Findings) {
    let (mask, xid) = (stored.tuple.t_infomask(), stored.tuple.t_xmin());
    let hint = match mask & HEAP_XMIN_FROZEN {
        _ if mask & HEAP_MOVED != 0 => return,
        HEAP_XMIN_COMMITTED => "HEAP_XMIN_COMMITTED",
        HEAP_XMIN_INVALID => "HEAP_XMIN_INVALID",
        _ => return,
    };
    let committed = mask & HEAP_XMIN_FROZEN == HEAP_XMIN_COMMITTED;
    let Some(truth) = denial(fates, xid, committed) else {
        return;
    };
    let message = format!("{hint}, but the commit log says that xmin {xid} {truth}");
    let draft = stored.draft(&XMIN_HINT_WRONG, message, INFOMASK);
    out.add(draft.fact("xmin", xid.0).contradicts(xid));
}

fn xmax(stored: StoredTuple<'_>, fates: &Fates<'_>, out: &mut Findings) {
    let (hint, committed) =
        match stored.tuple.t_infomask() & (HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID) {
            HEAP_XMAX_COMMITTED => ("HEAP_XMAX_COMMITTED", true),
            HEAP_XMAX_INVALID => ("HEAP_XMAX_INVALID", false),
            _ => return,
        };
    let Some(xid) = changer(stored.tuple, fates) else {
        return;
    };
    let Some(truth) = denial(fates, xid, committed) else {
        return;
    };
    let message = format!("{hint}, but the commit log says that xmax {xid} {truth}");
    let draft = stored.draft(&XMAX_HINT_WRONG, message, INFOMASK);
    out.add(draft.fact("xmax", xid.0).contradicts(xid));
}

/// Who deleted or updated the row, of a multixact also behind the hint that it counts for nothing.
fn changer(tuple: HeapTuple<'_>, fates: &Fates<'_>) -> Option<Xid> {
    let xmax = tuple.t_xmax();
    match tuple.has(HEAP_XMAX_IS_MULTI) {
        _ if tuple.xmax_is_locked_only() => None,
        false => Some(xmax),
        true => fates
            .members(MultiXactId(xmax.0))?
            .iter()
            .find(|member| member.status != MemberStatus::Lock)
            .map(|member| member.xid),
    }
}

/// What the log says, if it is not what the hint says.
fn denial(fates: &Fates<'_>, xid: Xid, committed: bool) -> Option<&'static str> {
    match (fates.status(xid)?, committed) {
        (XactStatus::Committed, false) => Some("committed"),
        (XactStatus::Aborted, true) => Some("was rolled back"),
        (XactStatus::InProgress, true) => Some("never finished"),
        _ => None,
    }
}
