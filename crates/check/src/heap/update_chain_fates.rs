//! Update chains whose transactions cannot have come after each other.

use pgclinic_cluster::XactStatus;
use pgclinic_format::heap_tuple::{
    HEAP_ONLY_TUPLE, HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI,
    HEAP_XMIN_COMMITTED, HEAP_XMIN_FROZEN, HEAP_XMIN_INVALID,
};
use pgclinic_format::{HeapTuple, Page};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::Findings;
use crate::heap::tuples::{INFOMASK, INFOMASK2, StoredTuple, XMIN};
use crate::heap::update_chains::Chains;
use crate::heap::xact_lookup::XactLookup;

/// The rule.
pub static UPDATE_OUTLIVES_ROW: Rule =
    Rule::from_page(include_str!("../../rules/update-outlives-row.md"));

/// The rule.
pub static UPDATE_HALF_DONE: Rule =
    Rule::from_page(include_str!("../../rules/update-half-done.md"));

/// The rule.
pub static HEAP_ONLY_WITHOUT_CHAIN: Rule =
    Rule::from_page(include_str!("../../rules/heap-only-without-chain.md"));

/// See [`UPDATE_OUTLIVES_ROW`], [`UPDATE_HALF_DONE`] and [`HEAP_ONLY_WITHOUT_CHAIN`].
pub struct UpdateChainFates;

impl PageCheck for UpdateChainFates {
    fn rules(&self) -> &'static [&'static Rule] {
        const {
            &[
                &UPDATE_OUTLIVES_ROW,
                &UPDATE_HALF_DONE,
                &HEAP_ONLY_WITHOUT_CHAIN,
            ]
        }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn passes_plain_rows_only(&self) -> bool {
        true
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let fates = XactLookup::of(cx.fork);
        let chains = Chains::of(page, cx.block, fates.as_ref());
        for (old, new) in chains.updates() {
            match &fates {
                Some(fates) if fates.status(new.tuple.t_xmin()).is_some() => {
                    outliving(old, new, fates, out);
                }
                _ => half_done(old, new, out),
            }
        }
        if let Some(fates) = &fates {
            adrift(&chains, fates, out);
        }
    }
}

fn outliving(
    old: StoredTuple<'_>,
    new: StoredTuple<'_>,
    fates: &XactLookup<'_>,
    out: &mut Findings,
) {
    let (before, after) = (fates.insertion(old.tuple), fates.insertion(new.tuple));
    let (xmin, next_xmin) = (old.tuple.t_xmin(), new.tuple.t_xmin());
    let words = match (before, after) {
        (Some(XactStatus::Aborted), Some(XactStatus::Committed)) => {
            "was rolled back, and the update committed"
        }
        (Some(XactStatus::InProgress), Some(XactStatus::Committed)) => {
            "never finished, and the update committed"
        }
        (Some(XactStatus::Aborted), Some(XactStatus::InProgress))
            if fates.is_prepared(next_xmin) =>
        {
            "was rolled back, and the update is prepared to commit"
        }
        _ => return,
    };
    let message = format!(
        "xmin {xmin} {words} as {next_xmin} at line pointer {}",
        new.number
    );
    let draft = old.draft(&UPDATE_OUTLIVES_ROW, message, XMIN);
    out.add(
        draft
            .fact("next_item", new.number)
            .fact("next_xmin", next_xmin.0),
    );
}

/// Both headers speak about one transaction, of which the log no longer tells.
fn half_done(old: StoredTuple<'_>, new: StoredTuple<'_>, out: &mut Findings) {
    let Some(ended) = hint_of_xmax(old.tuple) else {
        return;
    };
    let xid = new.tuple.t_xmin();
    let words = match (ended, hint_of_xmin(new.tuple)) {
        (false, Some(true)) => "is valid, so both versions are there",
        (true, Some(false)) => "is not valid, so neither version is there",
        _ => return,
    };
    let hint = if ended { "committed" } else { "rolled back" };
    let message = format!(
        "xmax {xid} is marked as {hint}, but its new version at line pointer {} {words}",
        new.number
    );
    let draft = old.draft(&UPDATE_HALF_DONE, message, INFOMASK);
    out.add(draft.fact("next_item", new.number).fact("xmax", xid.0));
}

fn hint_of_xmax(tuple: HeapTuple<'_>) -> Option<bool> {
    match tuple.t_infomask() & (HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID | HEAP_XMAX_IS_MULTI) {
        HEAP_XMAX_COMMITTED => Some(true),
        HEAP_XMAX_INVALID => Some(false),
        _ => None,
    }
}

fn hint_of_xmin(tuple: HeapTuple<'_>) -> Option<bool> {
    match tuple.t_infomask() & HEAP_XMIN_FROZEN {
        HEAP_XMIN_COMMITTED | HEAP_XMIN_FROZEN => Some(true),
        HEAP_XMIN_INVALID => Some(false),
        _ => None,
    }
}

/// Rolled back heap-only rows may have lost their predecessor: it was updated again.
fn adrift(chains: &Chains<'_>, fates: &XactLookup<'_>, out: &mut Findings) {
    let led = chains.is_led_to();
    for stored in chains.tuples() {
        let tuple = stored.tuple;
        let is_led_to = led.get(usize::from(stored.number)) == Some(&true);
        if tuple.t_infomask2() & HEAP_ONLY_TUPLE == 0 || is_led_to {
            continue;
        }
        let valid = match fates.insertion(tuple) {
            Some(XactStatus::Committed) => true,
            Some(XactStatus::InProgress) => fates.is_prepared(tuple.t_xmin()),
            _ => false,
        };
        if valid {
            let message = "heap-only, but no redirect and no row of the page leads here".into();
            out.add(stored.draft(&HEAP_ONLY_WITHOUT_CHAIN, message, INFOMASK2));
        }
    }
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn without_a_log_the_hints_must_still_agree() {
        let tuple = |xmin, xmax, next, infomask| {
            let tuple = TupleBuilder::new(1).xids(xmin, xmax).ctid(0, next);
            tuple.infomask(infomask).finish()
        };
        let page = PageBuilder::new(8192, &[])
            .item(&tuple(800, 810, 2, 0x0900))
            .item(&tuple(810, 0, 2, 0x0B00))
            .item(&tuple(801, 811, 4, 0x0500))
            .item(&tuple(811, 0, 4, 0x0A00))
            .item(&tuple(802, 812, 6, 0x0900))
            .item(&tuple(812, 0, 6, 0x0A00))
            .item(&tuple(803, 813, 8, 0x0980))
            .item(&tuple(813, 0, 8, 0x0900))
            .finish(0);
        let expected = [
            "1 update-half-done: xmax 810 is marked as rolled back, but its new version at line \
             pointer 2 is valid, so both versions are there",
            "3 update-half-done: xmax 811 is marked as committed, but its new version at line \
             pointer 4 is not valid, so neither version is there",
        ];
        assert_eq!(Trial::table().told(&UpdateChainFates, &page), expected);
    }
}
