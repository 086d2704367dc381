//! The special space has another size than the access method gives it.

use pgclinic_format::{Fork, Page};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::index::words;

/// The rule.
pub const SPECIAL_SIZE_MISMATCH: Rule =
    Rule::from_page(include_str!("../../rules/special-size-mismatch.md"));

/// See [`SPECIAL_SIZE_MISMATCH`].
pub struct SpecialSizeMismatch;

impl PageCheck for SpecialSizeMismatch {
    fn rules(&self) -> &'static [&'static Rule] {
        &[&SPECIAL_SIZE_MISMATCH]
    }

    fn wants(&self) -> Wants {
        Wants::EVERY_PAGE
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let Some(method) = cx
            .fork
            .method
            .filter(|_| matches!(cx.fork.fork(), Fork::Main | Fork::Init))
        else {
            return;
        };
        let special = usize::from(page.pd_special());
        let expected = page.len() - method.special_bytes();
        let refused = special > page.len() || special % 8 != 0;
        if page.is_new() || special == expected || refused {
            return;
        }
        let message = format!(
            "pd_special {special} is not {expected}, as on every {} page",
            method.name()
        );
        let draft = Draft::new(&SPECIAL_SIZE_MISMATCH, message)
            .bytes(16, 18)
            .fact("special_bytes", special);
        let words = words::corrupted_page(cx.fork, cx.block);
        out.add(words.into_iter().fold(draft, Draft::server_says));
    }
}
