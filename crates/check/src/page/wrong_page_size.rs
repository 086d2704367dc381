//! The page size in the header is not the page's.

use pgclinic_format::Page;
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const WRONG_PAGE_SIZE: Rule = Rule::from_page(include_str!("../../rules/wrong-page-size.md"));

/// See [`WRONG_PAGE_SIZE`].
pub struct WrongPageSize;

impl PageCheck for WrongPageSize {
    fn rules(&self) -> &'static [&'static Rule] {
        &[&WRONG_PAGE_SIZE]
    }

    fn wants(&self) -> Wants {
        Wants::EVERY_PAGE
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        let claimed = page.page_size();
        if page.is_new() || usize::from(claimed) == page.len() {
            return;
        }
        let message = format!(
            "the header claims a page of {claimed} bytes instead of {}",
            page.len()
        );
        out.add(
            Draft::new(&WRONG_PAGE_SIZE, message)
                .bytes(18, 20)
                // The server reads them all, as it does not look at the field; what refuses the
                // page is another finding.
                .rows(0)
                .fact("claimed_bytes", claimed),
        );
    }
}
