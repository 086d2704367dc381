//! `pd_special` lies behind the end of the page.

use pgclinic_format::Page;
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const SPECIAL_BEYOND_PAGE: Rule =
    Rule::from_page(include_str!("../../rules/special-beyond-page.md"));

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
