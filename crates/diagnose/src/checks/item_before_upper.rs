//! A line pointer names bytes before `pd_upper`, where no item can be.

use pgclinic_format::Page;
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::line_pointers::pointer_bytes;

/// The rule.
pub static ITEM_BEFORE_UPPER: Rule = Rule {
    name: "item-before-upper",
    severity: Severity::Damage,
    summary: "a line pointer names bytes in the free space or the header",
    explain: "\
Items fill a page from its end towards `pd_upper`; before it lie free space, line pointers and the \
page header. This line pointer names an item that begins before `pd_upper`. Either the pointer is \
wrong, or `pd_upper` is.

Reading does not test this: the server takes the bytes there for a tuple, and gives nonsense, an error \
about sizes, or a crash. As soon as VACUUM or an update tidies the page it stops with `corrupted line \
pointer`. Worse, while `pd_upper` is too large, the next insert may write its row over a row that is \
still needed.

If only one pointer complains, suspect the pointer; if most do, suspect `pd_upper`.

Stop writes to the relation and copy the cluster. An index is built anew with `REINDEX`. A table's page \
should come from a backup or a standby whose copy is sound.",
};

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
