//! A line pointer names bytes behind `pd_special`.

use pgclinic_format::Page;
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::page::line_pointers::pointer_bytes;

/// The rule.
pub static ITEM_BEYOND_PAGE: Rule =
    Rule::from_page(include_str!("../../rules/item-beyond-page.md"));

/// See [`ITEM_BEYOND_PAGE`].
pub struct ItemBeyondPage;

impl PageCheck for ItemBeyondPage {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&ITEM_BEYOND_PAGE] }
    }

    fn wants(&self) -> Wants {
        Wants::LINE_POINTERS
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        let special = usize::from(page.pd_special()).min(page.len());
        for (number, pointer) in page.line_pointers() {
            let Some(item) = pointer.range().filter(|item| item.end > special) else {
                continue;
            };
            let (start, end) = (item.start, item.end);
            let message = format!("item from {start} to {end} ends after pd_special {special}");
            let bytes = pointer_bytes(number);
            let draft = Draft::new(&ITEM_BEYOND_PAGE, message).item(number);
            let draft = draft.bytes(bytes.start, bytes.end);
            out.add(draft.fact("start_bytes", start).fact("end_bytes", end));
        }
    }
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};
    use pgclinic_format::index_page::AccessMethod;
    use pgclinic_format::{LinePointer, LpFlags};

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn an_item_ends_where_the_special_space_begins() {
        let page = PageBuilder::new(8192, &[])
            .item(&TupleBuilder::new(0).finish())
            .line_pointer(LinePointer::new(8160, LpFlags::Normal, 40))
            .line_pointer(LinePointer::new(8160, LpFlags::Unused, 40))
            .finish(0);
        let told = Trial::table().told(&ItemBeyondPage, &page);
        let expected = "2 item-beyond-page: item from 8160 to 8200 ends after pd_special 8192";
        assert_eq!(told, [expected]);
        let page = PageBuilder::new(8192, &[0; 16])
            .line_pointer(LinePointer::new(8160, LpFlags::Dead, 24))
            .finish(0);
        let told = Trial::index(AccessMethod::Btree).told(&ItemBeyondPage, &page);
        let expected = "1 item-beyond-page: item from 8160 to 8184 ends after pd_special 8176";
        assert_eq!(told, [expected]);
    }
}
