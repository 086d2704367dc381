//! The layout version in the header is not 4.

use pgclinic_format::Page;
use pgclinic_format::page::LAYOUT_VERSION;
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const WRONG_LAYOUT_VERSION: Rule =
    Rule::from_page(include_str!("../../rules/wrong-layout-version.md"));

/// See [`WRONG_LAYOUT_VERSION`].
pub struct WrongLayoutVersion;

impl PageCheck for WrongLayoutVersion {
    fn rules(&self) -> &'static [&'static Rule] {
        &[&WRONG_LAYOUT_VERSION]
    }

    fn wants(&self) -> Wants {
        Wants::EVERY_PAGE
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        let claimed = page.layout_version();
        if page.is_new() || claimed == LAYOUT_VERSION {
            return;
        }
        let message =
            format!("the header claims layout version {claimed} instead of {LAYOUT_VERSION}");
        out.add(
            Draft::new(&WRONG_LAYOUT_VERSION, message)
                .bytes(18, 19)
                // The server reads them all, as it does not look at the field; what refuses the
                // page is another finding.
                .rows(0)
                .fact("claimed_version", claimed),
        );
    }
}
