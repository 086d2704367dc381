//! `pd_upper` lies behind `pd_special`.

use pgclinic_format::Page;
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const UPPER_BEYOND_SPECIAL: Rule =
    Rule::from_page(include_str!("../../rules/upper-beyond-special.md"));

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
