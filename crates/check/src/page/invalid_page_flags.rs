//! `pd_flags` has bits beyond the valid ones.

use pgclinic_format::Page;
use pgclinic_format::page::PD_VALID_FLAG_BITS;
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const INVALID_PAGE_FLAGS: Rule =
    Rule::from_page(include_str!("../../rules/invalid-page-flags.md"));

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
