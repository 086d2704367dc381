//! `xmax` is a multixact that cannot be there: not made yet, or older than any that may remain.

use pgclinic_cluster::Relation;
use pgclinic_format::heap_tuple::{HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI};
use pgclinic_format::{HeapTuple, MultiXactId, Page};
use pgclinic_model::Rule;

use crate::check::{Limits, PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::heap::tuples::{StoredTuple, XMAX, is_surely_inserted, scan_asks, tuples};

/// The rule.
pub static MULTIXACT_IN_THE_FUTURE: Rule =
    Rule::from_page(include_str!("../../rules/multixact-in-the-future.md"));

/// The rule.
pub static MULTIXACT_BEFORE_MINIMUM: Rule =
    Rule::from_page(include_str!("../../rules/multixact-before-minimum.md"));

/// See [`MULTIXACT_IN_THE_FUTURE`] and [`MULTIXACT_BEFORE_MINIMUM`].
pub struct MultixactBounds;

impl PageCheck for MultixactBounds {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&MULTIXACT_IN_THE_FUTURE, &MULTIXACT_BEFORE_MINIMUM] }
    }

    fn wants(&self) -> Wants {
        Wants {
            screened: false,
            ..Wants::HEAP
        }
    }

    /// Freezing looks at a multixact even when a hint says that it counts for nothing, so this
    /// does.
    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let (Some(limits), Some(relation)) = (cx.fork.reach(), cx.fork.relation) else {
            return;
        };
        let settled = cx.fork.limits.is_some();
        for stored in tuples(page) {
            let tuple = stored.tuple;
            if !tuple.has(HEAP_XMAX_IS_MULTI) || tuple.xmax_is_from_before_93() {
                continue;
            }
            if let Some(draft) = judge(stored, &limits, relation)
                // Before recovery, catalogs may be younger than the page.
                && (settled || draft.rule.name != MULTIXACT_BEFORE_MINIMUM.name)
            {
                let multi = multixact(tuple);
                let asks = settled && scan_asks(page) && scan_asks_for(tuple, cx);
                let words = asks.then(|| server_words(multi, &limits)).flatten();
                out.add(
                    words
                        .into_iter()
                        .fold(draft.fact("multixact", multi.0), Draft::server_says),
                );
            }
        }
    }
}

fn multixact(tuple: HeapTuple<'_>) -> MultiXactId {
    MultiXactId(tuple.t_xmax().0)
}

fn judge(stored: StoredTuple<'_>, limits: &Limits, relation: &Relation) -> Option<Draft> {
    let (multi, minimum) = (multixact(stored.tuple), relation.relminmxid);
    if multi.0 == 0 {
        let message = "xmax is marked as a multixact and is 0, which is not a valid number".into();
        let counts = !stored.tuple.has(HEAP_XMAX_INVALID);
        return counts.then(|| stored.draft(&MULTIXACT_BEFORE_MINIMUM, message, XMAX));
    }
    if !multi.precedes(limits.next_multi) {
        let next = limits.next_multi;
        let message = format!("multixact {multi} is not before the next multixact {next}");
        let draft = stored.draft(&MULTIXACT_IN_THE_FUTURE, message, XMAX);
        return Some(draft.fact("next_multixact", next.0));
    }
    (minimum.0 != 0 && multi.precedes(minimum)).then(|| {
        let message = format!("multixact {multi} is before relminmxid {minimum}");
        let draft = stored.draft(&MULTIXACT_BEFORE_MINIMUM, message, XMAX);
        draft.fact("relminmxid", minimum.0)
    })
}

/// A scan has to know which member of the group changed the row.
fn scan_asks_for(tuple: HeapTuple<'_>, cx: &PageCx<'_>) -> bool {
    is_surely_inserted(tuple, cx.fork)
        && !tuple.has(HEAP_XMAX_INVALID)
        && !tuple.xmax_is_locked_only()
}

/// The bounds that the server tests are those of the whole cluster.
fn server_words(multi: MultiXactId, limits: &Limits) -> Option<String> {
    let what = if multi.0 == 0 {
        return None;
    } else if multi.precedes(limits.oldest_multi) {
        "does no longer exist"
    } else if !multi.precedes(limits.next_multi) {
        "has not been created yet"
    } else {
        return None;
    };
    Some(format!(
        "ERROR:  MultiXactId {multi} {what} -- apparent wraparound"
    ))
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;
    use crate::trial::Trial;

    fn page(multis: &[(u32, u16)]) -> Vec<u8> {
        let tuple = |multi, infomask| {
            TupleBuilder::new(1)
                .xids(800, multi)
                .infomask(infomask)
                .finish()
        };
        let page = PageBuilder::new(8192, &[]);
        let filled = multis.iter().fold(page, |page, (multi, infomask)| {
            page.item(&tuple(*multi, *infomask))
        });
        filled.finish(0)
    }

    #[test]
    fn both_ends_are_held_also_behind_a_hint() {
        let page = page(&[
            (5, 0x1100),
            (19, 0x1100),
            (20, 0x1100),
            (4, 0x1900),
            (0, 0x1100),
            (0, 0x1900),
            (4, 0x1180),
            (4_000_000_000, 0x1100),
        ]);
        let expected = [
            "3 multixact-in-the-future: multixact 20 is not before the next multixact 20",
            "4 multixact-before-minimum: multixact 4 is before relminmxid 5",
            "5 multixact-before-minimum: xmax is marked as a multixact and is 0, which is not a valid number",
            "8 multixact-before-minimum: multixact 4000000000 is before relminmxid 5",
        ];
        assert_eq!(Trial::table().told(&MultixactBounds, &page), expected);
    }

    #[test]
    fn the_server_speaks_only_when_it_has_to_ask() {
        let says = |multi, infomask| {
            Trial::table().server_says(&MultixactBounds, &page(&[(multi, infomask)]))
        };
        let future = "ERROR:  MultiXactId 20 has not been created yet -- apparent wraparound";
        let past = "ERROR:  MultiXactId 4 does no longer exist -- apparent wraparound";
        assert_eq!(says(20, 0x1100).as_deref(), Some(future));
        assert_eq!(says(4, 0x1300).as_deref(), Some(past));
        assert_eq!(says(20, 0x1000), None);
        assert_eq!(says(20, 0x11C0), None);
        assert_eq!(says(20, 0x1900), None);
    }
}
