//! A line pointer names bytes before `pd_upper`, where no item can be.

use pgclinic_format::Page;
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::page::line_pointers::pointer_bytes;

/// The rule.
pub static ITEM_BEFORE_UPPER: Rule =
    Rule::from_page(include_str!("../../rules/item-before-upper.md"));

/// See [`ITEM_BEFORE_UPPER`].
pub struct ItemBeforeUpper;

impl PageCheck for ItemBeforeUpper {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&ITEM_BEFORE_UPPER] }
    }

    fn wants(&self) -> Wants {
        Wants::LINE_POINTERS
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        let upper = usize::from(page.pd_upper());
        for (number, pointer) in page.line_pointers() {
            let Some(item) = pointer.range().filter(|item| item.start < upper) else {
                continue;
            };
            let message = format!("item begins at {}, before pd_upper {upper}", item.start);
            let bytes = pointer_bytes(number);
            let draft = Draft::new(&ITEM_BEFORE_UPPER, message).item(number);
            let draft = draft.bytes(bytes.start, bytes.end);
            out.add(
                draft
                    .fact("start_bytes", item.start)
                    .fact("upper_bytes", upper),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};
    use pgclinic_format::{LinePointer, LpFlags};

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn no_item_begins_in_the_free_space() {
        let page = PageBuilder::new(8192, &[])
            .item(&TupleBuilder::new(0).finish())
            .line_pointer(LinePointer::new(4096, LpFlags::Normal, 24))
            .line_pointer(LinePointer::new(1, LpFlags::Redirect, 0))
            .line_pointer(LinePointer::new(0, LpFlags::Dead, 0))
            .finish(0);
        let told = Trial::table().told(&ItemBeforeUpper, &page);
        let expected = "2 item-before-upper: item begins at 4096, before pd_upper 8168";
        assert_eq!(told, [expected]);
    }
}
