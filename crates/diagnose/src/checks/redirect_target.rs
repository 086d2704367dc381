//! A redirect leads nowhere, or to a row that indexes know already.

use pgclinic_format::heap_tuple::HEAP_ONLY_TUPLE;
use pgclinic_format::{HeapTuple, LinePointer, LpFlags, Page};
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::line_pointers::pointer_bytes;

/// The rule.
pub static REDIRECT_TARGET: Rule = Rule {
    name: "redirect-target",
    severity: Severity::Damage,
    summary: "a redirect does not lead to a tuple",
    explain: "\
When a row was updated in place (HOT) and its first version is gone, the line pointer that indexes know \
becomes a redirect: it holds the number of the line pointer where the row lives now. This redirect names \
a number that the page does not have, itself, or a line pointer that holds no tuple.

A sequential scan skips redirects and still finds the row, if it is there. A search through an index \
follows the redirect, finds nothing, and says nothing: the same query gives different answers with and \
without the index. `amcheck` reports it from version 14 on.

The redirect itself was overwritten, or the line pointer behind it was.

Copy the cluster first. Look for the row with `SET enable_indexscan = off; SET enable_bitmapscan = off;`. \
Then take the page from a backup or a standby whose copy is sound, or dump the table with a sequential \
scan and load it again.",
};

/// The rule.
pub static REDIRECT_TO_INDEXED_ROW: Rule = Rule {
    name: "redirect-to-indexed-row",
    severity: Severity::Damage,
    summary: "a redirect leads to a row that has index entries of its own",
    explain: "\
When a row was updated in place (HOT) and its first version is gone, the line pointer that indexes know \
becomes a redirect to the version that is left, which has no index entries: it is marked heap-only. The row \
that this redirect leads to is not marked so.

If the mark is right, the redirect leads to a foreign row: an index search finds it under a key that is not \
its own, and the row of that key is out of reach. If the mark is wrong, nothing is lost yet, but VACUUM and \
index builds treat the row as one that indexes know. There is no message; `amcheck` reports it from version \
16 on: `redirected line pointer points to a non-heap-only tuple`.

The redirect was overwritten, or a bit of the row's `t_infomask2` flipped.

Copy the cluster first. Compare the row by a sequential scan and by its index with a backup or a standby, \
and take the page from there.",
};

/// See [`REDIRECT_TARGET`] and [`REDIRECT_TO_INDEXED_ROW`].
pub struct RedirectTarget;

impl PageCheck for RedirectTarget {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&REDIRECT_TARGET, &REDIRECT_TO_INDEXED_ROW] }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        for (number, pointer) in page.line_pointers() {
            if pointer.flags() != LpFlags::Redirect {
                continue;
            }
            if let Some((rule, why)) = trouble(page, number, pointer) {
                let bytes = pointer_bytes(number);
                let draft = Draft::new(rule, why).item(number).rows(1);
                let draft = draft.bytes(bytes.start, bytes.end);
                out.add(draft.fact("target_item", pointer.lp_off()));
            }
        }
    }
}

fn trouble(page: Page<'_>, number: u16, pointer: LinePointer) -> Option<(&'static Rule, String)> {
    let target = pointer.lp_off();
    if target == number {
        return Some((&REDIRECT_TARGET, "redirect to itself".into()));
    }
    let count = page.line_pointer_count();
    let Some(there) = page.line_pointer(target) else {
        let why = format!("redirect to line pointer {target} of a page that has {count}");
        return Some((&REDIRECT_TARGET, why));
    };
    if there.flags() != LpFlags::Normal {
        let flags = there.flags().name();
        let why = format!("redirect to line pointer {target}, which is {flags}");
        return Some((&REDIRECT_TARGET, why));
    }
    let tuple = page.item(there).and_then(HeapTuple::parse)?;
    let why = format!("redirect to line pointer {target}, whose row is not heap-only");
    (tuple.t_infomask2() & HEAP_ONLY_TUPLE == 0).then_some((&REDIRECT_TO_INDEXED_ROW, why))
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn a_redirect_leads_to_a_tuple() {
        let redirect = |target| LinePointer::new(target, LpFlags::Redirect, 0);
        let page = PageBuilder::new(8192, &[])
            .item(&TupleBuilder::new(0).finish())
            .line_pointer(redirect(1))
            .line_pointer(redirect(3))
            .line_pointer(redirect(0))
            .line_pointer(redirect(2))
            .line_pointer(redirect(8))
            .line_pointer(LinePointer::new(0, LpFlags::Dead, 0))
            .line_pointer(redirect(7))
            .finish(0);
        let expected = [
            "2 redirect-to-indexed-row: redirect to line pointer 1, whose row is not heap-only",
            "3 redirect-target: redirect to itself",
            "4 redirect-target: redirect to line pointer 0 of a page that has 8",
            "5 redirect-target: redirect to line pointer 2, which is LP_REDIRECT",
            "6 redirect-target: redirect to line pointer 8, which is LP_REDIRECT",
            "8 redirect-target: redirect to line pointer 7, which is LP_DEAD",
        ];
        assert_eq!(Trial::table().told(&RedirectTarget, &page), expected);
    }
}
