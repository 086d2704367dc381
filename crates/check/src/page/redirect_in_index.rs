//! A redirect where only heaps have them.

use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{LpFlags, Page};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::page::line_pointers::pointer_bytes;

/// The rule.
pub static REDIRECT_IN_INDEX: Rule =
    Rule::from_page(include_str!("../../rules/redirect-in-index.md"));

/// See [`REDIRECT_IN_INDEX`].
pub struct RedirectInIndex;

impl PageCheck for RedirectInIndex {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&REDIRECT_IN_INDEX] }
    }

    fn wants(&self) -> Wants {
        Wants::LINE_POINTERS
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let Some(method) = cx
            .fork
            .method
            .filter(|method| *method != AccessMethod::Heap)
        else {
            return;
        };
        for (number, pointer) in page.line_pointers() {
            if pointer.flags() != LpFlags::Redirect {
                continue;
            }
            let message = format!("LP_REDIRECT on a {} page", method.name());
            let bytes = pointer_bytes(number);
            let draft = Draft::new(&REDIRECT_IN_INDEX, message).item(number);
            out.add(draft.bytes(bytes.start, bytes.end));
        }
    }
}

#[cfg(test)]
mod tests {
    use pgclinic_format::LinePointer;
    use pgclinic_format::build::PageBuilder;

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn only_tables_redirect() {
        let page = PageBuilder::new(8192, &[0; 16])
            .item(&[0; 16])
            .line_pointer(LinePointer::new(1, LpFlags::Redirect, 0))
            .finish(0);
        let told = Trial::index(AccessMethod::Btree).told(&RedirectInIndex, &page);
        assert_eq!(told, ["2 redirect-in-index: LP_REDIRECT on a btree page"]);
        assert!(Trial::table().told(&RedirectInIndex, &page).is_empty());
    }
}
