//! The stored checksum is not the one of the bytes.

use pgclinic_format::Page;
use pgclinic_model::Rule;

use crate::check::{Checksum, PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const CHECKSUM_MISMATCH: Rule =
    Rule::from_page(include_str!("../../rules/checksum-mismatch.md"));

/// See [`CHECKSUM_MISMATCH`].
pub struct ChecksumMismatch;

impl PageCheck for ChecksumMismatch {
    fn rules(&self) -> &'static [&'static Rule] {
        &[&CHECKSUM_MISMATCH]
    }

    fn wants(&self) -> Wants {
        Wants::EVERY_PAGE
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let Checksum::Wrong { computed } = cx.checksum else {
            return;
        };
        let stored = page.pd_checksum();
        let message =
            format!("stored checksum {stored} does not match computed checksum {computed}");
        let draft = Draft::new(&CHECKSUM_MISMATCH, message).bytes(8, 10);
        out.add(draft.fact("stored", stored).fact("computed", computed));
    }
}
