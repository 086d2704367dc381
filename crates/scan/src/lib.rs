//! The one engine over pages: reads forks on all threads and hands their pages to a consumer.
//!
//! ```text
//! ForkTask (files, ranges) ─► units, claimed in order ─► windows of 256 KiB ─► Consumer::window, one share a thread and fork
//!                                                                             └► Consumer::merge, in the order of forks
//! ```
//!
//! A check, a measure and a salvage differ in what they do with a page. How pages are read, ahead
//! of their use and into aligned memory, what is booked of bytes that do not come, how a run is
//! interrupted and what becomes of a page on which our own code fails is decided here, once.
#![forbid(unsafe_code)]

mod aligned;
mod companion;
mod consumer;
mod ledger;
pub mod live;
mod page_reader;
mod pool;
mod run;
mod settling;
mod stream;
mod task;
mod units;
mod window;

#[cfg(test)]
mod tests;

pub use aligned::AlignedBuffer;
pub use companion::{Companion, CompanionShare, DatabaseCompanion, Passenger};
pub use consumer::{Consumer, Cursor, Fault, FaultKind, InternalFault, Leg, LegOf, UnitEnd};
pub use ledger::Ledger;
pub use page_reader::PageReader;
pub use pgclinic_cluster::{LIVE_LIMITS, LiveLimits};
pub use pool::{Panicked, WorkerPool, guarded};
pub use run::{Scan, ScanReport, Writes};
pub use stream::{
    StreamConsumer, StreamEnd, StreamFileEnd, StreamPages, StreamReport, StreamWindow, scan_stream,
};
pub use task::{FileRange, ForkTask};
pub use units::{Unit, UnitSize};
pub use window::{WINDOW_BYTES, Window, lease_of_windows};
