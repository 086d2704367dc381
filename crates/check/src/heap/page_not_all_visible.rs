//! A page says that all its rows are visible to everybody, and one is not.

use pgclinic_cluster::XactStatus;
use pgclinic_format::heap_tuple::{
    HEAP_MOVED, HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI, HEAP_XMIN_COMMITTED,
    HEAP_XMIN_FROZEN, HEAP_XMIN_INVALID,
};
use pgclinic_format::page::PD_ALL_VISIBLE;
use pgclinic_format::{HeapTuple, LpFlags, Page, Xid};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::heap::tuples::{StoredTuple, XMAX, XMIN, tuples};
use crate::heap::xact_lookup::{Updater, XactLookup, updater};
use crate::page::line_pointers::pointer_bytes;

/// The rule.
pub static PAGE_NOT_ALL_VISIBLE: Rule =
    Rule::from_page(include_str!("../../rules/page-not-all-visible.md"));

/// See [`PAGE_NOT_ALL_VISIBLE`].
pub struct PageNotAllVisible;

impl PageCheck for PageNotAllVisible {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&PAGE_NOT_ALL_VISIBLE] }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn passes_plain_rows_only(&self) -> bool {
        true
    }

    /// Hints may be missing: setting them is not logged, setting the flag is. A lock is no change.
    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let Some(fates) = XactLookup::of(cx.fork).filter(|_| page.pd_flags() & PD_ALL_VISIBLE != 0)
        else {
            return;
        };
        for (number, pointer) in page.line_pointers() {
            if pointer.flags() == LpFlags::Dead {
                let bytes = pointer_bytes(number);
                let message = "the page is marked all-visible, and this line pointer is dead";
                let draft = Draft::new(&PAGE_NOT_ALL_VISIBLE, message).item(number);
                out.add(draft.bytes(bytes.start, bytes.end).rows(1));
            }
        }
        for stored in tuples(page) {
            if let Some(draft) = hidden(stored, &fates) {
                out.add(draft);
            }
        }
    }
}

fn hidden(stored: StoredTuple<'_>, fates: &XactLookup<'_>) -> Option<Draft> {
    let (xmin, words) = (stored.tuple.t_xmin(), insertion(stored.tuple, fates));
    if let Some(words) = words {
        let message = format!("the page is marked all-visible, and xmin {xmin} {words}");
        let draft = stored.draft(&PAGE_NOT_ALL_VISIBLE, message, XMIN);
        return Some(draft.fact("xmin", xmin.0));
    }
    let (xid, words) = deletion(stored.tuple, fates)?;
    let message = format!(
        "the page is marked all-visible, and transaction {xid}, which deleted or updated the row, {words}"
    );
    let draft = stored.draft(&PAGE_NOT_ALL_VISIBLE, message, XMAX);
    Some(draft.fact("xid", xid.0))
}

/// Why nobody may see the insertion. What the hint says counts first, as it does to the server.
fn insertion(tuple: HeapTuple<'_>, fates: &XactLookup<'_>) -> Option<&'static str> {
    match tuple.t_infomask() & HEAP_XMIN_FROZEN {
        _ if tuple.xmin_is_frozen() || tuple.t_infomask() & HEAP_MOVED != 0 => None,
        HEAP_XMIN_COMMITTED => None,
        HEAP_XMIN_INVALID => Some("is marked as rolled back"),
        _ if tuple.t_xmin() == Xid::INVALID => Some("is that of a withdrawn insertion"),
        _ => match fates.status(tuple.t_xmin())? {
            XactStatus::Aborted => Some("was rolled back"),
            XactStatus::InProgress => Some("never finished"),
            _ => None,
        },
    }
}

/// Who deleted the row, if it counts.
fn deletion(tuple: HeapTuple<'_>, fates: &XactLookup<'_>) -> Option<(Xid, &'static str)> {
    if tuple.has(HEAP_XMAX_INVALID) {
        return None;
    }
    let Updater::Xid(xid) = updater(tuple, Some(fates)) else {
        return None;
    };
    if tuple.has(HEAP_XMAX_COMMITTED) && !tuple.has(HEAP_XMAX_IS_MULTI) {
        return Some((xid, "is marked as committed"));
    }
    match fates.status(xid)? {
        XactStatus::Committed => Some((xid, "committed")),
        XactStatus::InProgress if fates.is_prepared(xid) => Some((xid, "is prepared to commit")),
        _ => None,
    }
}
