//! A consumer that takes its pages from the pass of another.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use pgclinic_cluster::{Catalog, ForkFiles};
use pgclinic_format::Oid;

use crate::consumer::{Consumer, Cursor, Leg};
use crate::ledger::Ledger;
use crate::pool::guarded;
use crate::task::ForkTask;
use crate::window::Window;

/// Work on the same databases as a run that reads their pages anyway.
pub trait DatabaseCompanion {
    /// Calls `read` once: it hands the pages of the database's forks to what it is given. The
    /// catalog is there where it is that of the files as they are, with all columns.
    fn database(
        &self,
        database: Oid,
        catalog: Option<&Catalog>,
        read: &mut dyn FnMut(&dyn Companion),
    );
}

/// What is handed each window that the consumer of a pass is handed, before it.
pub trait Companion: Sync {
    /// Before a worker's first window of a fork; nothing where the fork is not wanted.
    fn begin_fork(&self, files: &ForkFiles) -> Option<Box<dyn CompanionShare + '_>>;
}

/// What one worker gathers of one fork. A share that is dropped was in vain, and its fork is read
/// once more.
pub trait CompanionShare: Send {
    /// Examines a window.
    fn window(&mut self, window: &Window<'_>);

    /// The worker has left the fork, which it entered with this unit.
    fn keep(self: Box<Self>, first_unit: u64);
}

/// A consumer as a companion. Of it are asked the begin of forks, windows and the merge, and only
/// of forks whose every byte came: the others are given back, to be read in a pass of its own.
pub struct Passenger<'p, C: Consumer> {
    consumer: &'p C,
    forks: Vec<ForkTask<'p>>,
    /// Places in `forks`, by the path of the first file.
    by_path: HashMap<String, usize>,
    gathered: Mutex<BTreeMap<usize, Gathered<C::Share>>>,
}

/// Shares of a fork by their first units.
struct Gathered<S> {
    shares: BTreeMap<u64, S>,
    bytes: u64,
}

impl<'p, C: Consumer> Passenger<'p, C> {
    /// A companion that wants these forks.
    pub fn new(consumer: &'p C, forks: Vec<ForkTask<'p>>) -> Self {
        let paths = forks.iter().map(|fork| fork.files.path(0));
        Passenger {
            consumer,
            by_path: paths.zip(0..).collect(),
            forks,
            gathered: Mutex::default(),
        }
    }

    /// Merges the forks whose every byte came, and gives what was read of them; and the forks that
    /// are still to be read.
    pub fn finish(self) -> (Ledger, Vec<ForkTask<'p>>) {
        let gathered = self.gathered.into_inner();
        let mut gathered = gathered.unwrap_or_else(PoisonError::into_inner);
        let (mut ledger, mut left) = (Ledger::default(), Vec::new());
        for (place, fork) in self.forks.into_iter().enumerate() {
            let own = gathered.remove(&place);
            let whole = own.filter(|own| own.bytes == fork.bytes());
            let merged = whole.is_some_and(|own| {
                let shares = own.shares.into_values().collect();
                guarded(|| self.consumer.merge(&fork, shares)).is_ok()
            });
            if merged {
                ledger.check(fork.bytes(), fork.block_bytes());
            } else {
                left.push(fork);
            }
        }
        (ledger, left)
    }
}

impl<C: Consumer> Companion for Passenger<'_, C> {
    fn begin_fork(&self, files: &ForkFiles) -> Option<Box<dyn CompanionShare + '_>> {
        let place = *self.by_path.get(&files.path(0))?;
        let fork = self.forks.get(place)?;
        let mut worker = self.consumer.begin_worker();
        let share = self.consumer.begin_fork(fork, &mut worker);
        Some(Box::new(Seat {
            passenger: self,
            place,
            fork,
            leg: Leg { worker, share },
            bytes: 0,
        }))
    }
}

struct Seat<'s, 'p, C: Consumer> {
    passenger: &'s Passenger<'p, C>,
    place: usize,
    fork: &'s ForkTask<'p>,
    leg: Leg<C::Worker, C::Share>,
    bytes: u64,
}

impl<C: Consumer> CompanionShare for Seat<'_, '_, C> {
    fn window(&mut self, window: &Window<'_>) {
        let own = Window {
            fork: self.fork,
            ..*window
        };
        let cursor = Cursor::default();
        self.passenger.consumer.window(&own, &cursor, &mut self.leg);
        self.bytes += window.bytes().len() as u64;
    }

    fn keep(self: Box<Self>, first_unit: u64) {
        let gathered = self.passenger.gathered.lock();
        let mut gathered = gathered.unwrap_or_else(PoisonError::into_inner);
        let own = gathered.entry(self.place).or_insert_with(|| Gathered {
            shares: BTreeMap::new(),
            bytes: 0,
        });
        own.bytes += self.bytes;
        own.shares.insert(first_unit, self.leg.share);
    }
}
