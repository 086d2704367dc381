//! The meta page of a GIN index says something that cannot be.
//!
//! Truth: `GinMetaPageData` in `src/include/access/ginblock.h`, `shiftList` in
//! `src/backend/access/gin/ginfast.c`.

use pgclinic_format::Page;
use pgclinic_format::gin::{Meta, PageKind};
use pgclinic_format::types::INVALID_BLOCK;
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::gin::gin_page;

/// The rule.
pub static GIN_META_PAGE: Rule = Rule::from_page(include_str!("../../rules/gin-meta-page.md"));

/// See [`GIN_META_PAGE`].
pub struct GinMetaPage;

impl PageCheck for GinMetaPage {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&GIN_META_PAGE] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let Some((_, PageKind::Meta)) = gin_page(page, cx).filter(|_| cx.block == 0) else {
            return;
        };
        if let Some((message, at, len)) = Meta::of(page).and_then(|meta| fault(meta, page.len())) {
            out.add(Draft::new(&GIN_META_PAGE, message).bytes(at, at + len));
        }
    }
}

/// What is said, and where.
fn fault(meta: Meta, page_bytes: usize) -> Option<(String, usize, usize)> {
    let empty = meta.head == INVALID_BLOCK;
    let free = usize::try_from(meta.tail_free_bytes).unwrap_or(usize::MAX);
    let rows = meta.pending_rows;
    if empty != (meta.tail == INVALID_BLOCK) {
        let words = |block| match block {
            INVALID_BLOCK => "nowhere".to_owned(),
            block => format!("at block {block}"),
        };
        let (head, tail) = (words(meta.head), words(meta.tail));
        let message = format!("the list of waiting entries begins {head} and ends {tail}");
        return Some((message, Meta::HEAD_AT, 8));
    }
    if rows < 0 {
        let message = format!("nPendingHeapTuples {rows} is negative");
        return Some((message, Meta::PENDING_ROWS_AT, 8));
    }
    if free >= page_bytes {
        let message = format!("tailFreeSize {free} is not less than a page of {page_bytes} bytes");
        return Some((message, Meta::TAIL_FREE_AT, 4));
    }
    let pages = meta.pending_pages;
    if empty && (pages != 0 || rows != 0) {
        let message =
            format!("nPendingPages {pages} and nPendingHeapTuples {rows} of a list without pages");
        return Some((message, Meta::PENDING_PAGES_AT, 12));
    }
    (!empty && pages == 0).then(|| {
        let message = format!(
            "nPendingPages 0 of a list that begins at block {}",
            meta.head
        );
        (message, Meta::PENDING_PAGES_AT, 4)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork_trial::ForkTrial;
    use pgclinic_format::build::{PageBuilder, put_u32};
    use pgclinic_format::index_page::AccessMethod;

    fn said(edit: impl FnOnce(&mut Vec<u8>)) -> Vec<String> {
        let mut page = PageBuilder::new(8192, &[0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 8, 0]).finish(0);
        put_u32(&mut page, 24, u32::MAX);
        put_u32(&mut page, 28, u32::MAX);
        put_u32(&mut page, 72, 2);
        edit(&mut page);
        ForkTrial::new(AccessMethod::Gin, &[page]).messages(&GinMetaPage, 0)
    }

    #[test]
    fn an_empty_list_has_neither_pages_nor_rows() {
        assert!(said(|_| {}).is_empty());
        assert_eq!(
            said(|page| put_u32(page, 36, 3)),
            ["nPendingPages 3 and nPendingHeapTuples 0 of a list without pages"]
        );
        assert_eq!(
            said(|page| put_u32(page, 24, 7)),
            ["the list of waiting entries begins at block 7 and ends nowhere"]
        );
    }
}
