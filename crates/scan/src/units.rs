//! What a worker takes at once.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::task::{FileRange, ForkTask};

/// How much of a file one worker takes. What a consumer gives out, and its words for what could not be read, are by units.
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
    /// Its file, and how much of that was asked for.
    pub file: &'a FileRange,
    /// Where it begins in the file.
    pub offset: u64,
    /// Its bytes.
    pub len: u64,
}

/// A range of a file with the number of its first unit.
struct Stretch<'a> {
    first_unit: u64,
    fork: usize,
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
        for (fork, task) in forks.iter().enumerate() {
            for file in &task.ranges {
                stretches.push(Stretch {
                    first_unit: count,
                    fork,
                    file,
                });
                count += match size {
                    UnitSize::Bytes(bytes) => file.len.div_ceil(bytes.max(1)),
                    UnitSize::File => 1,
                };
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
            file: stretch.file,
            offset: stretch.file.offset + done,
            len,
        })
    }
}
