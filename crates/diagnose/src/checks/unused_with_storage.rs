//! A free line pointer that still names bytes.

use pgclinic_format::{LpFlags, Page};
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::line_pointers::pointer_bytes;

/// The rule.
pub static UNUSED_WITH_STORAGE: Rule = Rule {
    name: "unused-with-storage",
    severity: Severity::Damage,
    summary: "an unused line pointer has a length",
    explain: "\
A line pointer that is free for use (`LP_UNUSED`) has length 0: the server clears all of it when it frees \
it. This one is marked unused and has a length, so most likely it named a live row until its two state \
bits were changed.

The server mostly says nothing. The row is gone from every scan; an index that points here finds nothing; \
the next VACUUM or prune of the page counts its bytes as free and writes over them. Until then the row \
can be brought back whole.

The usual causes are a flipped bit, a stray write into the array of line pointers, or a well-meant edit \
with a hex editor.

Keep VACUUM and writes away from the table (stop the server if you can) and copy the cluster now. Then \
take the page from a backup or a standby whose copy is sound. On an index page no row is at risk: use \
`REINDEX`.",
};

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
