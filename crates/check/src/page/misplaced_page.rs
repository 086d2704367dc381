//! A page that by its own words belongs to another place of its fork: one that stands there too, or
//! that changed places with the page of this one.
//!
//! Rows name their block (`pgclinic_cluster::block_by_rows`); the neighbours of a btree page name
//! it.

use pgclinic_cluster::{Misplaced, block_by_rows, misplaced};
use pgclinic_format::index_page::{AccessMethod, btree_flags, btree_links};
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::{PageCheck, PageClass, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub static MISPLACED_PAGE: Rule = Rule::from_page(include_str!("../../rules/misplaced-page.md"));

/// See [`MISPLACED_PAGE`].
pub struct MisplacedPage;

impl PageCheck for MisplacedPage {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&MISPLACED_PAGE] }
    }

    fn wants(&self) -> Wants {
        Wants {
            level: Level::Structure,
            pages: PageClass::LinePointers,
            screened: false,
        }
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let other = match cx.fork.method {
            Some(AccessMethod::Heap) => block_by_rows(page, cx.block),
            Some(AccessMethod::Btree) => block_by_neighbours(page, cx),
            _ => None,
        };
        let Some((other, how)) =
            other.and_then(|other| Some((other, how_it_came(page, other, cx)?)))
        else {
            return;
        };
        let message = format!("this is the page of block {other}, {how}");
        out.add(Draft::new(&MISPLACED_PAGE, message).fact("belongs_to_block", other));
    }
}

/// The block that the left neighbour, or on the left edge the right one, names in place of ours.
fn block_by_neighbours(page: Page<'_>, cx: &PageCx<'_>) -> Option<BlockNo> {
    const DELETED_HALF_DEAD_OR_META: u16 = 0x0004 | 0x0010 | 0x0008;
    if btree_flags(page)? & DELETED_HALF_DEAD_OR_META != 0 {
        return None;
    }
    let (previous, next, _) = btree_links(page)?;
    // In an index that was built at once the neighbours are the blocks beside it, and need not be
    // asked: that would be a read for each of its pages.
    if (previous, next) == (cx.block.wrapping_sub(1), cx.block.wrapping_add(1)) {
        return None;
    }
    // The left neighbour's word about us stands in its right link, and the other way round.
    let (neighbour, link) = if previous != 0 {
        (previous, 4)
    } else {
        (next, 0)
    };
    (neighbour != 0).then_some(())?;
    link_of(neighbour, link, cx).filter(|named| *named != cx.block && *named != 0)
}

/// One link of a btree page, without reading the rest of it.
fn link_of(block: BlockNo, link: u64, cx: &PageCx<'_>) -> Option<BlockNo> {
    let build = cx.fork.build;
    let bytes = u64::from(build.block_size);
    let per_segment = build.segment_blocks();
    let segment = u32::try_from(u64::from(block).checked_div(per_segment)?).ok()?;
    let page_at = u64::from(block).checked_rem(per_segment)? * bytes;
    let special = u64::try_from(AccessMethod::Btree.special_bytes()).ok()?;
    let mut word = [0; 4];
    let at = page_at + bytes.checked_sub(special)? + link;
    let read = cx
        .fork
        .source?
        .read_at(&cx.fork.files.path(segment), at, &mut word)
        .ok()?;
    (read == word.len()).then(|| u32::from_le_bytes(word))
}

/// In words, how the page of another block came here.
fn how_it_came(page: Page<'_>, other: BlockNo, cx: &PageCx<'_>) -> Option<&'static str> {
    if other == cx.block || u64::from(other) >= cx.fork.blocks {
        return None;
    }
    let bytes = cx.read_block(other)?;
    let is_heap = cx.fork.method == Some(AccessMethod::Heap);
    match misplaced(page, cx.block, &bytes, other)? {
        Misplaced::Copy => Some("which holds the same bytes"),
        Misplaced::Swapped => is_heap.then_some("which holds the page that belongs here"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork_trial::ForkTrial;
    use pgclinic_format::build::{PageBuilder, TupleBuilder, put_u16, put_u32};

    /// Two rows that were never updated and call themselves rows of `block`.
    fn rows_of(block: BlockNo) -> Vec<u8> {
        let row = |number| {
            TupleBuilder::new(1)
                .ctid(block, number)
                .data(&[7; 8])
                .infomask(0x0B00)
                .finish()
        };
        PageBuilder::new(8192, &[])
            .item(&row(1))
            .item(&row(2))
            .finish(block)
    }

    fn leaf(previous: u32, next: u32) -> Vec<u8> {
        let mut special = [0; 16];
        put_u32(&mut special, 0, previous);
        put_u32(&mut special, 4, next);
        put_u16(&mut special, 12, 1);
        PageBuilder::new(8192, &special).finish(0)
    }

    #[test]
    fn a_copy_is_told_from_the_original() {
        let trial = ForkTrial::new(AccessMethod::Heap, &[rows_of(0), rows_of(0)]);
        assert!(trial.messages(&MisplacedPage, 0).is_empty());
        assert_eq!(
            trial.messages(&MisplacedPage, 1),
            ["this is the page of block 0, which holds the same bytes"]
        );
    }

    #[test]
    fn rows_that_name_another_block_with_other_bytes_are_no_copy() {
        let mut other = rows_of(0);
        put_u32(&mut other, 20, 5);
        let trial = ForkTrial::new(AccessMethod::Heap, &[other, rows_of(0)]);
        assert!(trial.messages(&MisplacedPage, 1).is_empty());
    }

    #[test]
    fn pages_that_changed_places_name_each_other() {
        let trial = ForkTrial::new(AccessMethod::Heap, &[rows_of(1), rows_of(0)]);
        for (block, other) in [(0, 1), (1, 0)] {
            let told = format!(
                "this is the page of block {other}, which holds the page that belongs here"
            );
            assert_eq!(trial.messages(&MisplacedPage, block), [told]);
        }
    }

    #[test]
    fn neighbours_in_a_btree_know_the_right_place() {
        let meta = vec![0; 8192];
        let whole = [meta.clone(), leaf(0, 2), leaf(1, 3), leaf(2, 0)];
        let trial = ForkTrial::new(AccessMethod::Btree, &whole);
        assert!((1..4).all(|block| trial.messages(&MisplacedPage, block).is_empty()));
        let doubled = [meta, leaf(0, 2), leaf(1, 3), leaf(1, 3)];
        let trial = ForkTrial::new(AccessMethod::Btree, &doubled);
        assert!(trial.messages(&MisplacedPage, 2).is_empty());
        assert_eq!(trial.messages(&MisplacedPage, 3).len(), 1);
    }
}
