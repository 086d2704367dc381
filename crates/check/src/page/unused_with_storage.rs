//! A free line pointer that still names bytes.

use pgclinic_format::{LpFlags, Page};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::page::line_pointers::pointer_bytes;

/// The rule.
pub static UNUSED_WITH_STORAGE: Rule =
    Rule::from_page(include_str!("../../rules/unused-with-storage.md"));

/// See [`UNUSED_WITH_STORAGE`].
pub struct UnusedWithStorage;

impl PageCheck for UnusedWithStorage {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&UNUSED_WITH_STORAGE] }
    }

    fn wants(&self) -> Wants {
        Wants::LINE_POINTERS
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        for (number, pointer) in page.line_pointers() {
            if pointer.flags() != LpFlags::Unused || pointer.lp_len() == 0 {
                continue;
            }
            let (start, len) = (pointer.lp_off(), pointer.lp_len());
            let message = format!("LP_UNUSED with lp_len {len} at lp_off {start}");
            let bytes = pointer_bytes(number);
            let draft = Draft::new(&UNUSED_WITH_STORAGE, message).item(number);
            let draft = draft.bytes(bytes.start, bytes.end);
            out.add(draft.fact("start_bytes", start).fact("len_bytes", len));
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
    fn what_is_unused_has_no_length() {
        let page = PageBuilder::new(8192, &[])
            .line_pointer(LinePointer::new(0, LpFlags::Unused, 0))
            .line_pointer(LinePointer::new(8152, LpFlags::Unused, 40))
            .line_pointer(LinePointer::new(8112, LpFlags::Dead, 40))
            .finish(0);
        let told = Trial::table().told(&UnusedWithStorage, &page);
        let expected = "2 unused-with-storage: LP_UNUSED with lp_len 40 at lp_off 8152";
        assert_eq!(told, [expected]);
    }
}
