//! Update chains whose transactions cannot have come after each other.

use pgclinic_cluster::XactStatus;
use pgclinic_format::heap_tuple::{
    HEAP_ONLY_TUPLE, HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI,
    HEAP_XMIN_COMMITTED, HEAP_XMIN_FROZEN, HEAP_XMIN_INVALID,
};
use pgclinic_format::{HeapTuple, Page};
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::fates::Fates;
use crate::findings::Findings;
use crate::tuples::{INFOMASK, INFOMASK2, StoredTuple, XMIN};
use crate::update_chains::Chains;

/// The rule.
pub static UPDATE_OUTLIVES_ROW: Rule = Rule {
    name: "update-outlives-row",
    severity: Severity::Damage,
    summary: "an update is valid though the insertion of the row it updated is not",
    explain: "\
A transaction can only update a row that it sees: one whose insertion committed, or one that it inserted \
itself. So when the next version of a row is valid, the version before it must be too. Here the commit log \
says that the next version was committed (or is part of a prepared transaction) and that the insertion of \
the version before it was rolled back or never finished.

Queries show the new version, if they come to it: a sequential scan does; an index search that begins at \
the old version may stop there. VACUUM removes the old version as garbage, and the new one then hangs in \
the air. There is no message; `amcheck` reports it from version 16 on.

One of the two `xmin` was overwritten, or a part of `pg_xact` is older than the table, for instance after \
an incomplete restore. In the second case many rows have it.

Copy the cluster first. Take the page, or the files of `pg_xact`, from a backup or a standby whose copy is \
sound.",
};

/// The rule.
pub static UPDATE_HALF_DONE: Rule = Rule {
    name: "update-half-done",
    severity: Severity::Damage,
    summary: "of an updated row both versions are valid, or neither",
    explain: "\
An update ends one version of a row and begins the next, in one transaction: either both happened or \
neither. Here the flags of the two versions say different things about that one transaction. Either the \
old version says it was rolled back and the new one that it committed, so that the row is there twice; or \
the other way round, so that it is gone. The commit log no longer reaches back to it, so only a copy can \
tell which is right.

There is no message. Sums are wrong, unique keys appear twice, or a row is missing.

A hint bit of one of the two headers was overwritten.

Copy the cluster first. Compare the row with a backup or a standby, and take the page from there.",
};

/// The rule.
pub static HEAP_ONLY_WITHOUT_CHAIN: Rule = Rule {
    name: "heap-only-without-chain",
    severity: Severity::Damage,
    summary: "a row that no index knows is not part of an update chain",
    explain: "\
`HEAP_ONLY_TUPLE` says that no index entry leads to this row: it is found through the older versions of \
the row on the same page, or through the redirect that took their place. Nothing on the page leads here.

A sequential scan shows the row, an index search does not: the same query gives different answers, unique \
keys can be inserted twice, and foreign keys are checked against nothing. VACUUM cannot clean up behind it. \
There is no message; `amcheck` reports it from version 16 on: `tuple is root of chain but is marked as \
heap-only tuple`.

What led here was overwritten (a redirect, a line pointer, the `t_ctid` or `xmax` of the version before), \
or the flag itself was.

Copy the cluster first. Take the page from a backup or a standby whose copy is sound. Without one, copy the \
rows into a new table by a sequential scan (`SET enable_indexscan = off; SET enable_bitmapscan = off; SET \
enable_indexonlyscan = off;`).",
};

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
        let fates = Fates::of(cx.fork);
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

fn outliving(old: StoredTuple<'_>, new: StoredTuple<'_>, fates: &Fates<'_>, out: &mut Findings) {
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
fn adrift(chains: &Chains<'_>, fates: &Fates<'_>, out: &mut Findings) {
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
