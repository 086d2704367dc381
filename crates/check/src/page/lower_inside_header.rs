//! `pd_lower` lies inside the 24 bytes of the header.

use pgclinic_format::Page;
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const LOWER_INSIDE_HEADER: Rule =
    Rule::from_page(include_str!("../../rules/lower-inside-header.md"));

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
