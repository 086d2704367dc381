//! The page size in the header is not the page's.

use pgclinic_format::Page;
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const WRONG_PAGE_SIZE: Rule = Rule {
    name: "wrong-page-size",
    severity: Severity::Damage,
    summary: "the page header claims another page size than the cluster has",
    explain: "\
Every page carries its own size in its header. Here it is not the one that this cluster was built \
with (`block_size` in `pg_controldata`).

The server does not test this when it reads a table, so it may work with the page as if nothing were \
wrong; `pageinspect`, `amcheck` and some index code stop with an error.

Either two bytes of the header were overwritten, or the page comes from another cluster with another \
block size: look at the other findings of the page. Take a copy first, then restore the page from a \
backup or a standby whose copy is sound.",
};

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
                // The server reads them all, as it does not look at the field; what refuses the page is another finding.
                .rows(0)
                .fact("claimed_bytes", claimed),
        );
    }
}
