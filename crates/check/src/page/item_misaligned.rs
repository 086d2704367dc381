//! An item does not begin on a multiple of eight bytes.

use pgclinic_format::Page;
use pgclinic_format::types::MAXALIGN;
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::page::line_pointers::pointer_bytes;

/// The rule.
pub static ITEM_MISALIGNED: Rule = Rule::from_page(include_str!("../../rules/item-misaligned.md"));

/// See [`ITEM_MISALIGNED`].
pub struct ItemMisaligned;

impl PageCheck for ItemMisaligned {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&ITEM_MISALIGNED] }
    }

    fn wants(&self) -> Wants {
        Wants::LINE_POINTERS
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        for (number, pointer) in page.line_pointers() {
            let misaligned = |start: &usize| !start.is_multiple_of(MAXALIGN);
            let Some(start) = pointer.range().map(|item| item.start).filter(misaligned) else {
                continue;
            };
            let message = format!("item begins at {start}, which is no multiple of {MAXALIGN}");
            let bytes = pointer_bytes(number);
            let draft = Draft::new(&ITEM_MISALIGNED, message).item(number);
            out.add(
                draft
                    .bytes(bytes.start, bytes.end)
                    .fact("start_bytes", start),
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
    fn items_begin_on_eights_whatever_their_length() {
        let page = PageBuilder::new(8192, &[])
            .item(&TupleBuilder::new(1).data(b"abc").finish())
            .line_pointer(LinePointer::new(8164, LpFlags::Normal, 24))
            .line_pointer(LinePointer::new(3, LpFlags::Redirect, 0))
            .finish(0);
        let told = Trial::table().told(&ItemMisaligned, &page);
        let expected = "2 item-misaligned: item begins at 8164, which is no multiple of 8";
        assert_eq!(told, [expected]);
    }
}
