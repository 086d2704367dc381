//! `pd_flags` has bits beyond the valid ones.

use pgclinic_format::Page;
use pgclinic_format::page::PD_VALID_FLAG_BITS;
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const INVALID_PAGE_FLAGS: Rule = Rule {
    name: "invalid-page-flags",
    severity: Severity::Damage,
    summary: "pd_flags has bits that no PostgreSQL sets",
    explain: "\
`pd_flags` in the page header has three bits with a meaning: 0x0001 (free line pointers), 0x0002 \
(page full) and 0x0004 (all rows visible). Others are set here.

The server refuses the page with `invalid page in block …`; all its rows are out of reach, also for \
`pg_dump`. It is one of the few signs of damage that it sees without data checksums.

Something wrote over the header. Compare the other header fields: if they make sense the rows are \
probably whole, and only these two bytes are wrong. Take a copy first, then restore the page from a \
backup or a standby. `zero_damaged_pages` would throw away every row on the page.",
};

/// See [`INVALID_PAGE_FLAGS`].
pub struct InvalidPageFlags;

impl PageCheck for InvalidPageFlags {
    fn rules(&self) -> &'static [&'static Rule] {
        &[&INVALID_PAGE_FLAGS]
    }

    fn wants(&self) -> Wants {
        Wants::EVERY_PAGE
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        let flags = page.pd_flags();
        if flags & !PD_VALID_FLAG_BITS == 0 {
            return;
        }
        let message = format!("pd_flags {flags:#06x} has bits beyond {PD_VALID_FLAG_BITS:#06x}");
        out.add(
            Draft::new(&INVALID_PAGE_FLAGS, message)
                .bytes(10, 12)
                .fact("pd_flags", flags),
        );
    }
}
