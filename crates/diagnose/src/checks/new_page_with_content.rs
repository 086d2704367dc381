//! `pd_upper` is 0 on a page that is not all zeros.

use pgclinic_format::Page;
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const NEW_PAGE_WITH_CONTENT: Rule = Rule {
    name: "new-page-with-content",
    severity: Severity::Damage,
    summary: "pd_upper is 0, as on a page never used, but other bytes are set",
    explain: "\
A page that was never used is all zeros. Here `pd_upper` is 0, so the server takes the page for a \
new one and skips its checksum, but other bytes are set: the header was damaged.

The server reads such a page in two ways. If the rest of its header looks wrong too it refuses it \
with `invalid page in block …`; otherwise it takes it for empty, and all rows of the page are gone \
without a word. `pg_checksums` counts the page as new and says nothing.

The cause is mostly a sector of zeros at the beginning of the page: a torn write, a lost write, a \
bad disk. The rows may be whole behind the header. Take a copy first; then bring the page back from \
a backup or a standby, before VACUUM or an INSERT uses the page as if it were empty.",
};

/// See [`NEW_PAGE_WITH_CONTENT`].
pub struct NewPageWithContent;

impl PageCheck for NewPageWithContent {
    fn rules(&self) -> &'static [&'static Rule] {
        &[&NEW_PAGE_WITH_CONTENT]
    }

    fn wants(&self) -> Wants {
        Wants::EVERY_PAGE
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        if !page.is_new() || page.is_zeroed() {
            return;
        }
        let set = page.bytes().iter().filter(|byte| **byte != 0).count();
        let message =
            format!("pd_upper is 0, as on a page never used, but {set} other bytes are set");
        out.add(
            Draft::new(&NEW_PAGE_WITH_CONTENT, message)
                .bytes(14, 16)
                .fact("set_bytes", set),
        );
    }
}
