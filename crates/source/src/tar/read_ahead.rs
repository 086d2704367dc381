//! Unpacking on a thread of its own, a few steps ahead of whoever reads, so that looking at what
//! came does not wait for it.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

/// Bytes of a step.
const STEP_BYTES: usize = 256 << 10;
/// Steps that may lie ready.
const STEPS: usize = 3;

/// Memory of one step, and how much of it is filled.
struct Step {
    memory: Vec<u8>,
    len: usize,
}

/// What a thread has unpacked ahead of its reader.
pub(super) struct ReadAheadThread {
    ready: Receiver<io::Result<Step>>,
    /// Memory that goes back to be filled again.
    used: Sender<Vec<u8>>,
    step: Step,
    at: usize,
}

impl ReadAheadThread {
    /// Begins at once. The thread ends with what it reads, with an error, or when nobody takes
    /// more.
    pub(super) fn of(packed: impl Read + Send + 'static) -> io::Result<Self> {
        let (give, ready) = sync_channel(STEPS);
        let (used, memory) = channel();
        thread::Builder::new()
            .name("unpacking".into())
            .spawn(move || unpack(packed, &memory, &give))?;
        for _ in 0..STEPS {
            let _nobody_takes_it = used.send(vec![0; STEP_BYTES]);
        }
        // It goes back at the first read.
        let memory = vec![0; STEP_BYTES];
        Ok(ReadAheadThread {
            ready,
            used,
            step: Step { memory, len: 0 },
            at: 0,
        })
    }
}

fn unpack(mut packed: impl Read, memory: &Receiver<Vec<u8>>, ready: &SyncSender<io::Result<Step>>) {
    while let Ok(mut memory) = memory.recv() {
        let (len, error) = fill(&mut packed, &mut memory);
        // What came before an error counts.
        let is_gone = len > 0 && ready.send(Ok(Step { memory, len })).is_err();
        if let Some(error) = error {
            let _nobody_takes_it = ready.send(Err(error));
            return;
        }
        if is_gone || len == 0 {
            return;
        }
    }
}

/// Reads until the memory is full, nothing comes any more, or what comes is broken.
fn fill(packed: &mut impl Read, memory: &mut [u8]) -> (usize, Option<io::Error>) {
    let mut filled = 0usize;
    while let Some(rest) = memory.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match packed.read(rest) {
            Ok(0) => break,
            Ok(count) => filled = filled.saturating_add(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (filled, Some(error)),
        }
    }
    (filled, None)
}

impl Read for ReadAheadThread {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.at == self.step.len {
            // The thread is gone at the end, and so is what it sends.
            let Ok(next) = self.ready.recv() else {
                return Ok(0);
            };
            let before = std::mem::replace(&mut self.step, next?);
            let _thread_has_ended = self.used.send(before.memory);
            self.at = 0;
        }
        let rest = self.step.memory.get(self.at..self.step.len);
        let rest = rest.unwrap_or_default();
        let count = rest.len().min(buf.len());
        let (from, to) = (rest.get(..count), buf.get_mut(..count));
        if let (Some(from), Some(to)) = (from, to) {
            to.copy_from_slice(from);
        }
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::cast_possible_truncation,
        reason = "a test that panics has failed"
    )]

    use super::*;

    /// Bytes, then an error.
    struct Breaking(usize);

    impl Read for Breaking {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::Error::other("broken"));
            }
            let count = self.0.min(buf.len()).min(1000);
            buf[..count].fill(7);
            self.0 -= count;
            Ok(count)
        }
    }

    #[test]
    fn all_bytes_come_in_order() {
        let bytes: Vec<u8> = (0..STEP_BYTES * 5 + 17)
            .map(|at| (at % 251) as u8)
            .collect();
        let mut ahead = ReadAheadThread::of(io::Cursor::new(bytes.clone())).expect("a thread");
        let mut read = Vec::new();
        ahead.read_to_end(&mut read).expect("readable");
        assert!(read == bytes);
        assert_eq!(ahead.read(&mut [0; 8]).expect("the end"), 0);
    }

    #[test]
    fn what_comes_before_an_error_counts() {
        for len in [0, 10, STEP_BYTES, STEP_BYTES * 3 + 1] {
            let mut ahead = ReadAheadThread::of(Breaking(len)).expect("a thread");
            let mut read = Vec::new();
            let error = ahead.read_to_end(&mut read).expect_err("broken");
            assert_eq!((read.len(), error.to_string().as_str()), (len, "broken"));
        }
    }

    #[test]
    fn a_reader_that_goes_away_ends_the_thread() {
        let mut ahead = ReadAheadThread::of(io::repeat(1)).expect("a thread");
        assert_eq!(ahead.read(&mut [0; 100]).expect("bytes"), 100);
    }
}
