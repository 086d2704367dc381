//! Which forks are done, and their shares until they meet.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::consumer::{Consumer, InternalFault};
use crate::pool::guarded;
use crate::task::ForkTask;
use crate::units::Units;

/// Shares meet as soon as their fork and all before it are done: what is kept of a cluster with a
/// million small relations is a handful of shares.
pub(crate) struct Settling<'a, S> {
    forks: &'a [ForkTask<'a>],
    /// By fork: units that have not ended.
    units_left: Vec<AtomicU64>,
    /// By fork: workers that are in it.
    legs: Vec<AtomicU64>,
    waiting: Mutex<Waiting<S>>,
}

struct Waiting<S> {
    /// The first fork that has not met.
    next: usize,
    /// By fork and first unit.
    shares: BTreeMap<(usize, u64), S>,
    internal: Vec<InternalFault>,
}

impl<'a, S> Settling<'a, S> {
    pub(crate) fn new(forks: &'a [ForkTask<'a>], units: &Units<'_>) -> Self {
        let counts = (0..forks.len()).map(|fork| AtomicU64::new(units.count_of(fork)));
        Settling {
            forks,
            units_left: counts.collect(),
            legs: forks.iter().map(|_| AtomicU64::new(0)).collect(),
            waiting: Mutex::new(Waiting {
                next: 0,
                shares: BTreeMap::new(),
                internal: Vec::new(),
            }),
        }
    }

    /// A worker is in the fork.
    pub(crate) fn enter(&self, fork: usize) {
        if let Some(legs) = self.legs.get(fork) {
            legs.fetch_add(1, Ordering::AcqRel);
        }
    }

    pub(crate) fn unit_ended(&self, fork: usize) {
        if let Some(left) = self.units_left.get(fork) {
            left.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// A worker has left the fork, which it entered with this unit.
    pub(crate) fn leave<C: Consumer<Share = S>>(
        &self,
        consumer: &C,
        fork: usize,
        first_unit: u64,
        share: S,
    ) {
        let waiting = self.waiting.lock();
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        waiting.shares.insert((fork, first_unit), share);
        if let Some(legs) = self.legs.get(fork) {
            legs.fetch_sub(1, Ordering::AcqRel);
        }
        self.meet(consumer, &mut waiting);
    }

    /// After the last worker has left: the rest, and failures of ours.
    pub(crate) fn finish<C: Consumer<Share = S>>(self, consumer: &C) -> Vec<InternalFault> {
        let waiting = self.waiting.lock();
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        self.meet(consumer, &mut waiting);
        assert!(waiting.shares.is_empty(), "every fork is done");
        std::mem::take(&mut waiting.internal)
    }

    fn is_done(&self, fork: usize) -> bool {
        let is_zero = |counts: &[AtomicU64]| {
            let count = counts.get(fork);
            count.is_some_and(|count| count.load(Ordering::Acquire) == 0)
        };
        is_zero(&self.units_left) && is_zero(&self.legs)
    }

    fn meet<C: Consumer<Share = S>>(&self, consumer: &C, waiting: &mut Waiting<S>) {
        while self.is_done(waiting.next) {
            let fork = waiting.next;
            waiting.next += 1;
            let later = waiting.shares.split_off(&(fork + 1, 0));
            let own = std::mem::replace(&mut waiting.shares, later);
            let (false, Some(task)) = (own.is_empty(), self.forks.get(fork)) else {
                continue;
            };
            let merged = guarded(|| consumer.merge(task, own.into_values().collect()));
            if let Err(failure) = merged {
                waiting.internal.push(InternalFault {
                    path: task.files.path(0),
                    block: None,
                    message: failure.message,
                });
            }
        }
    }
}
