//! Reads single pages of one fork.

use std::cell::Cell;
use std::sync::Arc;

use pgclinic_cluster::ForkContext;
use pgclinic_format::{BlockNo, Page};
use pgclinic_source::Source;

/// Bytes that a reader fetches at once where blocks are read in rising order.
const WINDOW_BYTES: usize = 256 << 10;

/// Reads single pages of one fork, a window at a time where blocks rise.
pub struct PageReader<'a> {
    source: &'a dyn Source,
    fork: &'a ForkContext<'a>,
    block_bytes: usize,
    window: Vec<u8>,
    first: u64,
    held: u64,
    read: Cell<u64>,
    paths: Vec<(u32, Arc<str>)>,
}

impl<'a> PageReader<'a> {
    /// Of a fork whose files lie in `source`.
    pub fn new(source: &'a dyn Source, fork: &'a ForkContext<'a>) -> Self {
        PageReader {
            source,
            fork,
            block_bytes: usize::try_from(fork.build.block_size).unwrap_or(8192),
            window: Vec::new(),
            first: 0,
            held: 0,
            read: Cell::new(0),
            paths: Vec::new(),
        }
    }

    /// Blocks in the fork.
    pub fn blocks(&self) -> u64 {
        self.fork.blocks
    }

    /// A page; nothing beyond the end, for pages that cannot be read or are all zero, and for those
    /// whose header the server would refuse: the checks of pages tell of them.
    pub fn page(&mut self, block: BlockNo) -> Option<Page<'_>> {
        let page = Page::parse(self.bytes(block)?)?;
        let usable = !page.is_new() && page.header_is_sane_to_the_server();
        usable.then_some(page)
    }

    /// The bytes of a page, whatever they are.
    pub fn bytes(&mut self, block: BlockNo) -> Option<&[u8]> {
        let block = u64::from(block);
        if block >= self.fork.blocks {
            return None;
        }
        if !(self.first..self.first + self.held).contains(&block) {
            self.fetch(block);
        }
        let index = usize::try_from(block.checked_sub(self.first)?).ok()?;
        let start = index.checked_mul(self.block_bytes)?;
        (block < self.first + self.held).then_some(())?;
        self.window.get(start..start.checked_add(self.block_bytes)?)
    }

    /// A window where reading goes on, a single page where it jumps.
    fn fetch(&mut self, block: u64) {
        let goes_on = block == self.first + self.held;
        let per_segment = self.fork.build.segment_blocks().max(1);
        let within = block % per_segment;
        let wanted = if goes_on {
            WINDOW_BYTES / self.block_bytes
        } else {
            1
        };
        let rest = (per_segment - within).min(self.fork.blocks - block);
        let wanted = usize::try_from(rest).unwrap_or(1).min(wanted.max(1));
        self.window.resize(wanted * self.block_bytes, 0);
        let segment = u32::try_from(block / per_segment).unwrap_or(u32::MAX);
        let path = self.path(segment);
        let offset = within * self.block_bytes as u64;
        let read = self.source.read_at(&path, offset, &mut self.window);
        self.first = block;
        self.held = (read.unwrap_or(0) / self.block_bytes) as u64;
        self.read.set(self.read.get() + self.held);
    }

    fn path(&mut self, segment: u32) -> Arc<str> {
        if let Some((_, path)) = self.paths.iter().find(|(number, _)| *number == segment) {
            return Arc::clone(path);
        }
        let path: Arc<str> = self.fork.files.path(segment).into();
        self.paths.push((segment, Arc::clone(&path)));
        path
    }
}
