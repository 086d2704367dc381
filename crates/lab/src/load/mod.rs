//! The load generator: many clients that run a script, and how long each round took.
//!
//! ```text
//! Load + ConnectionTarget ─► crew: a few threads ─► clients, one task each ─► barrier: all are connected
//!                                                                      │ the clock starts
//!                  Measured ◄─ tallies: latencies, seconds, errors ◄───┘ the window ends
//! ```
//!
//! * The clock starts when all are connected. A window that could not be connected is empty, not
//!   zero.
//! * In the closed loop a client starts the next round when the last one is over (and its think
//!   time).
//! * In the open loop rounds fall due at a rate, whatever the server does, and latency counts from
//!   when a round was due: a server that stalls is charged for all who waited (no coordinated
//!   omission).
//! * A round that begins in the window counts with its latency; the rate counts rounds that end in
//!   the window.
//! * Each thread drives its clients alone and books alone: no locks and no wake-ups between
//!   threads.

mod client;
mod connection;
mod crew;
mod measured;
mod open_files;
mod pace;
pub mod pgbench;
pub mod script;
mod tally;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use measured::{Histogram, Latency, LoadResult, Measured, SecondOfLoad, SqlErrors};
pub use open_files::make_room_for;
pub use pace::Pace;
pub use pgclinic_servers::{Address, ConnectionTarget};
pub use script::{Script, SyntaxError};

/// How SQL reaches the server, as in `pgbench -M`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// As text, parsed and planned each time.
    Simple,
    /// With parameters, parsed and planned each time.
    Extended,
    /// Parsed once for each client.
    Prepared,
}

impl Protocol {
    /// `simple`, `extended` or `prepared`.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Simple, Self::Extended, Self::Prepared];
        all.into_iter().find(|protocol| protocol.name() == name)
    }

    /// The word of `pgbench -M`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Extended => "extended",
            Self::Prepared => "prepared",
        }
    }
}

/// Who makes the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Driver {
    /// The clients of this module.
    #[default]
    BuiltIn,
    /// `pgbench`, where it is installed.
    Pgbench,
}

impl Driver {
    /// `built-in` or `pgbench`.
    pub fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::Pgbench => "pgbench",
        }
    }

    /// The driver of this [`Driver::name`].
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "built-in" => Some(Self::BuiltIn),
            "pgbench" => Some(Self::Pgbench),
            _ => None,
        }
    }
}

/// How long a load lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// A window of time.
    Window(Duration),
    /// So many rounds of each client.
    Rounds(u64),
}

/// A script, and how often it is drawn in comparison with others.
#[derive(Debug, Clone)]
pub struct Weighted {
    /// What a round does.
    pub script: Script,
    /// At least 1.
    pub weight: u32,
}

/// What is run, by how many, how long.
#[derive(Debug, Clone)]
pub struct Load {
    /// A round is one of them, drawn by weight, and one transaction in the books, whatever it
    /// holds.
    pub scripts: Vec<Weighted>,
    /// Connections, each a client of its own.
    pub clients: u32,
    /// Threads that drive them; by default as many as there are cores, at most one a client.
    pub threads: Option<u32>,
    /// How SQL is sent.
    pub protocol: Protocol,
    /// When the next round begins.
    pub pace: Pace,
    /// When it is over.
    pub length: Length,
    /// Clients that are not connected by then make the window empty.
    pub connect_limit: Duration,
    /// A round that is still running this long after the window is cancelled.
    pub grace: Duration,
    /// The same seed gives each client the same random numbers.
    pub seed: u64,
    /// Set by somebody who wants it to end early: no client begins another round.
    pub stop: Arc<AtomicBool>,
}

impl Load {
    /// A closed loop without think time over prepared statements, for `window`.
    pub fn new(script: Script, clients: u32, window: Duration) -> Self {
        Self {
            scripts: vec![Weighted { script, weight: 1 }],
            clients,
            threads: None,
            protocol: Protocol::Prepared,
            pace: Pace::Closed {
                think: Duration::ZERO,
            },
            length: Length::Window(window),
            connect_limit: Duration::from_secs(60),
            grace: Duration::from_secs(5),
            seed: 1,
            stop: Arc::default(),
        }
    }

    /// Threads that drive the clients.
    pub(crate) fn threads(&self) -> u32 {
        let cores = std::thread::available_parallelism()
            .map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX));
        self.threads.unwrap_or(cores).clamp(1, self.clients.max(1))
    }

    /// Somebody wants it to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Runs it to the end. `begun` is called once, when all are connected and the clock starts.
    pub fn run(&self, target: &ConnectionTarget, begun: &(dyn Fn() + Sync)) -> LoadResult {
        crew::run(self, target, begun)
    }
}
