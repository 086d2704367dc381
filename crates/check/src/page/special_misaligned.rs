//! `pd_special` is not MAXALIGNed.

use pgclinic_format::Page;
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const SPECIAL_MISALIGNED: Rule =
    Rule::from_page(include_str!("../../rules/special-misaligned.md"));

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
