//! A page of row numbers of a GIN index cannot be read, or its row numbers do not rise.
//!
//! Truth: `src/backend/access/gin/gindatapage.c`.

use pgclinic_format::Page;
use pgclinic_format::gin::{
    DATA_AT, GIN_COMPRESSED, Opaque, PageKind, PostingItem, Segments, posting_items, right_bound,
};
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::types::Tid;
use pgclinic_model::Rule;
use pgclinic_model::{plural, verb_of};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::gin::gin_page;

/// The rule.
pub static GIN_POSTING_PAGE: Rule =
    Rule::from_page(include_str!("../../rules/gin-posting-page.md"));

/// See [`GIN_POSTING_PAGE`].
pub struct GinPostingPage;

impl PageCheck for GinPostingPage {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&GIN_POSTING_PAGE] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let fault = match gin_page(page, cx) {
            Some((opaque, PageKind::PostingLeaf)) => leaf_fault(page, opaque),
            Some((opaque, PageKind::PostingInner)) => inner_fault(page, opaque),
            _ => None,
        };
        if let Some((message, [start, end])) = fault {
            out.add(Draft::new(&GIN_POSTING_PAGE, message).bytes(start, end));
        }
    }
}

type Fault = (String, [usize; 2]);

fn leaf_fault(page: Page<'_>, opaque: Opaque) -> Option<Fault> {
    let end = usize::from(page.pd_lower());
    if opaque.has(GIN_COMPRESSED) && end < DATA_AT {
        let message = format!("pd_lower {end} is inside the right bound, which ends at {DATA_AT}");
        return Some((message, [12, 14]));
    }
    let mut before: Option<Tid> = None;
    for segment in Segments::of(page) {
        let place = [segment.at, segment.at + 8];
        for row in segment.rows {
            let tid = match row {
                Ok(tid) => tid,
                Err(fault) => return Some((format!("at byte {}: {fault}", segment.at), place)),
            };
            if before.is_some_and(|before| tid <= before) {
                let before = before.unwrap_or(tid);
                let message = format!(
                    "at byte {}: row {tid} stands after row {before}",
                    segment.at
                );
                return Some((message, place));
            }
            before = Some(tid);
        }
    }
    let last = before.filter(|_| opaque.right().is_some())?;
    let bound = right_bound(page)?;
    (last > bound).then(|| {
        (
            format!("row {last} is above the right bound {bound} of the page"),
            [24, 30],
        )
    })
}

fn inner_fault(page: Page<'_>, opaque: Opaque) -> Option<Fault> {
    let count = usize::from(opaque.maxoff);
    let (lower, special) = (usize::from(page.pd_lower()), usize::from(page.pd_special()));
    let end = DATA_AT + count * PostingItem::BYTES;
    if end > special {
        let message = format!(
            "{} of {} bytes {} not fit",
            plural(count, "item"),
            PostingItem::BYTES,
            if count == 1 { "does" } else { "do" }
        );
        return Some((message, [special + 4, special + 6]));
    }
    // Pages from before 9.4 that were not changed since have the pd_lower of an empty page.
    if lower != end && lower != HEADER_BYTES {
        let message = format!(
            "pd_lower {lower} is not {end}, where {} {}",
            plural(count, "item"),
            verb_of(count, "end")
        );
        return Some((message, [12, 14]));
    }
    let mut before: Option<Tid> = None;
    for (index, item) in posting_items(page).enumerate() {
        // The last key of the last page of a level says nothing.
        if index + 1 == count && opaque.right().is_none() {
            break;
        }
        let at = DATA_AT + index * PostingItem::BYTES;
        let place = [at, at + PostingItem::BYTES];
        if let Some(before) = before.filter(|before| item.key <= *before) {
            let message = format!("highest row {} stands after {before}", item.key);
            return Some((message, place));
        }
        before = Some(item.key);
    }
    let last = before.filter(|_| opaque.right().is_some())?;
    let bound = right_bound(page)?;
    (last > bound).then(|| {
        (
            format!("highest row {last} is above the right bound {bound} of the page"),
            [24, 30],
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork_trial::ForkTrial;
    use pgclinic_format::build::{PageBuilder, put_u16};
    use pgclinic_format::index_page::AccessMethod;

    fn said(special: [u8; 8], data: &[u8]) -> Vec<String> {
        let mut page = PageBuilder::new(8192, &special).finish(0);
        page[24..24 + data.len()].copy_from_slice(data);
        put_u16(
            &mut page,
            12,
            u16::try_from(24 + data.len()).expect("short"),
        );
        ForkTrial::new(AccessMethod::Gin, &[page]).messages(&GinPostingPage, 0)
    }

    #[test]
    fn row_numbers_rise_up_to_the_right_bound() {
        let right = [9, 0, 0, 0, 0, 0, 0x83, 0];
        let list = |offset| [0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0, offset, 0];
        let bounded = |bound: u8, offset| {
            let mut list = list(offset).to_vec();
            list[4] = bound;
            list
        };
        assert!(said(right, &bounded(2, 1)).is_empty());
        assert_eq!(
            said(right, &bounded(2, 9)),
            ["row (1,10) is above the right bound (1,2) of the page"]
        );
        assert_eq!(
            said(right, &bounded(2, 0)),
            ["at byte 32: row (1,1) stands after row (1,1)"]
        );
        let last = [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0x83, 0];
        assert!(
            said(last, &bounded(0, 9)).is_empty(),
            "the last page has no bound"
        );
    }

    #[test]
    fn items_of_an_inner_page_end_where_the_header_says() {
        let special = [0xFF, 0xFF, 0xFF, 0xFF, 1, 0, 1, 0];
        let data = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0];
        assert!(said(special, &data).is_empty());
        assert_eq!(
            said(special, &data[..17]),
            ["pd_lower 41 is not 42, where 1 item ends"]
        );
    }
}
