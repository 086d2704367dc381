//! A page of waiting entries of a GIN index contradicts its flags or its count.
//!
//! Truth: `src/backend/access/gin/{README,ginfast.c}`.

use pgclinic_format::Page;
use pgclinic_format::gin::{GIN_LIST_FULLROW, KeyShape, Opaque, PageKind};
use pgclinic_format::types::Tid;
use pgclinic_model::Rule;
use pgclinic_model::{plural, verb_of};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::gin::{entries, gin_page};

/// The rule.
pub static GIN_PENDING_PAGE: Rule =
    Rule::from_page(include_str!("../../rules/gin-pending-page.md"));

/// See [`GIN_PENDING_PAGE`].
pub struct GinPendingPage;

impl PageCheck for GinPendingPage {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&GIN_PENDING_PAGE] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let Some((opaque, PageKind::Pending)) = gin_page(page, cx) else {
            return;
        };
        let mut before: Option<(Tid, u16)> = None;
        let mut rows = 0u32;
        for (item, entry) in entries(page) {
            let tid = entry.t_tid();
            let shape = cx.fork.columns.map(|columns| KeyShape { columns });
            let key = shape.and_then(|shape| entry.key(shape).ok());
            let column = key.map_or(0, |(key, _)| key.column);
            match before.filter(|(same, _)| *same == tid) {
                None => rows += 1,
                Some((_, last)) if column < last && column > 0 => {
                    let message = format!(
                        "entry {item}: column {column} of row {tid} stands after column {last}"
                    );
                    out.add(Draft::new(&GIN_PENDING_PAGE, message).item(item));
                }
                Some(_) => {}
            }
            before = Some((tid, column));
        }
        tell_count(page, opaque, rows, out);
    }
}

fn tell_count(page: Page<'_>, opaque: Opaque, rows: u32, out: &mut Findings) {
    let whole = opaque.has(GIN_LIST_FULLROW);
    let counted = u32::from(opaque.maxoff);
    let message = match (whole, rows) {
        (false, 2..) => format!("entries of {rows} rows on a page for a part of one row"),
        (false, _) if counted != 0 => {
            format!(
                "{counted} {are} counted on a page that holds none whole",
                counted = plural(counted, "row"),
                are = verb_of(counted, "are")
            )
        }
        (true, _) if counted != rows => {
            format!(
                "{counted} {are} counted, the page holds entries of {rows}",
                counted = plural(counted, "row"),
                are = verb_of(counted, "are")
            )
        }
        _ => return,
    };
    let at = usize::from(page.pd_special());
    out.add(Draft::new(&GIN_PENDING_PAGE, message).bytes(at + 4, at + 8));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork_trial::ForkTrial;
    use pgclinic_format::build::PageBuilder;
    use pgclinic_format::index_page::AccessMethod;

    fn said(count: u8, flags: u8, rows: &[u8]) -> Vec<String> {
        let special = [0xFF, 0xFF, 0xFF, 0xFF, count, 0, flags, 0];
        let mut page = PageBuilder::new(8192, &special);
        for offset in rows {
            page = page.item(&[0, 0, 1, 0, *offset, 0, 16, 0, 5, b'a', 0, 0, 0, 0, 0, 0]);
        }
        ForkTrial::new(AccessMethod::Gin, &[page.finish(0)]).messages(&GinPendingPage, 0)
    }

    #[test]
    fn whole_rows_are_counted_and_parts_stand_alone() {
        assert!(said(2, 0x30, &[1, 1, 2]).is_empty());
        assert!(said(0, 0x10, &[1, 1]).is_empty());
        assert_eq!(
            said(3, 0x30, &[1, 1, 2]),
            ["3 rows are counted, the page holds entries of 2"]
        );
        assert_eq!(
            said(0, 0x10, &[1, 2]),
            ["entries of 2 rows on a page for a part of one row"]
        );
    }
}
