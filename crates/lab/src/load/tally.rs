//! The books of one thread: latencies, seconds, errors.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::measured::{SecondOfLoad, SqlErrors};

/// Latencies are kept from a nanosecond to an hour, to three digits.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Seconds of the series that are kept; a longer window adds the rest to the last.
const SECONDS_MAX: usize = 100_000;

/// What one thread's clients did.
#[derive(Debug)]
pub(super) struct Tally {
    begin: Instant,
    end: Instant,
    pub(super) latency: Histogram<u64>,
    /// How late rounds of the open loop began.
    pub(super) lag: Histogram<u64>,
    pub(super) seconds: Vec<SecondOfLoad>,
    pub(super) errors: BTreeMap<String, SqlErrors>,
    /// Rounds that ended well within the window.
    pub(super) rounds: u64,
    pub(super) failed: u64,
    /// Rounds that began in the window and ended well after it.
    pub(super) ended_late: u64,
    pub(super) abandoned: u64,
    pub(super) overdue: u64,
    pub(super) lost_clients: u32,
    /// When the last round ended; the end of a load without a window.
    pub(super) last: Instant,
    pub(super) cpu: Duration,
}

impl Tally {
    pub(super) fn new(begin: Instant, end: Instant) -> Self {
        let histogram = || {
            Histogram::new_with_bounds(1, LONGEST_NS, 3)
                .unwrap_or_else(|error| unreachable!("fixed bounds are right: {error:?}"))
        };
        Self {
            begin,
            end,
            latency: histogram(),
            lag: histogram(),
            seconds: Vec::new(),
            errors: BTreeMap::new(),
            rounds: 0,
            failed: 0,
            ended_late: 0,
            abandoned: 0,
            overdue: 0,
            lost_clients: 0,
            last: begin,
            cpu: Duration::ZERO,
        }
    }

    /// Books a round that was due at `due` and ended well.
    pub(super) fn record(&mut self, due: Instant, ended: Instant) {
        let latency = nanoseconds(ended.saturating_duration_since(due));
        self.latency.saturating_record(latency);
        self.last = self.last.max(ended);
        if ended > self.end {
            self.ended_late += 1;
            return;
        }
        self.rounds += 1;
        let second = self.second(ended);
        second.rounds += 1;
        second.latency_sum_ns = second.latency_sum_ns.saturating_add(latency);
        second.latency_max_ns = second.latency_max_ns.max(latency);
    }

    pub(super) fn record_lag(&mut self, lag: Duration) {
        self.lag.saturating_record(nanoseconds(lag));
    }

    /// Books a round that failed.
    pub(super) fn fail(&mut self, sqlstate: &str, message: &str, ended: Instant) {
        self.failed += 1;
        self.last = self.last.max(ended);
        if ended <= self.end {
            self.second(ended).failed += 1;
        }
        let first = || SqlErrors {
            count: 0,
            first: message.to_owned(),
        };
        let errors = self.errors.entry(sqlstate.to_owned());
        errors.or_insert_with(first).count += 1;
    }

    /// Books a round that fell due and never began: it waited at least until the end.
    pub(super) fn never_began(&mut self, due: Instant) {
        self.overdue += 1;
        let waited = nanoseconds(self.end.saturating_duration_since(due));
        self.latency.saturating_record(waited);
    }

    /// Adds another thread's books.
    pub(super) fn add(&mut self, other: Self) {
        self.latency += other.latency;
        self.lag += other.lag;
        if self.seconds.len() < other.seconds.len() {
            self.seconds
                .resize(other.seconds.len(), SecondOfLoad::default());
        }
        for (mine, theirs) in self.seconds.iter_mut().zip(other.seconds) {
            mine.add(theirs);
        }
        for (sqlstate, theirs) in other.errors {
            let count = theirs.count;
            let mine = self.errors.entry(sqlstate);
            let mine = mine.or_insert(SqlErrors { count: 0, ..theirs });
            mine.count += count;
        }
        self.rounds += other.rounds;
        self.failed += other.failed;
        self.ended_late += other.ended_late;
        self.abandoned += other.abandoned;
        self.overdue += other.overdue;
        self.lost_clients += other.lost_clients;
        self.last = self.last.max(other.last);
        self.cpu += other.cpu;
    }

    #[expect(clippy::indexing_slicing, reason = "made long enough above")]
    fn second(&mut self, at: Instant) -> &mut SecondOfLoad {
        let since = at.saturating_duration_since(self.begin).as_secs();
        let index =
            usize::try_from(since).map_or(SECONDS_MAX - 1, |since| since.min(SECONDS_MAX - 1));
        if self.seconds.len() <= index {
            self.seconds.resize(index + 1, SecondOfLoad::default());
        }
        &mut self.seconds[index]
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos())
        .unwrap_or(u64::MAX)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    #[test]
    fn a_round_that_ends_after_the_window_has_a_latency_but_no_part_in_the_rate() {
        let begin = Instant::now();
        let mut tally = Tally::new(begin, begin + milliseconds(2000));
        tally.record(begin, begin + milliseconds(500));
        tally.record(begin + milliseconds(500), begin + milliseconds(1500));
        tally.record(begin + milliseconds(1500), begin + milliseconds(2500));
        assert_eq!(
            (tally.rounds, tally.ended_late, tally.latency.len()),
            (2, 1, 3)
        );
        let rounds: Vec<u64> = tally.seconds.iter().map(|second| second.rounds).collect();
        assert_eq!(rounds, [1, 1]);
    }

    #[test]
    fn books_of_threads_add_up() {
        let begin = Instant::now();
        let books = || Tally::new(begin, begin + milliseconds(5000));
        let (mut first, mut second) = (books(), books());
        first.record(begin, begin + milliseconds(10));
        second.record(begin, begin + milliseconds(3010));
        second.fail("40001", "could not serialize", begin + milliseconds(20));
        first.fail("40001", "could not serialize", begin + milliseconds(20));
        second.never_began(begin + milliseconds(4000));
        first.add(second);
        assert_eq!((first.rounds, first.failed, first.overdue), (2, 2, 1));
        assert_eq!(first.errors["40001"].count, 2);
        assert_eq!(first.seconds.len(), 4);
        assert_eq!(first.latency.len(), 3);
    }
}
