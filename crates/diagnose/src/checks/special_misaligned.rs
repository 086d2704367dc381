//! `pd_special` is not MAXALIGNed.

use pgclinic_format::Page;
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const SPECIAL_MISALIGNED: Rule = Rule {
    name: "special-misaligned",
    severity: Severity::Damage,
    summary: "pd_special is not a multiple of 8",
    explain: "\
`pd_special` tells where the special space begins, always at a multiple of 8 bytes. Here it does not.

The server refuses the page with `invalid page in block …`; all its rows are out of reach, also for \
`pg_dump`.

Something wrote over the header: a stray write, a flipped bit, a damaged copy. Often these two bytes \
are wrong and the rows are whole. Take a copy first, then restore the page from a backup or a standby \
whose copy is sound.",
};

/// See [`SPECIAL_MISALIGNED`].
pub struct SpecialMisaligned;

impl PageCheck for SpecialMisaligned {
    fn rules(&self) -> &'static [&'static Rule] {
        &[&SPECIAL_MISALIGNED]
    }

    fn wants(&self) -> Wants {
        Wants::EVERY_PAGE
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        let special = page.pd_special();
        if special.is_multiple_of(8) {
            return;
        }
        let message = format!("pd_special {special} is not a multiple of 8");
        out.add(
            Draft::new(&SPECIAL_MISALIGNED, message)
                .bytes(16, 18)
                .fact("special_bytes", special),
        );
    }
}
