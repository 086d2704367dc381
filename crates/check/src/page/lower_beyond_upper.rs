//! `pd_lower` lies behind `pd_upper`: line pointers and items would overlap.

use pgclinic_format::Page;
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const LOWER_BEYOND_UPPER: Rule =
    Rule::from_page(include_str!("../../rules/lower-beyond-upper.md"));

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
