//! `pd_lower` lies inside the 24 bytes of the header.

use pgclinic_format::Page;
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const LOWER_INSIDE_HEADER: Rule = Rule {
    name: "lower-inside-header",
    severity: Severity::Damage,
    summary: "pd_lower points into the page header",
    explain: "\
`pd_lower` tells where the line pointers end. They begin at byte 24, behind the header, so a smaller \
value (or one that is not a multiple of 4 from there) makes no sense on a page that was ever used.

The server does not test this. It computes a negative number of line pointers, takes the page for \
empty, and answers queries without the rows of this page and without a message: silent loss.

Something wrote over the header. The rows are most likely still there, and so are the line pointers \
behind byte 24. Take a copy before VACUUM or an INSERT reuses the page, then restore it from a \
backup or a standby.",
};

/// See [`LOWER_INSIDE_HEADER`].
pub struct LowerInsideHeader;

impl PageCheck for LowerInsideHeader {
    fn rules(&self) -> &'static [&'static Rule] {
        &[&LOWER_INSIDE_HEADER]
    }

    fn wants(&self) -> Wants {
        Wants::EVERY_PAGE
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        let lower = page.pd_lower();
        if page.is_new() || usize::from(lower) >= HEADER_BYTES {
            return;
        }
        let message = format!("pd_lower {lower} is inside the page header of {HEADER_BYTES} bytes");
        out.add(
            Draft::new(&LOWER_INSIDE_HEADER, message)
                .bytes(12, 14)
                .fact("lower_bytes", lower),
        );
    }
}
