//! `pd_upper` is 0 on a page that is not all zeros.

use pgclinic_format::Page;
use pgclinic_model::Rule;
use pgclinic_model::{plural, verb_of};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const NEW_PAGE_WITH_CONTENT: Rule =
    Rule::from_page(include_str!("../../rules/new-page-with-content.md"));

/// See [`NEW_PAGE_WITH_CONTENT`].
pub struct NewPageWithContent;

impl PageCheck for NewPageWithContent {
    fn rules(&self) -> &'static [&'static Rule] {
        &[&NEW_PAGE_WITH_CONTENT]
    }

    fn wants(&self) -> Wants {
        Wants::EVERY_PAGE
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        if !page.is_new() || page.is_zeroed() {
            return;
        }
        let set = page.bytes().iter().filter(|byte| **byte != 0).count();
        let message = format!(
            "pd_upper is 0, as on a page never used, but {set} {are} set",
            set = plural(set, "other byte"),
            are = verb_of(set, "are")
        );
        out.add(
            Draft::new(&NEW_PAGE_WITH_CONTENT, message)
                .bytes(14, 16)
                .fact("set_bytes", set),
        );
    }
}
