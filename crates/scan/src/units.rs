//! What a worker takes at once.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::task::{FileRange, ForkTask};

/// How much of a file one worker takes. What a consumer gives out, and its words for what could not
/// be read, are by units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnitSize {
    /// So many bytes.
    Bytes(u64),
    /// All of a file: it is summed from its begin to its end.
    File,
}

/// A piece of a file that one worker reads from begin to end.
#[derive(Clone, Debug)]
pub struct Unit<'a> {
    /// Counted through the whole scan. Units are claimed in this order.
    pub number: u64,
    /// The place of its fork in the list of the scan.
    pub fork: usize,
    /// What the consumer calls its fork.
    pub fork_number: usize,
    /// Counted through its fork.
    pub of_fork: u64,
    /// No unit of its fork comes after it.
    pub is_last: bool,
    /// Its file, and how much of that was asked for.
    pub file: &'a FileRange,
    /// Where it begins in the file.
    pub offset: u64,
    /// Its bytes.
    pub len: u64,
    block_bytes: u64,
}

impl Unit<'_> {
    /// The block at its begin, counted through the fork.
    pub fn first_block(&self) -> u64 {
        self.file.first_block + (self.offset - self.file.offset) / self.block_bytes
    }
}

/// A range of a file with the number of its first unit.
struct Stretch<'a> {
    first_unit: u64,
    fork: usize,
    fork_number: usize,
    /// Units of the fork: the first one, and past the last one.
    of_fork: (u64, u64),
    block_bytes: u64,
    file: &'a FileRange,
}

/// All units, each handed out once.
pub(crate) struct Units<'a> {
    stretches: Vec<Stretch<'a>>,
    size: UnitSize,
    count: u64,
    next: AtomicU64,
}

impl<'a> Units<'a> {
    pub(crate) fn new(forks: &'a [ForkTask<'a>], size: UnitSize) -> Self {
        let mut stretches = Vec::new();
        let mut count = 0u64;
        let units_of = |file: &FileRange| match size {
            UnitSize::Bytes(bytes) => file.len.div_ceil(bytes.max(1)).max(1),
            UnitSize::File => 1,
        };
        for (fork, task) in forks.iter().enumerate() {
            let of_fork = (count, count + task.ranges.iter().map(units_of).sum::<u64>());
            for file in &task.ranges {
                stretches.push(Stretch {
                    first_unit: count,
                    fork,
                    fork_number: task.number,
                    of_fork,
                    block_bytes: task.block_bytes(),
                    file,
                });
                count += units_of(file);
            }
        }
        Units {
            stretches,
            size,
            count,
            next: AtomicU64::new(0),
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Units of one fork.
    pub(crate) fn count_of(&self, fork: usize) -> u64 {
        let at = self
            .stretches
            .partition_point(|stretch| stretch.fork < fork);
        let own = self.stretches.get(at).filter(|own| own.fork == fork);
        own.map_or(0, |own| own.of_fork.1 - own.of_fork.0)
    }

    /// The next one that nobody has.
    pub(crate) fn claim(&self) -> Option<Unit<'a>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.count).then_some(())?;
        let after = self
            .stretches
            .partition_point(|stretch| stretch.first_unit <= number);
        let stretch = self.stretches.get(after.checked_sub(1)?)?;
        let done = match self.size {
            UnitSize::Bytes(bytes) => (number - stretch.first_unit) * bytes,
            UnitSize::File => 0,
        };
        let rest = stretch.file.len - done;
        let len = match self.size {
            UnitSize::Bytes(bytes) => rest.min(bytes),
            UnitSize::File => rest,
        };
        Some(Unit {
            number,
            fork: stretch.fork,
            fork_number: stretch.fork_number,
            block_bytes: stretch.block_bytes,
            of_fork: number - stretch.of_fork.0,
            is_last: number + 1 == stretch.of_fork.1,
            file: stretch.file,
            offset: stretch.file.offset + done,
            len,
        })
    }
}
