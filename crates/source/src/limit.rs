//! Another source at a bounded rate, so that a check does not starve the server beside it.

use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::{Entry, Result, Source, SourceError, SourceSpec};

/// Bytes that were not read for this long may be read at once later.
const BURST: Duration = Duration::from_millis(100);

/// Time as the limit sees it; programs pass the real one, tests one of their own.
pub trait Clock: Send + Sync {
    /// Time since some fixed moment; never goes back.
    fn now(&self) -> Duration;
    /// Lets so much time pass.
    fn sleep(&self, time: Duration);
}

/// A rate that several threads keep together.
pub struct Pace {
    bytes_per_second: NonZeroU64,
    clock: Arc<dyn Clock>,
    /// The moment up to which the rate is used up.
    used_until: Mutex<Duration>,
}

/// A source whose reads, of all threads together, stay below a rate. Advice to read ahead is not
/// passed on, as what it brings would escape the count.
pub struct Limit {
    spec: SourceSpec,
    under: Arc<dyn Source>,
    pace: Pace,
}

impl Limit {
    /// Bounds the reads of `under`.
    pub fn new(
        under: Arc<dyn Source>,
        bytes_per_second: NonZeroU64,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let spec = SourceSpec::Limit {
            under: Box::new(under.spec().clone()),
            bytes_per_second,
        };
        Self {
            spec,
            under,
            pace: Pace::new(bytes_per_second, clock),
        }
    }
}

impl Pace {
    /// Nothing of it is used up.
    pub fn new(bytes_per_second: NonZeroU64, clock: Arc<dyn Clock>) -> Self {
        Pace {
            bytes_per_second,
            clock,
            used_until: Mutex::default(),
        }
    }

    /// Waits until so many bytes more may have been read.
    pub fn pay(&self, bytes: u64) {
        let nanos = u128::from(bytes).saturating_mul(1_000_000_000)
            / u128::from(self.bytes_per_second.get());
        let cost = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let wait = {
            let mut used_until = self
                .used_until
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let now = self.clock.now();
            *used_until = now
                .saturating_sub(BURST)
                .max(*used_until)
                .saturating_add(cost);
            used_until.saturating_sub(now)
        };
        if !wait.is_zero() {
            self.clock.sleep(wait);
        }
    }
}

impl Source for Limit {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>> {
        self.under.list(folder)
    }

    fn len(&self, path: &str) -> Result<u64> {
        self.under.len(path)
    }

    fn read_at(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let count = self.under.read_at(path, offset, buf)?;
        self.pace.pay(u64::try_from(count).unwrap_or(u64::MAX));
        Ok(count)
    }

    fn unreadable(&self) -> Vec<SourceError> {
        self.under.unreadable()
    }
}
