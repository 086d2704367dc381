//! Reading the segments of a fork in large pieces, ahead of their use, from several threads.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use crate::{BufferPool, PooledBuffer, Range, Result, Source};

/// A large piece of a file.
#[derive(Debug)]
pub struct Chunk {
    /// Which of the reader's files it is from, counted from 0.
    pub file: usize,
    /// The bytes that were asked for: as many as a buffer holds, fewer at the end of a file.
    pub range: Range,
    /// What came. Fewer bytes than asked for mean that the file ends there, shorter than its length was said to be;
    /// an error concerns this chunk only, later ones are still tried.
    pub bytes: Result<PooledBuffer>,
}

/// Hands out the chunks of a list of files in order, each once, to as many threads as ask. Chunks are as large as the
/// pool's buffers and begin at multiples of that size from the start of each range.
pub struct ChunkReader<'a> {
    source: &'a dyn Source,
    pool: &'a BufferPool,
    files: Vec<Range>,
    readahead: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: Cursor,
    /// Where advice to read ahead goes on, `lead` chunks after `next`.
    ahead: Cursor,
    lead: usize,
    stopped: bool,
}

/// A place between two chunks.
#[derive(Clone, Copy, Default)]
struct Cursor {
    file: usize,
    done: u64,
}

impl Cursor {
    fn advance(&mut self, files: &[Range], size: usize) -> Option<(usize, Range)> {
        loop {
            let file = files.get(self.file)?;
            let rest = file.len.saturating_sub(self.done);
            // A range that runs beyond the last offset ends there.
            if let Some(offset) = file.offset.checked_add(self.done)
                && rest > 0
            {
                let len = rest.min(u64::try_from(size).unwrap_or(u64::MAX));
                self.done = self.done.saturating_add(len);
                return Some((
                    self.file,
                    Range {
                        path: file.path.clone(),
                        offset,
                        len,
                    },
                ));
            }
            self.file = self.file.saturating_add(1);
            self.done = 0;
        }
    }
}

impl<'a> ChunkReader<'a> {
    /// Reads `files` (the segments of a fork, say, each from 0 to its length) in this order. The source is told about
    /// up to `readahead` chunks after the one that is handed out; 0 leaves that to the operating system.
    pub fn new(
        source: &'a dyn Source,
        pool: &'a BufferPool,
        files: Vec<Range>,
        readahead: usize,
    ) -> Self {
        Self {
            source,
            pool,
            files,
            readahead,
            state: Mutex::default(),
        }
    }

    /// The next chunk, read now, by the calling thread; `None` after the last one. Waits while all buffers are out:
    /// drop a chunk before asking for more of them than the pool has.
    pub fn next_chunk(&self) -> Option<Chunk> {
        let mut buffer = self.pool.take();
        let (file, range, ahead) = self.claim()?;
        if !ahead.is_empty() {
            self.source.prefetch(&ahead);
        }
        let wanted = usize::try_from(range.len).unwrap_or(usize::MAX);
        let space = buffer.space().get_mut(..wanted).unwrap_or_default();
        let bytes = self
            .source
            .read_at(&range.path, range.offset, space)
            .map(|count| {
                buffer.set_filled(count);
                buffer
            });
        Some(Chunk { file, range, bytes })
    }

    /// Hands out nothing more, to any thread.
    pub fn stop(&self) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .stopped = true;
    }

    fn claim(&self) -> Option<(usize, Range, Vec<Range>)> {
        let size = self.pool.buffer_size();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.stopped {
            return None;
        }
        let (file, range) = state.next.advance(&self.files, size)?;
        match state.lead.checked_sub(1) {
            Some(lead) => state.lead = lead,
            None => state.ahead = state.next,
        }
        let mut ahead = Vec::new();
        while state.lead < self.readahead {
            let Some((_, range)) = state.ahead.advance(&self.files, size) else {
                break;
            };
            ahead.push(range);
            state.lead = state.lead.saturating_add(1);
        }
        Some((file, range, ahead))
    }
}

/// Gives every chunk to `work`, from so many threads, in no order between them. The first `Break` ends the reading;
/// chunks that other threads hold by then are still worked on.
pub fn for_each_chunk(
    reader: &ChunkReader<'_>,
    threads: NonZeroUsize,
    work: &(dyn Fn(Chunk) -> ControlFlow<()> + Sync),
) {
    let drain = || {
        while let Some(chunk) = reader.next_chunk() {
            if work(chunk).is_break() {
                reader.stop();
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.get() {
            scope.spawn(drain);
        }
        drain();
    });
}
