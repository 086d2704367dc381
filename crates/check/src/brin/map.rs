//! The map of a BRIN index: which summary belongs to a range.

use pgclinic_format::brin::{
    self, Meta, PAGE_META, PAGE_REVMAP, PAGES_PER_RANGE_MAX, page_type, ranges_per_map_page,
};
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, Page};
use pgclinic_scan::PageReader;

use crate::relation_check::RelationCx;

/// The map, with a reader of its own.
pub(crate) struct Map<'a> {
    pages: PageReader<'a>,
    /// Pages of the table a range.
    pub(crate) pages_per_range: u32,
    /// Its last page; it begins at block 1.
    pub(crate) last_page: BlockNo,
    /// Ranges a page.
    pub(crate) per_page: u32,
}

impl<'a> Map<'a> {
    /// Nothing when the meta page does not tell.
    pub(crate) fn of(relation: &RelationCx<'a>) -> Option<Self> {
        let mut pages = relation.pages();
        let meta = pages.page(0).and_then(meta_of)?;
        let possible = 1..=PAGES_PER_RANGE_MAX;
        possible.contains(&meta.pages_per_range).then_some(())?;
        Some(Map {
            pages,
            pages_per_range: meta.pages_per_range,
            last_page: meta.last_revmap_page,
            per_page: ranges_per_map_page(usize::try_from(relation.fork.build.block_size).ok()?)
                .max(1),
        })
    }

    /// Block of the map and place in it of the range that begins at this block of the table.
    pub(crate) fn place_of(&self, heap_block: BlockNo) -> (BlockNo, u32) {
        let range = heap_block / self.pages_per_range;
        (1 + range / self.per_page, range % self.per_page)
    }

    /// First block of the table of the range at this place; nothing when no table is so long.
    pub(crate) fn range_at(&self, map_block: BlockNo, index: u32) -> Option<BlockNo> {
        let range = map_block
            .checked_sub(1)?
            .checked_mul(self.per_page)?
            .checked_add(index)?;
        range.checked_mul(self.pages_per_range)
    }

    /// Where the summary of the range stands that begins at this block of the table.
    pub(crate) fn summary_of(&mut self, heap_block: BlockNo) -> Option<Tid> {
        let (block, index) = self.place_of(heap_block);
        (block <= self.last_page).then_some(())?;
        let page = self.pages.page(block)?;
        (page_type(page) == Some(PAGE_REVMAP)).then_some(())?;
        brin::map_entry(page, index)
    }
}

/// What a page says that is marked as a meta page.
pub(super) fn meta_of(page: Page<'_>) -> Option<Meta> {
    (page_type(page) == Some(PAGE_META)).then_some(())?;
    Meta::of(page)
}
