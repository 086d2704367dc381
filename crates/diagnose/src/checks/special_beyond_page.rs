//! `pd_special` lies behind the end of the page.

use pgclinic_format::Page;
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const SPECIAL_BEYOND_PAGE: Rule = Rule {
    name: "special-beyond-page",
    severity: Severity::Damage,
    summary: "pd_special is beyond the end of the page",
    explain: "\
`pd_special` tells where the special space at the end of the page begins; on a table it equals the \
page size. Here it lies behind the last byte of the page.

The server refuses the page with `invalid page in block …`; all its rows are out of reach, also for \
`pg_dump`.

Something wrote over the header, or the page belongs to a cluster with larger pages. Take a copy \
first, then restore the page from a backup or a standby whose copy is sound. The rows are probably \
whole if the other header fields make sense.",
};

/// See [`SPECIAL_BEYOND_PAGE`].
pub struct SpecialBeyondPage;

impl PageCheck for SpecialBeyondPage {
    fn rules(&self) -> &'static [&'static Rule] {
        &[&SPECIAL_BEYOND_PAGE]
    }

    fn wants(&self) -> Wants {
        Wants::EVERY_PAGE
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        let (special, len) = (page.pd_special(), page.len());
        if usize::from(special) <= len {
            return;
        }
        let message = format!("pd_special {special} is beyond the page of {len} bytes");
        out.add(
            Draft::new(&SPECIAL_BEYOND_PAGE, message)
                .bytes(16, 18)
                .fact("special_bytes", special),
        );
    }
}
