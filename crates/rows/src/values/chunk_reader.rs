//! Puts long values together from their chunks, through a window over the TOAST relation's file.

use std::mem::take;
use std::sync::Arc;

use pgclinic_cluster::{Cluster, ForkFiles};
use pgclinic_format::toast::ToastPointer;
use pgclinic_format::{BlockNo, Page};

use super::chunk_index::{Chunk, ChunkIndex, KeptRuns, chunk_rows, run_with};

/// Bytes read at once.
const WINDOW_BYTES: usize = 256 << 10;

/// What was found of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// All of it.
    Whole,
    /// Chunks up to this one; later ones may be there too, but are not taken.
    UpTo {
        /// The first that is missing.
        missing: u32,
        /// How many there should be.
        expected: u32,
    },
}

/// Reads chunks, for one thread.
pub(crate) struct ChunkReader<'a> {
    cluster: &'a Cluster,
    files: &'a ForkFiles,
    index: Arc<ChunkIndex>,
    kept: KeptRuns,
    window: Vec<u8>,
    window_start: u64,
    window_len: usize,
}

impl<'a> ChunkReader<'a> {
    pub(crate) fn new(cluster: &'a Cluster, files: &'a ForkFiles, index: Arc<ChunkIndex>) -> Self {
        ChunkReader {
            cluster,
            files,
            index,
            kept: KeptRuns::default(),
            window: Vec::new(),
            window_start: 0,
            window_len: 0,
        }
    }

    /// Appends the stored bytes of a value, up to the first chunk that is missing.
    pub(crate) fn fetch(&mut self, pointer: ToastPointer, out: &mut Vec<u8>) -> Found {
        self.fetch_each(pointer, &mut |data| out.extend_from_slice(data))
    }

    /// Gives the stored bytes of a value, chunk by chunk, up to the first that is missing.
    pub(crate) fn fetch_each(
        &mut self,
        pointer: ToastPointer,
        give: &mut dyn FnMut(&[u8]),
    ) -> Found {
        let chunk_bytes = self.cluster.build.toast_chunk.max(1);
        let expected = pointer.va_extsize.div_ceil(chunk_bytes);
        let (index, mut kept) = (Arc::clone(&self.index), take(&mut self.kept));
        let runs = index.runs(pointer.va_valueid, &mut kept);
        let mut next = 0;
        while next < expected {
            let Some(run) = run_with(runs, next) else {
                break;
            };
            let before = next;
            let last = run.end().min(expected);
            next = self.take(run.block, run.item, run.seq, next..last, pointer, give);
            if next == before {
                break;
            }
        }
        self.kept = kept;
        match next < expected {
            false => Found::Whole,
            true => Found::UpTo {
                missing: next,
                expected,
            },
        }
    }

    /// Takes the chunks of a run that are `wanted`; the number of the first that was not found.
    fn take(
        &mut self,
        mut block: BlockNo,
        first_item: u16,
        first_seq: u32,
        wanted: std::ops::Range<u32>,
        pointer: ToastPointer,
        give: &mut dyn FnMut(&[u8]),
    ) -> u32 {
        let chunk_bytes = self.cluster.build.toast_chunk.max(1);
        let last_block = self.last_block();
        let (mut seq, mut item) = (first_seq, first_item);
        while seq < wanted.end {
            let log = &self.cluster.transactions;
            let Some(page) = self.page(block).and_then(Page::parse) else {
                break;
            };
            for (_, tuple) in chunk_rows(page, block, item, log) {
                let chunk = Chunk::of(tuple)
                    .filter(|chunk| chunk.value == pointer.va_valueid && chunk.seq == seq);
                let Some(chunk) = chunk else { continue };
                if seq >= wanted.start {
                    let left = pointer.va_extsize - seq * chunk_bytes;
                    if u32::try_from(chunk.data.len()) != Ok(left.min(chunk_bytes)) {
                        return seq.max(wanted.start);
                    }
                    give(chunk.data);
                }
                seq += 1;
                if seq >= wanted.end {
                    break;
                }
            }
            item = 1;
            let Some(behind) = block.checked_add(1) else {
                break;
            };
            // A run never leaves out a page, so that one without its chunk ends it.
            if seq < wanted.end && u64::from(behind) > last_block {
                break;
            }
            block = behind;
        }
        seq.max(wanted.start).min(wanted.end)
    }

    fn last_block(&self) -> u64 {
        let last = self.files.segments.last();
        last.map_or(0, |segment| {
            (u64::from(segment.number) + 1) * self.cluster.build.segment_blocks()
        })
    }

    fn page(&mut self, block: BlockNo) -> Option<&[u8]> {
        let page_bytes = usize::try_from(self.cluster.build.block_size).ok()?;
        let at = u64::from(block) * u64::from(self.cluster.build.block_size);
        let held = self.window_start..self.window_start + self.window_len as u64;
        if !held.contains(&at) {
            self.load(at)?;
        }
        let start = usize::try_from(at.checked_sub(self.window_start)?).ok()?;
        let end = start.checked_add(page_bytes)?;
        (end <= self.window_len).then_some(())?;
        self.window.get(start..end)
    }

    /// Fills the window from `at`, rounded down so that values a little before are met too.
    fn load(&mut self, at: u64) -> Option<()> {
        let segment_bytes = self.cluster.build.segment_bytes.max(1);
        let segment = u32::try_from(at / segment_bytes).ok()?;
        let within = at % segment_bytes;
        self.window.resize(WINDOW_BYTES, 0);
        self.window_len = 0;
        let path = self.files.path(segment);
        let read = self
            .cluster
            .source()
            .read_at(&path, within, &mut self.window)
            .ok()?;
        self.window_start = at;
        self.window_len = read;
        Some(())
    }
}
