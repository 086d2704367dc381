//! The system's page cache as it was: what reading brought into it goes out again, what was there
//! stays.
//!
//! A piece of a file is taken for absent when none of a few of its pages can be read without the
//! disk. Only such pieces are given up after they were read. Where the system cannot tell what is
//! in memory, nothing is.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

/// Bytes that are asked for and given up together.
const PIECE_BYTES: u64 = 256 << 10;
/// Between two pages of a piece that are looked for.
const STEP_BYTES: u64 = 64 << 10;
/// Pieces that were asked for and not read yet; more are only left behind by runs that stopped.
const ASKED_MAX: usize = 1 << 12;

/// What was asked for ahead, by file and offset.
#[derive(Default)]
pub(crate) struct Footprints {
    asked: Mutex<BTreeSet<(String, u64)>>,
}

impl Footprints {
    /// Reading in large pieces needs no reading ahead by the system, which would bring in what
    /// nobody gives up.
    pub(crate) fn prepare(file: &File) {
        // Advice: a file system that does not take it reads as well without.
        let _ = fadvise(file, 0, None, Advice::Random);
    }

    /// Asks for what is absent, and remembers it.
    pub(crate) fn prefetch(&self, file: &File, path: &str, offset: u64, len: u64) {
        for piece in pieces(offset, len) {
            if !is_absent(file, piece, PIECE_BYTES) {
                continue;
            }
            let mut asked = self.lock();
            if asked.len() >= ASKED_MAX {
                asked.clear();
            }
            asked.insert((path.to_owned(), piece));
            drop(asked);
            let _ = fadvise(file, piece, NonZeroU64::new(PIECE_BYTES), Advice::WillNeed);
        }
    }

    /// Reads by `read`, and gives up what was absent before.
    pub(crate) fn reading<T>(
        &self,
        (file, path): (&File, &str),
        (offset, len): (u64, u64),
        read: impl FnOnce() -> T,
    ) -> T {
        let asked = self.take(path, offset, len);
        let absent = asked.is_empty() && is_absent(file, offset, len);
        let done = read();
        for piece in asked {
            give_up(file, piece, PIECE_BYTES);
        }
        if absent {
            give_up(file, offset, len);
        }
        done
    }

    /// The pieces that end in these bytes and were asked for.
    fn take(&self, path: &str, offset: u64, len: u64) -> Vec<u64> {
        let mut asked = self.lock();
        let mut own: Vec<u64> = pieces(offset, len).collect();
        own.retain(|piece| asked.remove(&(path.to_owned(), *piece)));
        own
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(String, u64)>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the pieces begin that begin in these bytes.
fn pieces(offset: u64, len: u64) -> impl Iterator<Item = u64> {
    // No file reaches the end of the numbers.
    let first = offset.checked_next_multiple_of(PIECE_BYTES);
    let first = first.unwrap_or(u64::MAX);
    let step = usize::try_from(PIECE_BYTES).unwrap_or(usize::MAX);
    (first..offset.saturating_add(len)).step_by(step)
}

/// None of the pages that are looked for is in memory.
fn is_absent(file: &File, offset: u64, len: u64) -> bool {
    let step = usize::try_from(STEP_BYTES).unwrap_or(usize::MAX);
    let mut places = (offset..offset.saturating_add(len)).step_by(step);
    places.all(|at| {
        let mut byte = [0];
        let mut into = [IoSliceMut::new(&mut byte)];
        match preadv2(file, &mut into, at, ReadWriteFlags::NOWAIT) {
            // Behind the end there is nothing to give up.
            Ok(0) => at > offset,
            Ok(_) => false,
            Err(errno) => errno == Errno::AGAIN,
        }
    })
}

fn give_up(file: &File, offset: u64, len: u64) {
    let _ = fadvise(file, offset, NonZeroU64::new(len), Advice::DontNeed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_begin_at_multiples() {
        let all: Vec<u64> = pieces(1, 2 * PIECE_BYTES).collect();
        assert_eq!(all, [PIECE_BYTES, 2 * PIECE_BYTES]);
        assert_eq!(pieces(0, PIECE_BYTES).collect::<Vec<_>>(), [0]);
        assert_eq!(pieces(8192, 8192).count(), 0);
    }

    #[test]
    fn a_piece_that_was_asked_for_is_taken_once() {
        let footprints = Footprints::default();
        footprints.lock().insert(("a".into(), PIECE_BYTES));
        assert_eq!(footprints.take("b", 0, 1 << 20), Vec::<u64>::new());
        assert_eq!(footprints.take("a", 0, 1 << 20), [PIECE_BYTES]);
        assert_eq!(footprints.take("a", 0, 1 << 20), Vec::<u64>::new());
    }
}
