//! `pd_upper` lies behind `pd_special`.

use pgclinic_format::Page;
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const UPPER_BEYOND_SPECIAL: Rule = Rule {
    name: "upper-beyond-special",
    severity: Severity::Damage,
    summary: "pd_upper is beyond pd_special",
    explain: "\
`pd_upper` tells where the items begin and `pd_special` where they end. Here they begin behind their \
end.

The server refuses the page with `invalid page in block …`; all its rows are out of reach, also for \
`pg_dump`.

Something wrote over the first bytes of the page: a stray write, a bad disk or controller, a damaged \
copy. Often two bytes are wrong and the rows are whole. Take a copy first, then restore the page from \
a backup or a standby whose copy is sound. `zero_damaged_pages` would throw the rows away.",
};

/// See [`UPPER_BEYOND_SPECIAL`].
pub struct UpperBeyondSpecial;

impl PageCheck for UpperBeyondSpecial {
    fn rules(&self) -> &'static [&'static Rule] {
        &[&UPPER_BEYOND_SPECIAL]
    }

    fn wants(&self) -> Wants {
        Wants::EVERY_PAGE
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        let (upper, special) = (page.pd_upper(), page.pd_special());
        if upper <= special {
            return;
        }
        let message = format!("pd_upper {upper} is beyond pd_special {special}");
        let draft = Draft::new(&UPPER_BEYOND_SPECIAL, message).bytes(14, 18);
        out.add(
            draft
                .fact("upper_bytes", upper)
                .fact("special_bytes", special),
        );
    }
}
