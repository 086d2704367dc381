//! What a consumer is given at once.

use std::num::NonZeroUsize;

use pgclinic_format::BlockNo;
use pgclinic_spill::{Lease, MemoryPlan, Part};

use crate::task::{FileRange, ForkTask};

/// Bytes of one read: few enough that they are still in the core's own cache when they are
/// examined.
pub const WINDOW_BYTES: u64 = 256 << 10;

/// Neighbouring pages of one file.
#[derive(Clone, Copy)]
pub struct Window<'w> {
    /// Their fork.
    pub fork: &'w ForkTask<'w>,
    /// Their file.
    pub file: &'w FileRange,
    /// Where they begin in the file.
    pub offset: u64,
    /// The number of the first page in the fork.
    pub first_block: u64,
    pub(crate) bytes: &'w [u8],
}

impl<'w> Window<'w> {
    /// All bytes that came; the last page may be half.
    pub fn bytes(&self) -> &'w [u8] {
        self.bytes
    }

    /// Whole pages with their numbers. Blocks beyond the largest number do not exist.
    pub fn pages(&self) -> impl Iterator<Item = (BlockNo, &'w [u8])> + Clone + use<'w> {
        let pages = self.bytes.chunks_exact(self.block_bytes());
        let numbered = (self.first_block..).zip(pages);
        numbered.filter_map(|(block, page)| Some((BlockNo::try_from(block).ok()?, page)))
    }

    /// What is there of a page after the last whole one.
    pub fn half_page(&self) -> &'w [u8] {
        self.bytes.chunks_exact(self.block_bytes()).remainder()
    }

    /// The same without the pages up to this one.
    pub(crate) fn after(&self, block: BlockNo) -> Option<Self> {
        let pages = u64::from(block).checked_sub(self.first_block)? + 1;
        let done = pages.checked_mul(self.block_bytes() as u64)?;
        let rest = self.bytes.get(usize::try_from(done).ok()?..)?;
        (!rest.is_empty()).then_some(Window {
            offset: self.offset + done,
            first_block: self.first_block + pages,
            bytes: rest,
            ..*self
        })
    }

    fn block_bytes(&self) -> usize {
        usize::try_from(self.fork.block_bytes()).unwrap_or(usize::MAX)
    }
}

/// What the windows of a pass take, for as long as it runs. They are needed in any case.
pub fn lease_of_windows(memory: &MemoryPlan, threads: NonZeroUsize) -> Lease {
    let windows = u64::try_from(threads.get()).unwrap_or(u64::MAX);
    let bytes = windows.saturating_mul(WINDOW_BYTES);
    memory.part(Part::Windows).take(bytes)
}
