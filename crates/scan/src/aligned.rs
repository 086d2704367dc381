//! Memory for reads.

/// Bytes of a page of memory.
const MEMORY_PAGE: usize = 4096;

/// A buffer that begins where a page of memory does: the kernel copies to such a place up to a
/// quarter faster than to where the allocator puts a large vector.
pub struct AlignedBuffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    /// So many bytes of zeros.
    pub fn new(len: usize) -> Self {
        let memory = vec![0; len.saturating_add(MEMORY_PAGE)];
        let start = memory.as_ptr().align_offset(MEMORY_PAGE).min(MEMORY_PAGE);
        Self { memory, start, len }
    }

    /// The first bytes of it, at most as many as it has; they hold what was read last.
    pub fn space(&mut self, len: usize) -> &mut [u8] {
        let end = self.start + len.min(self.len);
        self.memory.get_mut(self.start..end).unwrap_or_default()
    }
}
