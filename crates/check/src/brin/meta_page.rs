//! The meta page of a BRIN index says something that cannot be.
//!
//! Truth: `src/include/access/brin_page.h`, `src/backend/access/common/reloptions.c`.

use pgclinic_format::Page;
use pgclinic_format::brin::{Meta, PAGE_META, PAGES_PER_RANGE_MAX, page_type};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::Rule;
use pgclinic_model::plural;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub static BRIN_META_PAGE: Rule = Rule::from_page(include_str!("../../rules/brin-meta-page.md"));

/// See [`BRIN_META_PAGE`].
pub struct BrinMetaPage;

impl PageCheck for BrinMetaPage {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&BRIN_META_PAGE] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let is_meta = cx.fork.method == Some(AccessMethod::Brin)
            && cx.block == 0
            && page_type(page) == Some(PAGE_META);
        let Some(meta) = Meta::of(page).filter(|_| is_meta && !page.is_new()) else {
            return;
        };
        if !(1..=PAGES_PER_RANGE_MAX).contains(&meta.pages_per_range) {
            let message = format!(
                "pagesPerRange {} is not one of 1 to {PAGES_PER_RANGE_MAX}",
                meta.pages_per_range
            );
            let at = Meta::PAGES_PER_RANGE_AT;
            out.add(Draft::new(&BRIN_META_PAGE, message).bytes(at, at + 4));
        }
        let settled = cx.fork.may_compare_pages();
        if settled && u64::from(meta.last_revmap_page) >= cx.fork.blocks {
            let message = format!(
                "lastRevmapPage {} is past the end of an index of {}",
                meta.last_revmap_page,
                plural(cx.fork.blocks, "block")
            );
            let at = Meta::LAST_REVMAP_PAGE_AT;
            out.add(Draft::new(&BRIN_META_PAGE, message).bytes(at, at + 4));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork_trial::ForkTrial;
    use pgclinic_format::build::{PageBuilder, put_u32};

    fn said(pages_per_range: u32, last: u32) -> Vec<String> {
        let mut page = PageBuilder::new(8192, &[0, 0, 0, 0, 0, 0, 0x91, 0xF0]).finish(0);
        put_u32(&mut page, 32, pages_per_range);
        put_u32(&mut page, 36, last);
        ForkTrial::new(AccessMethod::Brin, &[page, vec![0; 8192]]).messages(&BrinMetaPage, 0)
    }

    #[test]
    fn only_what_can_be_set_is_right() {
        assert!(said(128, 1).is_empty());
        assert!(said(1, 0).is_empty());
        assert_eq!(said(0, 1), ["pagesPerRange 0 is not one of 1 to 131072"]);
        assert_eq!(
            said(128, 2),
            ["lastRevmapPage 2 is past the end of an index of 2 blocks"]
        );
    }
}
