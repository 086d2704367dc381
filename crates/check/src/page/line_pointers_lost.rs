//! A page has no line pointer, and its rows or entries still lie on it.
//!
//! A page that holds nothing has `pd_upper` at `pd_special`: `PageInit` begins so, and whatever
//! takes the last item from a page moves `pd_upper` back (`PageRepairFragmentation`,
//! `PageIndexTupleDelete` and `PageIndexMultiDelete` in `src/backend/storage/page/bufpage.c`).
//! `PageTruncateLinePointerArray` never takes the last line pointer.

use pgclinic_format::Page;
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub static LINE_POINTERS_LOST: Rule =
    Rule::from_page(include_str!("../../rules/line-pointers-lost.md"));

/// See [`LINE_POINTERS_LOST`].
pub struct LinePointersLost;

/// Where `pd_lower` and `pd_upper` stand.
const BOUNDS: (usize, usize) = (12, 16);

impl PageCheck for LinePointersLost {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&LINE_POINTERS_LOST] }
    }

    fn wants(&self) -> Wants {
        Wants {
            screened: false,
            ..Wants::LINE_POINTERS
        }
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        let (upper, special) = (page.pd_upper(), page.pd_special());
        let Some(bytes) = special.checked_sub(upper).filter(|bytes| *bytes > 0) else {
            return;
        };
        if page.line_pointers().next().is_some() {
            return;
        }
        let lower = page.pd_lower();
        let message = format!(
            "pd_lower {lower} leaves no line pointer, and {bytes} bytes of rows or entries lie from pd_upper {upper} to pd_special {special}"
        );
        let draft = Draft::new(&LINE_POINTERS_LOST, message).bytes(BOUNDS.0, BOUNDS.1);
        out.add(draft.fact("item_bytes", bytes));
    }
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder, put_u16};

    use super::*;
    use crate::trial::Trial;

    const LOWER_AT: usize = 12;

    #[test]
    fn rows_without_line_pointers_are_told() {
        let row = TupleBuilder::new(0).finish();
        let mut page = PageBuilder::new(8192, &[]).item(&row).finish(0);
        let told = |page: &[u8]| Trial::table().told(&LinePointersLost, page);
        assert_eq!(told(&page), [""; 0]);
        put_u16(&mut page, LOWER_AT, 24);
        let expected = "line-pointers-lost: pd_lower 24 leaves no line pointer, and 24 bytes of rows or entries lie from pd_upper 8168 to pd_special 8192";
        assert_eq!(told(&page), [expected]);
        let empty = PageBuilder::new(8192, &[]).finish(0);
        assert_eq!(told(&empty), [""; 0]);
    }
}
