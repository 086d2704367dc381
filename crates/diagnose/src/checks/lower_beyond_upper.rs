//! `pd_lower` lies behind `pd_upper`: line pointers and items would overlap.

use pgclinic_format::Page;
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const LOWER_BEYOND_UPPER: Rule = Rule {
    name: "lower-beyond-upper",
    severity: Severity::Damage,
    summary: "pd_lower is beyond pd_upper",
    explain: "\
The page header says that the line pointers end (`pd_lower`) behind the place where the items \
begin (`pd_upper`). Both cannot be true.

The server refuses the page with `invalid page in block …`, so every row on it is out of reach, \
also for `pg_dump`. The rows themselves are often whole: only two numbers of the header may be \
wrong. Something wrote over the first bytes of the page: a stray write, a bad disk or controller, \
or a damaged copy.

Restore the page from a backup or a standby whose copy is sound. With `zero_damaged_pages` the \
server would throw all rows of the page away.",
};

/// See [`LOWER_BEYOND_UPPER`].
pub struct LowerBeyondUpper;

impl PageCheck for LowerBeyondUpper {
    fn rules(&self) -> &'static [&'static Rule] {
        &[&LOWER_BEYOND_UPPER]
    }

    fn wants(&self) -> Wants {
        Wants::EVERY_PAGE
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        let (lower, upper) = (page.pd_lower(), page.pd_upper());
        if upper == 0 || lower <= upper {
            return;
        }
        let message = format!("pd_lower {lower} is beyond pd_upper {upper}");
        let draft = Draft::new(&LOWER_BEYOND_UPPER, message).bytes(12, 16);
        out.add(draft.fact("lower_bytes", lower).fact("upper_bytes", upper));
    }
}
