//! What is watched beside a run: by statements on a session of their own, and from the kernel's
//! files.
//!
//! ```text
//! RunningSamplers::start ─► one thread, one session ─► each sampler at its own interval ─► Sampled
//! ```
//!
//! A sampler is one file here and one line in the register. What it costs is stated, and measured
//! each time: the processor time of our thread and of the session's backend, and how long its
//! statements took.

mod counters;
mod proc_files;
mod running;
mod sampled;

use std::path::PathBuf;
use std::time::Duration;

use pgclinic_format::registry;
use pgclinic_servers::{Server, Session, SqlError};

pub(crate) use proc_files::cpu_seconds;
pub use process_memory::{Memory, memory_of};
pub use running::RunningSamplers;
pub use sampled::{Sampled, SamplerCost};

registry! {
    /// Every sampler, in the order in which they are asked.
    pub static SAMPLERS: [Sampler] = [
        wait_events::WaitEvents,
        io_counters::IoCounters,
        io_in_flight::IoInFlight,
        wal::Wal,
        checkpoints::Checkpoints,
        autovacuum::Autovacuum,
        process_memory::ProcessMemory,
        processor::Processor,
        disk::Disk,
    ];
}

/// The server that is watched.
#[derive(Debug, Clone)]
pub struct WatchedServer {
    /// 13 to 18.
    pub major: u16,
    /// The data directory; `None` when the server is not ours and may be on another machine.
    pub pgdata: Option<PathBuf>,
}

impl WatchedServer {
    /// Why processes and disks of this server cannot be looked at; `None` for a server of ours.
    pub(crate) fn not_ours(&self) -> Option<String> {
        let words = || "the server was given by URL and may be on another machine".to_owned();
        self.pgdata.is_none().then(words)
    }

    /// A server that we started.
    pub fn of(server: &Server) -> Self {
        Self {
            major: server.installation().major,
            pgdata: Some(server.pgdata().to_path_buf()),
        }
    }
}

/// One thing to watch.
pub trait Sampler: Sync {
    /// snake_case; its metrics begin with it.
    fn name(&self) -> &'static str;

    /// What it reads and what it gives, as one sentence.
    fn about(&self) -> &'static str;

    /// What it costs, as one sentence.
    fn cost(&self) -> &'static str;

    /// How often it reads.
    fn every(&self) -> Duration;

    /// Why this server or machine cannot be watched so; `None` when it can.
    fn missing(&self, place: &WatchedServer) -> Option<String> {
        let _ = place;
        None
    }

    /// Begins.
    fn open(&self, place: &WatchedServer) -> Box<dyn Sampling>;
}

/// A sampler at work.
pub trait Sampling: Send {
    /// Reads once, `at` seconds after the begin.
    fn sample(&mut self, at: f64, session: &mut Session) -> Result<(), ReadingError>;

    /// Says what was seen over `seconds`.
    fn finish(self: Box<Self>, seconds: f64, sampled: &mut Sampled);
}

/// A reading that did not succeed; the next one may.
#[derive(Debug)]
pub struct ReadingError(pub String);

impl From<SqlError> for ReadingError {
    fn from(error: SqlError) -> Self {
        Self(error.to_string())
    }
}

impl From<std::io::Error> for ReadingError {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// The sampler of this name.
pub fn sampler_named(name: &str) -> Option<&'static dyn Sampler> {
    let mut all = SAMPLERS.iter().copied();
    all.find(|sampler| sampler.name() == name)
}

/// A column of a row as a number; what is null or no number counts as 0.
fn number(row: &[Option<String>], column: usize) -> f64 {
    let text = row.get(column).and_then(Option::as_deref);
    text.and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

/// A column of a row as text.
fn text(row: &[Option<String>], column: usize) -> &str {
    row.get(column).and_then(Option::as_deref).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sampler_has_a_name_of_its_own_and_says_what_it_costs() {
        let mut names: Vec<&str> = SAMPLERS.iter().map(|sampler| sampler.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SAMPLERS.len());
        for sampler in SAMPLERS {
            assert!(sampler.about().ends_with('.') && sampler.cost().ends_with('.'));
            assert!(sampler.every() >= Duration::from_millis(50));
        }
    }
}
