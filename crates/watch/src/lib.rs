//! The live signs of storage health: what running servers show of themselves, at any moment.
//!
//! ```text
//! signs/      the register: what a sign is, its statements, what is normal, what it means, what alarms
//! probe.rs    one statement that gives the figures of several signs       need.rs   what it needs
//! watcher.rs  one server, one session, the last two readings of each statement
//! assess/     readings ─► the document: rates, states, reasons             machine.rs  what cli knows of this machine
//! watched_servers.rs  many servers, the history of each sign
//! log/        the server's log, what was added since       marks.rs  growth between two documents
//! alarms/     the alerts judged without a Prometheus
//! scrub.rs measured.rs   what is known of its files: the program works on them
//! listen/     the metrics endpoint: a small, strict HTTP server
//! tls.rs bounded.rs      connections that are encrypted, and that have to be done by a moment
//! rules.rs dashboard.rs manual.rs   what is made of the register: alerts, Grafana, documentation
//! ```
//!
//! Nothing here writes to a server: each session is read-only, with limits on statements and
//! locks. What could not be read is said with its reason, and is never a zero.
#![forbid(unsafe_code)]

mod alarms;
mod assess;
mod bounded;
mod dashboard;
mod facts;
pub mod listen;
mod log;
mod machine;
mod manual;
mod marks;
mod measured;
mod need;
mod probe;
mod rules;
mod scrub;
mod sign;
mod signs;
mod tls;
mod watched_servers;
mod watcher;

pub use alarms::{ALERT_SCHEMA, Alarms, AlertMessage, AlertStatus};
pub use assess::Sample;
pub use bounded::BoundedStream;
pub use dashboard::dashboard;
pub use machine::{BackendMemory, Machine};
pub use manual::manual;
pub use marks::grown;
pub use measured::{LargeObjects, MeasuredFigures, MeasuredStatus};
pub use need::Need;
pub use probe::Probe;
pub use rules::rules;
pub use scrub::{FileSource, FileSources, ScrubStatus, ServerOnDisk};
pub use sign::{Alert, Assessment, Compute, Family, Gather, Sign, Source, Urgency};
pub use signs::{FAMILIES, signs};
pub use tls::{ServerTls, connect_encrypted};
pub use watched_servers::WatchedServers;
pub use watcher::{Thoroughness, WatchOptions, Watcher};
