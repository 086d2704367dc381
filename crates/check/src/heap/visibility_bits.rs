//! The bits of the visibility map for the pages of a heap, read as they are asked for.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use pgclinic_cluster::{Build, ForkFiles, map_page};
use pgclinic_format::visibility_map::{bits, heap_blocks_per_page};
use pgclinic_format::{BlockNo, Page};
use pgclinic_source::Source;

/// Pages of a map that are kept: each covers 256 MiB of heap.
const KEPT_PAGES: usize = 16;

/// A page of the map by its number; nothing where the server would take it for empty.
type MapPage = (u64, Option<Arc<[u8]>>);

/// The visibility map of one relation.
pub struct VisibilityBits<'a> {
    source: &'a dyn Source,
    files: &'a ForkFiles,
    build: Build,
    summed: bool,
    kept: Mutex<Vec<MapPage>>,
}

impl<'a> VisibilityBits<'a> {
    /// The map in `files`; `summed` when its pages carry checksums.
    pub fn new(source: &'a dyn Source, files: &'a ForkFiles, build: Build, summed: bool) -> Self {
        VisibilityBits {
            source,
            files,
            build,
            summed,
            kept: Mutex::default(),
        }
    }

    /// `ALL_VISIBLE` and `ALL_FROZEN` of a heap page; 0 beyond the end of the map and where its
    /// page is damaged, since the server throws such a page away.
    pub fn of(&self, block: BlockNo) -> u8 {
        let (page, index) = self.place(block);
        look_up(self.page(page).as_deref(), index)
    }

    fn per_page(&self) -> u64 {
        heap_blocks_per_page(usize::try_from(self.build.block_size).unwrap_or(8192)).max(1)
    }

    fn place(&self, block: BlockNo) -> (u64, u64) {
        let (block, per_page) = (u64::from(block), self.per_page());
        (block / per_page, block % per_page)
    }

    fn page(&self, number: u64) -> Option<Arc<[u8]>> {
        let mut kept = self
            .kept
            .lock()
            .expect("no thread panics while it holds this lock");
        if let Some((_, page)) = kept.iter().find(|(of, _)| *of == number) {
            return page.clone();
        }
        let page = self.read(number);
        if kept.len() >= KEPT_PAGES {
            kept.remove(0);
        }
        kept.push((number, page.clone()));
        page
    }

    fn read(&self, number: u64) -> Option<Arc<[u8]>> {
        let block = BlockNo::try_from(number).ok()?;
        let bytes = map_page(self.source, self.files, (self.build, self.summed), block)?;
        Some(bytes.into())
    }

    /// For one thread that asks for block after block.
    pub(crate) fn reader(&self) -> VisibilityReader<'_> {
        VisibilityReader {
            map: self,
            page: RefCell::new((u64::MAX, None)),
        }
    }
}

fn look_up(page: Option<&[u8]>, index: u64) -> u8 {
    page.and_then(Page::parse)
        .and_then(|page| bits(page, index))
        .unwrap_or(0)
}

/// Keeps the page of a moment ago, so that no lock is asked for.
pub(crate) struct VisibilityReader<'a> {
    map: &'a VisibilityBits<'a>,
    page: RefCell<MapPage>,
}

impl VisibilityReader<'_> {
    /// As [`VisibilityBits::of`].
    pub(crate) fn of(&self, block: BlockNo) -> u8 {
        let (number, index) = self.map.place(block);
        let mut page = self.page.borrow_mut();
        if page.0 != number {
            *page = (number, self.map.page(number));
        }
        look_up(page.1.as_deref(), index)
    }
}
