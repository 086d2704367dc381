//! Work that is not a pass over pages, on all threads.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use pgclinic_model::document::NotChecked;

use crate::consumer::{InternalFault, message_of};

/// So many threads for a list of items.
#[derive(Clone, Copy, Debug)]
pub struct WorkerPool {
    threads: NonZeroUsize,
}

/// The work on an item failed by a bug of ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Panicked {
    /// What the failing code said.
    pub message: String,
}

impl Panicked {
    /// The entry for a report: what was at work where.
    pub fn not_checked(&self, what: impl Into<String>) -> NotChecked {
        let fault = InternalFault {
            path: what.into(),
            block: None,
            message: self.message.clone(),
        };
        fault.not_checked()
    }
}

/// Works, and takes a failure of our own for an answer.
pub fn guarded<R>(work: impl FnOnce() -> R) -> Result<R, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| Panicked {
        message: message_of(payload.as_ref()),
    })
}

impl WorkerPool {
    /// As many threads as that.
    pub fn new(threads: NonZeroUsize) -> Self {
        Self { threads }
    }

    /// Works on every item once, in order, one a thread at a time; the results come in the order of
    /// the items. A failure is the item's own.
    pub fn each<T: Sync, R: Send>(
        &self,
        items: &[T],
        work: impl Fn(usize, &T) -> R + Sync,
    ) -> Vec<Result<R, Panicked>> {
        let next = AtomicUsize::new(0);
        let drain = || {
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(number) else {
                    return done;
                };
                done.push((number, guarded(|| work(number, item))));
            }
        };
        let threads = self.threads.get().min(items.len().max(1));
        let mut results = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(drain)).collect();
            let mut results = drain();
            for other in others {
                results.extend(other.join().expect("the work on an item is caught"));
            }
            results
        });
        results.sort_by_key(|(number, _)| *number);
        results.into_iter().map(|(_, result)| result).collect()
    }
}
