//! Who holds how many bytes of memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An account of memory, in bytes. Clones share it; it counts what is said to it and allocates
/// nothing.
#[derive(Clone, Debug)]
pub struct Budget {
    account: Arc<Account>,
}

#[derive(Debug)]
struct Account {
    limit: u64,
    used: AtomicU64,
    peak: AtomicU64,
    /// What is on lease here is on lease there too.
    whole: Option<Arc<Account>>,
}

/// Bytes taken from a budget, given back on drop.
#[derive(Debug)]
#[must_use = "a lease that is dropped gives its bytes back"]
pub struct Lease {
    account: Arc<Account>,
    bytes: u64,
}

impl Budget {
    /// A budget of so many bytes.
    pub fn new(bytes: u64) -> Self {
        Self::within(bytes, None)
    }

    /// A part of this budget: what is taken of it is taken of the whole, and fits only if it fits
    /// in both.
    pub fn child(&self, bytes: u64) -> Self {
        Self::within(bytes, Some(Arc::clone(&self.account)))
    }

    fn within(bytes: u64, whole: Option<Arc<Account>>) -> Self {
        let account = Account {
            limit: bytes,
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            whole,
        };
        Self {
            account: Arc::new(account),
        }
    }

    /// Takes bytes that are needed in any case, also beyond the limit; `over` then says by how
    /// much.
    pub fn take(&self, bytes: u64) -> Lease {
        self.account.add(bytes);
        Lease {
            account: Arc::clone(&self.account),
            bytes,
        }
    }

    /// Takes bytes if they fit; `None` means that the caller has to do with less, or spill.
    pub fn try_take(&self, bytes: u64) -> Option<Lease> {
        self.account.try_add(bytes).then(|| Lease {
            account: Arc::clone(&self.account),
            bytes,
        })
    }

    /// Takes the wanted bytes, or a half, a quarter and so on of them, as many as fit; `least` in
    /// any case.
    pub fn take_some(&self, wanted: u64, least: u64) -> Lease {
        let halves = std::iter::successors(Some(wanted), |bytes| Some(bytes / 2));
        let mut enough = halves.take_while(|bytes| *bytes > least);
        let lease = enough.find_map(|bytes| self.try_take(bytes));
        lease.unwrap_or_else(|| self.take(least))
    }

    /// The size of the budget in bytes.
    pub fn limit(&self) -> u64 {
        self.account.limit
    }

    /// Bytes on lease now.
    pub fn used(&self) -> u64 {
        self.account.used.load(Ordering::Acquire)
    }

    /// Bytes that can be taken now.
    pub fn free(&self) -> u64 {
        self.account.free()
    }

    /// Bytes on lease beyond the limit.
    pub fn over(&self) -> u64 {
        self.used().saturating_sub(self.limit())
    }

    /// The most bytes that were ever on lease at once.
    pub fn peak(&self) -> u64 {
        self.account.peak.load(Ordering::Acquire)
    }
}

impl Lease {
    /// Bytes that this lease holds.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds bytes if they fit, and says whether they did.
    pub fn try_grow(&mut self, bytes: u64) -> bool {
        let fits = self.account.try_add(bytes);
        if fits {
            self.bytes = self.bytes.saturating_add(bytes);
        }
        fits
    }
}

impl Account {
    fn add(&self, bytes: u64) {
        self.change(|used| Some(used.saturating_add(bytes)));
        if let Some(whole) = &self.whole {
            whole.add(bytes);
        }
    }

    /// The whole is asked first: what it refuses was never on lease here.
    fn try_add(&self, bytes: u64) -> bool {
        if !self.whole.as_ref().is_none_or(|whole| whole.try_add(bytes)) {
            return false;
        }
        let fits = self.change(|used| used.checked_add(bytes).filter(|sum| *sum <= self.limit));
        if let Some(whole) = self.whole.as_ref().filter(|_| !fits) {
            whole.give_back(bytes);
        }
        fits
    }

    fn give_back(&self, bytes: u64) {
        self.change(|used| Some(used.saturating_sub(bytes)));
        if let Some(whole) = &self.whole {
            whole.give_back(bytes);
        }
    }

    fn free(&self) -> u64 {
        let own = self.limit.saturating_sub(self.used.load(Ordering::Acquire));
        self.whole
            .as_ref()
            .map_or(own, |whole| own.min(whole.free()))
    }

    fn change(&self, change: impl Fn(u64) -> Option<u64>) -> bool {
        let before = self
            .used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, &change);
        let after = before.ok().and_then(change);
        self.peak.fetch_max(after.unwrap_or(0), Ordering::AcqRel);
        after.is_some()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.account.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_bytes_are_there_in_any_case() {
        let budget = Budget::new(100);
        let taken = [60, 60, 60, 60].map(|wanted| budget.take_some(wanted, 10));
        assert_eq!(taken.each_ref().map(Lease::bytes), [60, 30, 10, 10]);
        assert_eq!(budget.over(), 10);
    }

    #[test]
    fn a_part_fits_only_where_it_fits_in_the_whole() {
        let whole = Budget::new(100);
        let (first, second) = (whole.child(80), whole.child(80));
        let held = first.try_take(60).expect("it fits in both");
        assert!(first.try_take(30).is_none(), "beyond the part");
        assert!(second.try_take(60).is_none(), "beyond the whole");
        assert_eq!((second.used(), second.free()), (0, 40));
        let mut rest = second.try_take(20).expect("it fits in both");
        assert!(rest.try_grow(20) && !rest.try_grow(1));
        let needed = second.take(10);
        assert_eq!((whole.used(), whole.over(), second.over()), (110, 10, 0));
        drop((held, rest, needed));
        assert_eq!((whole.used(), first.used(), second.used()), (0, 0, 0));
        assert_eq!((whole.peak(), second.peak()), (110, 50));
    }

    #[test]
    fn what_is_taken_comes_back() {
        let budget = Budget::new(100);
        let mut first = budget.take(60);
        assert!(budget.try_take(41).is_none());
        assert!(first.try_grow(40) && !first.try_grow(1));
        assert_eq!((first.bytes(), budget.free()), (100, 0));
        let needed = budget.take(10);
        assert_eq!((budget.over(), budget.used()), (10, 110));
        drop((first, needed));
        assert_eq!((budget.used(), budget.peak(), budget.free()), (0, 110, 100));
    }
}
