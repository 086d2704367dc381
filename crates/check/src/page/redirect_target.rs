//! A redirect leads nowhere, or to a row that indexes know already.

use pgclinic_format::heap_tuple::HEAP_ONLY_TUPLE;
use pgclinic_format::{HeapTuple, LinePointer, LpFlags, Page};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::page::line_pointers::pointer_bytes;

/// The rule.
pub static REDIRECT_TARGET: Rule = Rule::from_page(include_str!("../../rules/redirect-target.md"));

/// The rule.
pub static REDIRECT_TO_INDEXED_ROW: Rule =
    Rule::from_page(include_str!("../../rules/redirect-to-indexed-row.md"));

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
