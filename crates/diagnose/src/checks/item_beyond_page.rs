//! A line pointer names bytes behind `pd_special`.

use pgclinic_format::Page;
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::line_pointers::pointer_bytes;

/// The rule.
pub static ITEM_BEYOND_PAGE: Rule = Rule {
    name: "item-beyond-page",
    severity: Severity::Damage,
    summary: "a line pointer names bytes behind the room for items",
    explain: "\
A line pointer holds the offset and the length of one item. This one ends behind `pd_special`, in the \
special space of an index page or outside the page altogether. No server writes that.

The server does not test it when it reads a row. It takes whatever bytes stand there for a tuple: the \
answer may be a crash, an absurd `invalid memory alloc request size`, or nonsense that looks like a \
value. VACUUM and inserts that tidy the page stop with `corrupted line pointer`.

Four bytes were overwritten or a bit of them flipped, or the page was written only in part. The row \
itself is often whole and only its pointer lies; it is at risk until the pointer is right again.

Copy the cluster first. For an index, `REINDEX` is enough. For a table, take the page from a backup or \
a standby whose copy is sound. Do not run VACUUM before.",
};

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
            let message = format!("item from {start} to {end} ends behind pd_special {special}");
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
        let expected = "2 item-beyond-page: item from 8160 to 8200 ends behind pd_special 8192";
        assert_eq!(told, [expected]);
        let page = PageBuilder::new(8192, &[0; 16])
            .line_pointer(LinePointer::new(8160, LpFlags::Dead, 24))
            .finish(0);
        let told = Trial::index(AccessMethod::Btree).told(&ItemBeyondPage, &page);
        let expected = "1 item-beyond-page: item from 8160 to 8184 ends behind pd_special 8176";
        assert_eq!(told, [expected]);
    }
}
