//! An item has fewer bytes than the smallest of its kind.

use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{LpFlags, Page};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::page::line_pointers::pointer_bytes;

/// The rule.
pub static ITEM_TOO_SHORT: Rule = Rule::from_page(include_str!("../../rules/item-too-short.md"));

/// A header with padding, and no column behind it.
const HEAP_ITEM_BYTES: u16 = 24;
/// Smaller than the smallest entry that any access method writes.
const INDEX_ITEM_BYTES: u16 = 8;

/// See [`ITEM_TOO_SHORT`].
pub struct ItemTooShort;

impl PageCheck for ItemTooShort {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&ITEM_TOO_SHORT] }
    }

    fn wants(&self) -> Wants {
        Wants::LINE_POINTERS
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let (least, kind) = match cx.fork.method {
            Some(AccessMethod::Heap) => (HEAP_ITEM_BYTES, "row"),
            _ => (INDEX_ITEM_BYTES, "index entry"),
        };
        for (number, pointer) in page.line_pointers() {
            let len = pointer.lp_len();
            if pointer.flags() != LpFlags::Normal || len >= least {
                continue;
            }
            let message = format!("lp_len {len} is less than the {least} bytes of any {kind}");
            let bytes = pointer_bytes(number);
            let draft = Draft::new(&ITEM_TOO_SHORT, message).item(number);
            out.add(draft.bytes(bytes.start, bytes.end).fact("len_bytes", len));
        }
    }
}

#[cfg(test)]
mod tests {
    use pgclinic_format::LinePointer;
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn a_row_has_24_bytes_and_an_index_entry_8() {
        let page = PageBuilder::new(8192, &[])
            .item(&TupleBuilder::new(0).finish())
            .item(&[0; 8])
            .line_pointer(LinePointer::new(0, LpFlags::Normal, 0))
            .line_pointer(LinePointer::new(0, LpFlags::Dead, 0))
            .finish(0);
        let expected = [
            "2 item-too-short: lp_len 8 is less than the 24 bytes of any row",
            "3 item-too-short: lp_len 0 is less than the 24 bytes of any row",
        ];
        assert_eq!(Trial::table().told(&ItemTooShort, &page), expected);
        let told = Trial::index(AccessMethod::Hash).told(&ItemTooShort, &page);
        let expected = "3 item-too-short: lp_len 0 is less than the 8 bytes of any index entry";
        assert_eq!(told, [expected]);
    }
}
