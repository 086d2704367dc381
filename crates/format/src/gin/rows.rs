//! Every row number that a page holds, whatever kind of page it is.

use crate::line_pointer::LpFlags;
use crate::page::Page;
use crate::types::Tid;

use super::entry::{EntryTuple, Posting};
use super::posting_page::Segments;
use super::{Opaque, PageKind};

/// A row number on a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// The entry's line pointer; nothing on a leaf of row numbers.
    pub item: Option<u16>,
    /// The row.
    pub tid: Tid,
}

/// Hands out the row numbers of a leaf of keys, a leaf of row numbers or a page of waiting entries.
/// A list is left at its first fault. Pages that nothing leads to may hold rows that are long gone:
/// only pages that are reached from the meta page and the root count.
pub fn for_each_row(page: Page<'_>, each: &mut dyn FnMut(Row)) {
    match Opaque::of(page).and_then(Opaque::kind) {
        Some(PageKind::EntryLeaf) => for_each_entry(page, |item, entry| {
            if let Some(Posting::List { rows, .. }) = entry.posting() {
                for tid in rows.map_while(Result::ok) {
                    each(Row {
                        item: Some(item),
                        tid,
                    });
                }
            }
        }),
        Some(PageKind::PostingLeaf) => {
            for segment in Segments::of(page) {
                for tid in segment.rows.map_while(Result::ok) {
                    each(Row { item: None, tid });
                }
            }
        }
        Some(PageKind::Pending) => for_each_entry(page, |item, entry| {
            each(Row {
                item: Some(item),
                tid: entry.t_tid(),
            });
        }),
        _ => {}
    }
}

fn for_each_entry<'a>(page: Page<'a>, mut each: impl FnMut(u16, EntryTuple<'a>)) {
    for (item, pointer) in page.line_pointers() {
        if pointer.flags() != LpFlags::Normal {
            continue;
        }
        if let Some(entry) = page.item(pointer).and_then(EntryTuple::parse) {
            each(item, entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{PageBuilder, put_u16};

    #[test]
    fn a_leaf_of_row_numbers_gives_all_its_lists() {
        let special = [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0x83, 0];
        let mut page = PageBuilder::new(8192, &special).finish(3);
        page[32..42].copy_from_slice(&[0, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
        page[42..50].copy_from_slice(&[0, 0, 2, 0, 1, 0, 0, 0]);
        put_u16(&mut page, 12, 50);
        let mut seen = Vec::new();
        let page = Page::parse(&page).expect("a block size");
        for_each_row(page, &mut |row| seen.push(row.tid.to_string()));
        assert_eq!(seen, ["(1,1)", "(1,2)", "(2,1)"]);
    }
}
