//! When a client's next round begins.

use std::io;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use serde::{Deserialize, Serialize};
use tokio::io::unix::AsyncFd;

use super::script::Random;

/// Who decides when work arrives.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// The last answer does: the next round begins after it, and after this pause.
    Closed {
        /// Between the end of a round and the next.
        think: Duration,
    },
    /// The outside world does: this many rounds a second fall due over all clients, at random
    /// moments.
    Open {
        /// Rounds a second.
        rate: f64,
    },
}

/// More rounds a second than any server answers; above it the time between two of them is nothing,
/// and none would ever be behind the end of the window.
const RATE_MAX: f64 = 1e7;

impl Pace {
    /// The open loop at this rate over all clients, in rounds a second: above 0, at most ten
    /// million. Else words.
    pub fn open(rate: f64) -> Result<Self, String> {
        if rate > 0.0 && rate <= RATE_MAX {
            Ok(Self::Open { rate })
        } else {
            Err(format!(
                "{rate} is not a rate of rounds a second: it must be above 0, and at most {RATE_MAX}"
            ))
        }
    }

    /// Mean time between the rounds of one of so many clients in the open loop; never nothing, so
    /// that time goes on.
    fn every(self, clients: u32) -> Option<Duration> {
        let Self::Open { rate } = self else {
            return None;
        };
        let seconds = f64::from(clients) / rate.clamp(f64::MIN_POSITIVE, RATE_MAX);
        Some(Duration::from_secs_f64(seconds.min(1e6)))
    }
}

/// The rounds of one client.
#[derive(Debug)]
pub(super) struct Pacer {
    /// Mean time between the rounds of this client in the open loop.
    every: Option<Duration>,
    think: Duration,
    due: Instant,
    alarm: Option<Alarm>,
}

impl Pacer {
    pub(super) fn new(pace: Pace, clients: u32, begin: Instant) -> io::Result<Self> {
        let every = pace.every(clients);
        let think = match pace {
            Pace::Closed { think } => think,
            Pace::Open { .. } => Duration::ZERO,
        };
        let waits = every.is_some() || !think.is_zero();
        Ok(Self {
            every,
            think,
            due: begin,
            alarm: if waits { Some(Alarm::new()?) } else { None },
        })
    }

    /// Whether latency counts from when a round was due.
    pub(super) fn is_open(&self) -> bool {
        self.every.is_some()
    }

    /// When the next round is due: in the closed loop after the last one, which ended at `now`.
    pub(super) fn next(&mut self, now: Instant, random: &mut Random) -> Instant {
        self.due = match self.every {
            Some(every) => self.due + every.mul_f64(random.exponential()),
            None => now + self.think,
        };
        self.due
    }

    /// Waits until `due`; at once when that is past. Says what time it is then.
    pub(super) async fn wait(&mut self, due: Instant) -> io::Result<Instant> {
        let now = Instant::now();
        match &mut self.alarm {
            Some(alarm) if due > now => {
                alarm.wait(due - now).await?;
                Ok(Instant::now())
            }
            _ => Ok(now),
        }
    }
}

/// A timer of the kernel: tokio's own rounds up to whole milliseconds, which would pass for
/// latency.
#[derive(Debug)]
struct Alarm(AsyncFd<std::os::fd::OwnedFd>);

impl Alarm {
    #[expect(
        deprecated,
        reason = "its successor asks for a promise that OwnedFd keeps by itself"
    )]
    fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self(AsyncFd::new(timer)?))
    }

    async fn wait(&mut self, pause: Duration) -> io::Result<()> {
        let nothing = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let once = Itimerspec {
            it_interval: nothing,
            it_value: Timespec {
                tv_sec: i64::try_from(pause.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(pause.subsec_nanos()),
            },
        };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        loop {
            let mut ready = self.0.readable().await?;
            let mut count = [0_u8; 8];
            match ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut count)?)) {
                Ok(read) => return read.map(drop),
                Err(_would_block) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_open_loop_does_not_ask_when_the_last_round_ended() {
        let begin = Instant::now();
        let mut pacer = Pacer {
            every: Some(Duration::from_secs(2)),
            think: Duration::ZERO,
            due: begin,
            alarm: None,
        };
        let mut random = Random::new(3, 0);
        let late = begin + Duration::from_secs(1_000_000);
        let due: Vec<Instant> = (0..1000).map(|_| pacer.next(late, &mut random)).collect();
        let mean = (due[999] - begin).as_secs_f64() / 1000.0;
        assert!((1.7..2.3).contains(&mean), "{mean}");
        assert!(due.is_sorted());
    }

    #[test]
    fn a_rate_that_no_clock_can_keep_is_refused() {
        for rate in [0.0, -5.0, f64::NAN, f64::INFINITY, 1e12] {
            let why = Pace::open(rate).expect_err("no rate");
            assert!(why.contains("is not a rate of rounds a second"), "{why}");
        }
        assert_eq!(Pace::open(1e7), Ok(Pace::Open { rate: 1e7 }));
        // Whoever makes one without asking has time go on all the same.
        let pace = Pace::Open {
            rate: f64::INFINITY,
        };
        let every = pace.every(1).expect("an open loop");
        assert!(every > Duration::ZERO);
    }

    #[test]
    fn the_closed_loop_thinks_after_each_round() {
        let begin = Instant::now();
        let think = Duration::from_millis(30);
        let mut pacer = Pacer {
            every: None,
            think,
            due: begin,
            alarm: None,
        };
        let ended = begin + Duration::from_secs(9);
        assert_eq!(pacer.next(ended, &mut Random::new(1, 0)), ended + think);
    }
}
