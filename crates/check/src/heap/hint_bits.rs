//! Hint bits that say of a transaction what the commit log denies.

use pgclinic_cluster::{MemberStatus, XactStatus};
use pgclinic_format::heap_tuple::{
    HEAP_MOVED, HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI, HEAP_XMIN_COMMITTED,
    HEAP_XMIN_FROZEN, HEAP_XMIN_INVALID,
};
use pgclinic_format::{HeapTuple, MultiXactId, Page, Xid};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::consequences;
use crate::findings::Findings;
use crate::heap::tuples::{INFOMASK, StoredTuple, tuples};
use crate::heap::xact_lookup::XactLookup;

/// The rule.
pub static XMIN_HINT_WRONG: Rule = Rule::from_page(include_str!("../../rules/xmin-hint-wrong.md"));

/// The rule.
pub static XMAX_HINT_WRONG: Rule = Rule::from_page(include_str!("../../rules/xmax-hint-wrong.md"));

/// The rule, told when all pages are known (`walker/contradicted_status.rs`).
pub static TRANSACTION_STATUS_CONTRADICTED: Rule = Rule::from_page(include_str!(
    "../../rules/transaction-status-contradicted.md"
));

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

    /// A frozen row keeps the number of any transaction it once had, of which the log tells
    /// nothing.
    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let at_checkpoint = || {
            let is_left_alone = || consequences::replay_leaves_alone(cx);
            XactLookup::of_checkpoint(cx.fork).filter(|_| is_left_alone())
        };
        let Some(fates) = XactLookup::of(cx.fork).or_else(at_checkpoint) else {
            return;
        };
        for stored in tuples(page) {
            xmin(stored, &fates, out);
            xmax(stored, &fates, out);
        }
    }
}

fn xmin(stored: StoredTuple<'_>, fates: &XactLookup<'_>, out: &mut Findings) {
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

fn xmax(stored: StoredTuple<'_>, fates: &XactLookup<'_>, out: &mut Findings) {
    let (hint, committed) =
        match stored.tuple.t_infomask() & (HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID) {
            HEAP_XMAX_COMMITTED => ("HEAP_XMAX_COMMITTED", true),
            HEAP_XMAX_INVALID => ("HEAP_XMAX_INVALID", false),
            _ => return,
        };
    let Some(xid) = changer(stored.tuple, fates) else {
        return;
    };
    if committed && xid == Xid::INVALID {
        let message = format!("{hint}, but the row has no xmax");
        out.add(stored.draft(&XMAX_HINT_WRONG, message, INFOMASK));
        return;
    }
    let Some(truth) = denial(fates, xid, committed) else {
        return;
    };
    let message = format!("{hint}, but the commit log says that xmax {xid} {truth}");
    let draft = stored.draft(&XMAX_HINT_WRONG, message, INFOMASK);
    out.add(draft.fact("xmax", xid.0).contradicts(xid));
}

/// Who deleted or updated the row, of a multixact also behind the hint that it counts for nothing.
fn changer(tuple: HeapTuple<'_>, fates: &XactLookup<'_>) -> Option<Xid> {
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
fn denial(fates: &XactLookup<'_>, xid: Xid, committed: bool) -> Option<&'static str> {
    match (fates.status(xid)?, committed) {
        (XactStatus::Committed, false) => Some("committed"),
        (XactStatus::Aborted, true) => Some("was rolled back"),
        (XactStatus::InProgress, true) => Some("never finished"),
        _ => None,
    }
}
