//! Puts long values together from their chunks, through windows over the TOAST relation's files.

use std::collections::BTreeSet;
use std::mem::take;
use std::sync::Arc;

use pgclinic_format::toast::ToastPointer;
use pgclinic_format::toast_chunk::PlainChunk;
use pgclinic_format::{BlockNo, HeapTuple, LpFlags, Page};

use crate::cluster::Cluster;
use crate::files::ForkFiles;
use crate::read_windows::ReadWindows;
use crate::toast_index::{ChunkIndex, KeptRuns, run_with};
use crate::transaction_log::TransactionLog;

/// What was found of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FoundChunks {
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

/// Numbers and rows of a page of a TOAST relation from an item on, in an order that the index was
/// made in too.
pub type PageRows = for<'p> fn(
    Page<'p>,
    BlockNo,
    u16,
    &TransactionLog,
) -> Box<dyn Iterator<Item = (u16, HeapTuple<'p>)> + 'p>;

/// Those that the line pointers name.
pub fn named_rows<'p>(
    page: Page<'p>,
    _: BlockNo,
    first: u16,
    _: &TransactionLog,
) -> Box<dyn Iterator<Item = (u16, HeapTuple<'p>)> + 'p> {
    let pointers = page.line_pointers().skip(usize::from(first.max(1) - 1));
    let normal = pointers.filter(|(_, pointer)| pointer.flags() == LpFlags::Normal);
    Box::new(
        normal.filter_map(move |(item, pointer)| {
            Some((item, HeapTuple::parse(page.item(pointer)?)?))
        }),
    )
}

/// Reads the stored bytes of values by their pointers, for one thread. Compression is the caller's.
pub struct ToastReader<'a> {
    cluster: &'a Cluster,
    files: &'a ForkFiles,
    index: Arc<ChunkIndex>,
    rows: PageRows,
    kept: KeptRuns,
    windows: ReadWindows,
    /// Pages whose bytes may not be what the server wrote.
    doubted: BTreeSet<BlockNo>,
    met: ChunkDoubts,
}

/// What was odd about the chunks of values that came whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChunkDoubts {
    /// Some stand on pages whose bytes may not be what the server wrote.
    pub on_doubted_page: bool,
    /// A value has more of them than its pointer says. No two values have one number, so that the
    /// pointer is wrong.
    pub left_over: bool,
}

impl<'a> ToastReader<'a> {
    /// Over the TOAST relation in `files`, whose chunks stand where `index` says by the numbers
    /// that `rows` gives.
    pub fn new(
        cluster: &'a Cluster,
        files: &'a ForkFiles,
        index: Arc<ChunkIndex>,
        rows: PageRows,
    ) -> Self {
        ToastReader {
            cluster,
            files,
            index,
            rows,
            kept: KeptRuns::default(),
            windows: ReadWindows::default(),
            doubted: BTreeSet::new(),
            met: ChunkDoubts::default(),
        }
    }

    /// The same, and remembers whether it took chunks of these pages.
    pub fn doubting(self, doubted: BTreeSet<BlockNo>) -> Self {
        ToastReader { doubted, ..self }
    }

    /// What it met since this was asked last.
    pub fn take_doubts(&mut self) -> ChunkDoubts {
        take(&mut self.met)
    }

    /// Appends the stored bytes of a value, up to the first chunk that is missing.
    pub fn fetch(&mut self, pointer: ToastPointer, out: &mut Vec<u8>) -> FoundChunks {
        self.fetch_each(pointer, &mut |data| out.extend_from_slice(data))
    }

    /// Gives the stored bytes of a value, chunk by chunk, up to the first that is missing.
    pub fn fetch_each(
        &mut self,
        pointer: ToastPointer,
        give: &mut dyn FnMut(&[u8]),
    ) -> FoundChunks {
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
        self.met.left_over |= runs
            .iter()
            .any(|run| run.is_of_row() && run.end() > expected);
        self.kept = kept;
        if next >= expected {
            FoundChunks::Whole
        } else {
            FoundChunks::UpTo {
                missing: next,
                expected,
            }
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
        let rows = self.rows;
        while seq < wanted.end {
            self.met.on_doubted_page |= self.doubted.contains(&block);
            let log = &self.cluster.transactions;
            let Some(page) = self.page(block).and_then(Page::parse) else {
                break;
            };
            for (_, tuple) in rows(page, block, item, log) {
                let chunk = PlainChunk::parse(tuple)
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
        let build = self.cluster.build;
        let page_bytes = usize::try_from(build.block_size).ok()?;
        let at = u64::from(block) * u64::from(build.block_size);
        let segment_bytes = build.segment_bytes.max(1);
        let segment = u32::try_from(at / segment_bytes).ok()?;
        let (source, files) = (self.cluster.source(), self.files);
        self.windows.page(at, page_bytes, |buffer| {
            // A window ends with its segment.
            let within = at % segment_bytes;
            source.read_at(&files.path(segment), within, buffer).ok()
        })
    }
}
