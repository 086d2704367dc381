//! A redirect where only heaps have them.

use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{LpFlags, Page};
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::line_pointers::pointer_bytes;

/// The rule.
pub static REDIRECT_IN_INDEX: Rule = Rule {
    name: "redirect-in-index",
    severity: Severity::Damage,
    summary: "a line pointer of an index or a sequence is a redirect",
    explain: "\
Redirects belong to updates in place and are found on pages of tables only. No access method of an index, \
and no sequence, ever writes one. The two state bits of this line pointer were changed, or the whole \
page belongs to a table.

The server does not look at the state bits when it searches most indexes, so it may read the entry as if \
nothing were wrong, or take a line pointer number for an offset and compare keys with garbage: rows go \
missing from answers, duplicates slip into unique indexes, or the server crashes. When VACUUM removes \
entries from the page it can stop with `corrupted line pointer`.

The table is not touched by this, so no row is lost. Copy the cluster, find out what wrote there (look \
for more findings around this block), and build the index anew with `REINDEX`. Afterwards verify unique \
keys: while the index was wrong it could not keep duplicates out.",
};

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
