//! The special space has another size than the access method gives it.

use pgclinic_format::Fork;
use pgclinic_format::Page;
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::index_words;

/// The rule.
pub const SPECIAL_SIZE_MISMATCH: Rule = Rule {
    name: "special-size-mismatch",
    severity: Severity::Damage,
    summary: "the special space is not as large as this kind of page has it",
    explain: "\
Pages of tables have no special space, so their `pd_special` equals the page size. Index pages end in \
a special space of 8 or 16 bytes, by access method; sequences in one of 8. This page has another size \
there.

The server does not test this for tables. For indexes it stops with `index … contains corrupted page \
at block …`.

Either two bytes of the header were overwritten, or the whole page belongs to another relation: a \
page of an index that was written into a table, or the other way round. Take a copy first. For an \
index, `REINDEX` builds it anew from the table. For a table, restore the page from a backup or a \
standby whose copy is sound.",
};

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
        let words = index_words::corrupted_page(cx.fork, cx.block);
        out.add(words.into_iter().fold(draft, Draft::server_says));
    }
}
